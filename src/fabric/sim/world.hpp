// SPDX-License-Identifier: Apache-2.0
/// \file
/// A simulated job: its ranks are fibers of one thread, and its time is virtual.
///
/// Exactly one rank's fiber or one event runs at a time. A running rank accumulates the time of its work (`charge`);
/// when it settles, events and other ranks run through that time first. A run depends on its options only.
///
///   rank:   charge --> settle --> arm --> park ........ goes on
///   others:               run during it        wake
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/call_site.hpp"
#include "fabric/sim/event_queue.hpp"
#include "fabric/sim/fault_model.hpp"
#include "fabric/sim/fiber.hpp"
#include "fabric/sim/parameters.hpp"
#include "fabric/sim/watchdog.hpp"

namespace rma::sim {

class sim_boot;

/// The uses of a rank's processor time.
enum class activity : std::uint8_t { compute, post, wait, copy, handler, poll, count_ };

inline constexpr std::string_view default_machine = "ndr400";
inline constexpr std::string_view default_topology = "fat-tree";

struct world_options {
  int ranks = 1;
  int ranks_per_node = 0;  ///< 0: all on one node
  std::uint64_t seed = 1;
  std::size_t stack_bytes = std::size_t{256} << 10;
  time_ps limit_ps = never_ps;  ///< the run ends there
  bool costless = false;        ///< work takes no time: the ranks' steps come in the order that `yield` makes
  bool inlined = false;         ///< the inlined halves of calls do their work, without accounting
  std::string topology{default_topology};
  parameters machine{};                                ///< load_parameters(default_machine) or others
  fault_model today = calm();                          ///< faults of the network between the nodes
  bool watch_network = false;                          ///< record the use of its links and engines
  std::map<std::string, std::string> settings{};       ///< settings of every rank's runtime
  std::chrono::milliseconds watchdog{};                ///< real time that one rank may run alone; 0: no watchdog
  std::function<void(const std::string&)> on_stall{};  ///< receives the reports of the watchdog
};

/// How a rank's main function ended.
enum class fate : std::uint8_t {
  running,   ///< the run ended before it
  finished,  ///< it returned
  threw,     ///< it was left by an exception
  killed,    ///< it was ended by `kill`
};

enum class Fate : std::uint8_t;  ///< the same for users, see rma/sim.hpp
Fate fate_of(fate what) noexcept;

struct rank_record {
  fate what = fate::running;
  int exit_code = 0;
  std::string error;  ///< text of the exception
  time_ps ended_ps = 0;
  std::array<time_ps, static_cast<std::size_t>(activity::count_)> spent_ps{};
};

class world {
 public:
  /// Throws Error(bad_argument, out_of_memory).
  explicit world(const world_options& options);
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  [[nodiscard]] const world_options& options() const noexcept { return options_; }
  [[nodiscard]] int size() const noexcept { return options_.ranks; }
  [[nodiscard]] int nodes() const noexcept { return nodes_; }
  [[nodiscard]] int node_of(int rank) const noexcept { return rank / per_node_; }
  /// The ranks of a node, ascending.
  [[nodiscard]] std::vector<int> ranks_of(int node) const;

  /// Runs `main(rank)` in a fiber for each rank, until all have ended, no event can occur any more, the time limit is
  /// reached or a rank has aborted the job. It may be called once.
  void run(const std::function<int(int rank)>& main);

  // ---- time -------------------------------------------------------------------------------------------------
  [[nodiscard]] event_queue& events() noexcept { return events_; }
  /// A number that identifies the running fiber; 0 if none runs.
  [[nodiscard]] std::uintptr_t running_strand() const noexcept { return reinterpret_cast<std::uintptr_t>(current_); }
  /// The rank whose fiber runs; -1 in an event.
  [[nodiscard]] int running() const noexcept { return current_ == nullptr ? -1 : current_->rank; }
  /// The local time of this rank: the current time and the charged time that it has not settled.
  [[nodiscard]] time_ps local_time_ps(int rank) const noexcept;
  /// Charges processor time to the rank; it passes when the rank settles.
  void charge(int rank, time_ps work_ps, activity what) noexcept;
  /// Charges the time of copying so many bytes, and `fixed_ps` more. The node's memory moves two bytes for each byte,
  /// and serves one copy after the other: a copy takes longer when the memory is the bottleneck.
  void charge_copy(int rank, std::uint64_t bytes, time_ps fixed_ps, activity what) noexcept;
  /// Lets the charged time of the running rank pass.
  void pass_charged_time(int rank) noexcept;
  /// Settles, and lets all others run that can run at that time.
  void yield(int rank) noexcept;
  /// Settles, and lets so much more time pass, whatever wakes the rank meanwhile.
  void stay_away(int rank, time_ps for_ps) noexcept;
  /// From this call on a wake is remembered until the running fiber parks.
  void arm(int rank) noexcept;
  /// Settles, then sleeps until a wake, or until that time.
  void park(int rank, time_ps until_ps) noexcept;
  /// Ends the sleep of a rank's fibers: now if an event calls it, else at the local time of the running rank.
  void wake(int rank) noexcept;
  /// Notes that the running rank's wait has made progress. Sleeps that only time ends do not keep a run going for ever.
  void got_on(int rank) noexcept;
  /// Sets the public call that the running fiber is in, for reports. The text is not copied.
  void enter_call(std::string_view call, int target) noexcept;

  // ---- fibers -----------------------------------------------------------------------------------------------
  /// Starts a second fiber of the running rank; returns its number. Throws Error(out_of_memory).
  std::size_t spawn(int rank, std::function<void()> run);
  /// Waits for its end.
  void join(std::size_t helper_thread) noexcept;

