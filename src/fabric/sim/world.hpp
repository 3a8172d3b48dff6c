// SPDX-License-Identifier: Apache-2.0
/// \file
/// A simulated job: its ranks are fibers of one thread, and its time is virtual.
///
/// At one time exactly one thing runs: a rank's fiber, or an event. A rank that runs owes the time that its work takes
/// (`charge`); when it settles, events and other ranks live through that time first. A run depends on its options only.
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

/// A rank's processor does these with its time.
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
  bool inlined = false;         ///< the inlined halves of calls do their work, and nobody accounts for it
  std::string topology{default_topology};
  parameters machine{};                           ///< load_parameters(default_machine) or others
  fault_model today = calm();                     ///< of the network between the nodes
  bool watch_network = false;                     ///< keep what its links and engines did
  std::map<std::string, std::string> settings{};  ///< of every rank's runtime
  std::chrono::milliseconds watchdog{};           ///< real time that one rank may run alone; 0: it is not looked at
  std::function<void(const std::string&)> on_stall{};  ///< gets what the watchdog reports
};

/// How a rank's main function ended.
enum class fate : std::uint8_t {
  running,   ///< it has not ended: the run did before
  finished,  ///< it returned
  threw,     ///< an exception came out of it
  killed,    ///< by `kill`
};

enum class Fate : std::uint8_t;  ///< the same for users, see rma/sim.hpp
Fate fate_of(fate what) noexcept;

struct rank_record {
  fate what = fate::running;
  int exit_code = 0;
  std::string error;  ///< of the exception
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
  /// Ascending.
  [[nodiscard]] std::vector<int> ranks_of(int node) const;

  /// Runs `main(rank)` in a fiber for each rank, until all have ended, nothing can happen any more, the time is up or a
  /// rank has ended the job. Once.
  void run(const std::function<int(int rank)>& main);

  // ---- time -------------------------------------------------------------------------------------------------
  [[nodiscard]] event_queue& events() noexcept { return events_; }
  /// The rank whose fiber runs; -1 in an event.
  /// The fiber that runs now, by a number that is its own; 0 if none does.
  [[nodiscard]] std::uintptr_t running_strand() const noexcept { return reinterpret_cast<std::uintptr_t>(current_); }
  [[nodiscard]] int running() const noexcept { return current_ == nullptr ? -1 : current_->rank; }
  /// Where this rank is in time: now, and what it owes.
  [[nodiscard]] time_ps local_time_ps(int rank) const noexcept;
  /// The rank's processor is busy for so long. It lives through that when it settles.
  void charge(int rank, time_ps work_ps, activity what) noexcept;
  /// The rank's processor copies so many bytes, and is busy with it for that long and `fixed_ps` more. Its node's
  /// memory moves two bytes for each, for one copy after the other: while it cannot keep up, the copy takes longer.
  void charge_copy(int rank, std::uint64_t bytes, time_ps fixed_ps, activity what) noexcept;
  /// Time passes until the running rank owes nothing.
  void settle(int rank) noexcept;
  /// The same, and whatever others can do at that moment comes first.
  void yield(int rank) noexcept;
  /// The same, and so much more time passes, whatever wakes it meanwhile.
  void stay_away(int rank, time_ps for_ps) noexcept;
  /// From here on a wake is remembered until the running fiber parks.
  void arm(int rank) noexcept;
  /// Settles, then sleeps until a wake, or until that time.
  void park(int rank, time_ps until_ps) noexcept;
  /// Ends the sleep of a rank's fibers; now if called by an event, or where the running rank is in time.
  void wake(int rank) noexcept;
  /// The running rank's wait has led to something: a look around that finds nothing is not a reason to go on for ever.
  void got_on(int rank) noexcept;
  /// The public call that the running fiber is in, for reports. The text is not copied.
  void enter_call(std::string_view call, int target) noexcept;

  // ---- fibers -----------------------------------------------------------------------------------------------
  /// A second fiber of the running rank; its number. Throws Error(out_of_memory).
  std::size_t spawn(int rank, std::function<void()> run);
  /// Waits for its end.
  void join(std::size_t helper_thread) noexcept;

  // ---- deaths and ends --------------------------------------------------------------------------------------
  /// Neither killed nor gone without leaving the job.
  [[nodiscard]] bool alive(int rank) const noexcept { return !lost_[static_cast<std::size_t>(rank)]; }
  /// Its main function runs.
  [[nodiscard]] bool active(int rank) const noexcept;
  /// It stops where it is, for ever. If it is the running one, this does not return.
  void kill(int rank) noexcept;
  void kill_at(int rank, time_ps when_ps);
  /// The others have to take it for dead: its runtime was left by an exception, say.
  void announce(int rank) noexcept;
  /// Ranks in the order of their deaths.
  [[nodiscard]] const std::vector<int>& deaths() const noexcept { return deaths_; }
  /// Ends the job. Does not return if a rank runs.
  void abort(int code, std::string_view message) noexcept;
  /// Ends the running rank as if its main function had returned this.
  [[noreturn, gnu::visibility("default")]] void exit_rank(int code) noexcept;
  /// A runtime of this rank is in the job, or has left it. Who ends inside it has died.
  void enter_job(int rank) noexcept { ++inside_[static_cast<std::size_t>(rank)]; }
  void leave_job(int rank) noexcept { --inside_[static_cast<std::size_t>(rank)]; }
  /// Woken at each end and death of a rank: waits of the boot layer look again.
  void watch_ends(int rank, bool yes);

  // ---- what came of it --------------------------------------------------------------------------------------
  [[nodiscard]] const rank_record& record(int rank) const noexcept { return records_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool aborted() const noexcept { return aborted_; }
  [[nodiscard]] int abort_code() const noexcept { return abort_code_; }
  [[nodiscard]] const std::string& abort_message() const noexcept { return abort_message_; }
  /// Empty, or who waits for what, one line each.
  [[nodiscard]] const std::string& deadlock() const noexcept { return deadlock_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard, gnu::visibility("default")]] bool same_thread() const noexcept;

  /// Round `turn` of the job: each runtime of a rank takes part in the next.
  sim_boot& boot_of(std::size_t turn);
  /// How many runtimes this rank has made so far; counts the one that is being made.
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
    bool hopeless = false;           ///< parked, and only for looking around
    time_ps deadline_ps = never_ps;  ///< while it is parked
    time_ps timer_ps = never_ps;     ///< its earliest entry in timers_
    unsigned fruitless = 0;          ///< sleeps in a row that only time has ended
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
  int living_ = 0;           ///< main functions that run
  std::vector<char> lost_;
  std::vector<int> deaths_;
  std::vector<rank_record> records_;
  std::vector<std::size_t> turns_;
  std::vector<char> watches_;
  std::vector<int> inside_;                    ///< runtimes that are in the job
  std::vector<time_ps> memory_busy_until_ps_;  ///< of each node, with copies
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
