// SPDX-License-Identifier: Apache-2.0
/// \file
/// A barrier of a team by messages, for any fabric and any number of ranks, which runs again and again: the schedule
/// `dissemination` of src/coll, kept. Its signals have no data: they are notifications (channel/notifications.hpp).
///
///   round k:  notify the member 2^k above --> wait until the one 2^k below has notified this one --> round k + 1
///
/// A member that notifies in round k has been notified in all earlier rounds: after the last round all have come.
#pragma once

#include <cstdint>

#include "channel/wait.hpp"
#include "rma/error.hpp"

namespace rma::detail {

namespace coll {
class running;
class team_state;
}  // namespace coll

struct team_core;

class message_barrier {
 public:
  message_barrier() = default;
  message_barrier(const message_barrier&) = delete;
  message_barrier& operator=(const message_barrier&) = delete;
  ~message_barrier() { drop(); }

  /// Blocks until all members have come. `id`: the same at all members and in all calls, and of no other barrier.
  /// `failed` reports why it cannot end, as lost_member does; it ends as well when the awaited member is gone.
  status run(team_core& team, std::uint64_t id, wait_question<status> failed) noexcept;

  // The same in steps, for callers that wait elsewhere.
  void start(team_core& team, std::uint64_t id) noexcept;
  /// `not_yet`, or the result of the run; any progress moves it.
  [[nodiscard]] status state() const noexcept;
  /// Ends the run, if it has not ended.
  void give_up(status why) noexcept;
  /// The world rank of the member whose notification it waits for, or -1.
  [[nodiscard]] int awaited() const noexcept;
  /// After the last run. The team is still there.
  void drop() noexcept;

 private:
  void prepare(team_core& team, std::uint64_t id) noexcept;

  coll::team_state* of_ = nullptr;
  coll::running* run_ = nullptr;  ///< null before the first run
};

}  // namespace rma::detail
