// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state of a team for its collectives: plans by shape, active runs, and the count of collectives.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coll/memory.hpp"
#include "coll/running.hpp"
#include "coll/signature.hpp"
#include "core/assert.hpp"

namespace rma::detail {
struct team_core;
}

namespace rma::detail::coll {

class machine;
class team_puts;

class team_state {
 public:
  /// `id` names it among all: the team's own id for the collectives of its program, else that of others, which use no
  /// memory of the node.
  team_state(machine& all, team_core& team, std::uint64_t id);
  team_state(const team_state&) = delete;
  team_state& operator=(const team_state&) = delete;
  /// Ends pending collectives with window_freed.
  ~team_state();

  [[nodiscard]] team_core& team() noexcept { return team_; }
  [[nodiscard]] machine& all() noexcept { return all_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// True if a blocking call uses shared memory: the same at all members, whatever their layouts.
  [[nodiscard]] bool in_memory(const collective_call& call) const noexcept;
  /// True if operands are combined by one tree over the members, whatever the algorithm.
  [[nodiscard]] bool reproducible() const noexcept { return reproducible_; }
  /// Runs the call in memory.
  status run_in_memory(const collective_call& call, const std::source_location& where, std::string* why) noexcept;
  /// For the trace, after it: the form that it has had, and why.
  [[nodiscard]] std::string_view form_in_memory() const noexcept { return memory_->form(); }
  [[nodiscard]] std::string reason_in_memory(const collective_call& call) const;
  /// Waits after a failure, before its text is read, for the message with the place of the other member's call.
  void wait_for_place(std::uint64_t turn) noexcept;

  // ---- the caller holds the progress lock ---------------------------------------------------------------------------
  /// Collectives that are pending or kept stay as they are.
  void set_reproducible(bool on) noexcept;
  /// The channels of collectives by puts, made at the first use.
  [[nodiscard]] team_puts& puts();
  [[nodiscard]] bool has_puts() const noexcept { return puts_ != nullptr; }
  /// Starts a collective; it reuses records of its plan. Return it with release(), or attach it to a request.
  running& start(const collective_call& call, const std::source_location& where) noexcept;
  /// A record for a persistent collective, which is not started; it is returned when it is not kept any more.
  [[nodiscard]] running& keep(const collective_call& call, const std::source_location& where);
  /// The next collective that is started has this number: for a caller that counts them.
  void number_next(std::uint64_t turn) noexcept { turns_ = turn - 1; }
  /// Starts a kept record, which must be complete and released.
  void start(running& kept) noexcept;
  /// A record of the team's barrier of that name (runtime/message_barrier.hpp), which is not started. Its runs are not
  /// numbered among the team's collectives.
  [[nodiscard]] running& keep_barrier(std::uint64_t id);
  void start_barrier(running& r) noexcept;
  void drop_barrier(running& r) noexcept;
  /// Returns a record that is complete, when it is not read any more.
  void give_back(running& r) noexcept;
  void ended(running& r) noexcept;
  /// Handles a failure of a member's collective of that number, for a reason that it alone may know. `other`: the
  /// member that has made a different call, if that is the reason; it sends the place of its call to all of them.
  void on_failure(std::uint64_t turn, status why, std::string text, int other) noexcept;
  /// Handles the message with the place of a call.
  void on_place(std::uint64_t turn, std::string text) noexcept;
  /// Reports a failure of this member's collective to all members.
  void tell(std::uint64_t turn, status why, const std::string& text, int other = -1) noexcept;
  /// Called when a member is dead, before the caller gets the error: all pending collectives end with `why` as well,
  /// and write into no buffer any more. Without the progress lock.
  void give_up_all(status why) noexcept;
  /// The text of a failure from the member that found it; empty if there is none.
  [[nodiscard]] std::string why(std::uint64_t turn) const;
  /// Called when a wait is about to sleep. A member that is in memory, in the same collective as one that waits for
  /// messages here, will send none; and a message that has arrived for it but belongs to another call will not be
  /// received.
  void look_for_mismatches() noexcept;

 private:
  struct failure {
    status why = status::done;
    std::string text;
    int other = -1;
  };
  static constexpr std::size_t records_max = 16;
  using call_records = std::array<call_record, records_max>;

  /// Records a call, for reports to members that are not as far; the last `records_max` calls are kept.
  void record(std::int32_t signature, std::uint64_t turn, const std::source_location& where) noexcept {
    RMA_ASSERT(records_ != nullptr);
    (*records_)[turn % records_max] = {turn, signature, where};
  }
  [[nodiscard]] std::string place_of(std::uint64_t turn) const;
  /// Shows it, as reported, to members that are in this collective in memory, so that they report the same.
  void mark_failed(std::uint64_t turn, status why) noexcept {
    if (memory_ != nullptr) memory_->mark_failed(turn, why);
  }
  void send_to_all(std::uint64_t turn, status why, const std::string& text, int other) noexcept;

  status fail_in_memory(const collective_call& call, std::uint64_t number, status s, const std::source_location& where,
                        std::string* why) noexcept;
  /// Waits, before the text is read, for the message with the failure that another member has found.
  void wait_for_failure(std::uint64_t turn) noexcept;
  template <class Heard>
  void wait_to_hear(Heard&& heard) noexcept;
  running& start(plan& p, const collective_call& call, const std::source_location& where) noexcept;
  running& take(plan& p, const collective_call& call, const std::source_location& where);
  plan& find(const collective_call& call);
  plan& make(const collective_call& call, std::int32_t signature);

  machine& all_;
  team_core& team_;
  std::uint64_t id_;
  std::uint64_t turns_ = 0;                     ///< number of collectives started
  std::atomic<std::uint64_t> memory_turn_ = 0;  ///< number of the last one in memory
  std::vector<std::unique_ptr<plan>> plans_;    ///< the most recently used one first
  std::unique_ptr<plan> refused_;
  std::unique_ptr<plan> barrier_;               ///< plan of all its barriers by messages; null before the first
  std::unique_ptr<team_puts> puts_;             ///< null before the first collective by puts
  std::unique_ptr<memory_collectives> memory_;  ///< null where not all members share memory
  std::atomic<bool> failures_known_ = false;    ///< a failure has been recorded
  std::atomic<bool> told_ = false;              ///< the collective in memory has failed at another member
  std::vector<int> nodes_;                      ///< see nodes_of_members(); found when the first plan is made
  bool reproducible_;
  running_list<&running::in_team> active_;
  std::unique_ptr<call_records> records_{};      ///< null while its only runs are barriers
  std::map<std::uint64_t, failure> failures_;    ///< by turn; empty except after mistakes
  std::map<std::uint64_t, std::string> places_;  ///< call sites of the other members; one may arrive before its failure
};

}  // namespace rma::detail::coll