  // ---- deaths and ends --------------------------------------------------------------------------------------
  /// False if the rank was killed or has ended without leaving the job.
  [[nodiscard]] bool alive(int rank) const noexcept { return !lost_[static_cast<std::size_t>(rank)]; }
  /// True while its main function runs.
  [[nodiscard]] bool active(int rank) const noexcept;
  /// Stops the rank's fibers for ever. If the rank is the running one, this does not return.
  void kill(int rank) noexcept;
  void kill_at(int rank, time_ps when_ps);
  /// Marks the rank dead for the others, for example after an exception has left its runtime.
  void announce(int rank) noexcept;
  /// Ranks in the order of their deaths.
  [[nodiscard]] const std::vector<int>& deaths() const noexcept { return deaths_; }
  /// Ends the job. Does not return if a rank runs.
  void abort(int code, std::string_view message) noexcept;
  /// Ends the running rank as if its main function had returned this.
  [[noreturn, gnu::visibility("default")]] void exit_rank(int code) noexcept;
  /// Called when a runtime of this rank joins or leaves the job. A rank that ends without leaving has died.
  void enter_job(int rank) noexcept { ++inside_[static_cast<std::size_t>(rank)]; }
  void leave_job(int rank) noexcept { --inside_[static_cast<std::size_t>(rank)]; }
  /// Wakes this rank at each end and death of a rank, so that waits of the boot layer test their conditions again.
  void watch_ends(int rank, bool yes);

  // ---- results ----------------------------------------------------------------------------------------------
  [[nodiscard]] const rank_record& record(int rank) const noexcept { return records_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool aborted() const noexcept { return aborted_; }
  [[nodiscard]] int abort_code() const noexcept { return abort_code_; }
  [[nodiscard]] const std::string& abort_message() const noexcept { return abort_message_; }
  /// Empty, or one line for each waiting rank and the event it waits for.
  [[nodiscard]] const std::string& deadlock() const noexcept { return deadlock_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard, gnu::visibility("default")]] bool same_thread() const noexcept;

  /// The boot service number `turn`: the n-th runtimes of all ranks share the n-th.
  sim_boot& boot_of(std::size_t turn);
  /// Returns the number of runtimes that this rank has made before, and counts the new one.
  std::size_t next_turn(int rank) noexcept { return turns_[static_cast<std::size_t>(rank)]++; }

 private:
  /// One fiber of a rank.
  struct strand {
    int rank = 0;
    bool main = true;
    std::size_t number = 0;
    std::unique_ptr<fiber> body;
    time_ps owes_ps = 0;
    time_ps busy_until_ps = 0;  ///< while it settles
    bool parked = false;
    bool woken = false;
    bool hopeless = false;           ///< ended, or parked without a chance of progress
    time_ps parked_ps = 0;           ///< when it began to wait
    time_ps deadline_ps = never_ps;  ///< while it is parked
    time_ps timer_ps = never_ps;     ///< its earliest entry in timers_
    unsigned fruitless = 0;          ///< consecutive sleeps that ended by time alone
    time_ps fruitless_since_ps = 0;  ///< the end of the first of them
    std::string_view call;
    int target = -1;
    bool started = false;
    bool ended = false;
    call_stack stack;  ///< for a report
  };
  struct timer {
    time_ps when_ps;
    std::size_t strand;
    bool operator>(const timer& other) const noexcept {
      return when_ps != other.when_ps ? when_ps > other.when_ps : strand > other.strand;
    }
  };

  strand& add_strand(int rank, bool main, std::function<void()> run);
  void resume(strand& s) noexcept;
  void resume_at(strand& s, time_ps when_ps) noexcept;
  void suspend() noexcept;
  void let_pass(strand& s, time_ps until_ps) noexcept;
  void wake_now(int rank) noexcept;
  void set_timer(strand& s) noexcept;
  void pop_timer() noexcept;
  void judge(strand& s) noexcept;
  void end_main(strand& s, fate what, int code, std::string error) noexcept;
  void stop(int rank) noexcept;
  void tell_watchers() noexcept;
  bool step();
  void report(std::string_view why);
  [[nodiscard]] std::string describe(int rank) const;
  [[nodiscard]] std::vector<std::string> call_sites_of(const std::vector<int>& ranks);

  world_options options_;
  int per_node_;
  int nodes_;
  event_queue events_;
  std::vector<timer> timers_;  ///< a heap
  std::deque<strand> strands_;
  std::vector<std::vector<std::size_t>> strands_of_;
  strand* current_ = nullptr;
  bool asks_for_stacks_ = false;
  std::size_t hopeful_ = 0;  ///< fibers that are not hopeless
  int living_ = 0;           ///< running main functions
  std::vector<char> lost_;
  std::vector<int> deaths_;
  std::vector<rank_record> records_;
  std::vector<std::size_t> turns_;
  std::vector<char> watches_;
  std::vector<int> inside_;                    ///< joined runtimes of each rank
  std::vector<time_ps> memory_busy_until_ps_;  ///< for each node: end of the traffic of its copies
  std::deque<std::unique_ptr<sim_boot>> boots_;
  std::uint64_t steps_ = 0;
  bool aborted_ = false;
  int abort_code_ = 0;
  std::string abort_message_;
  std::string deadlock_;
  std::uint64_t thread_;
  std::unique_ptr<watchdog> watchdog_;
};

}  // namespace rma::sim
