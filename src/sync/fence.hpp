// SPDX-License-Identifier: Apache-2.0
/// \file
/// One fence, step by step: carries out the steps (fence_phase.hpp) in the order of the window's design (fence_*.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "sync/fence_phase.hpp"
#include "window/window_core.hpp"
#include "xfer/sync_task.hpp"

namespace rma::detail {

class fence_run final : public sync_task {
 public:
  /// The open epoch must be one that a fence may end. `apart`: the caller does not wait; no epoch is open until the
  /// end.
  fence_run(window_core& w, assertion promises, bool among_neighbors, bool apart) noexcept;

  status advance(window_core& w) noexcept override;
  /// Opens the next epoch, or none; or undoes a fence that cannot end.
  status conclude(window_core& w, status s) noexcept override;
  status failed(window_core& w) noexcept override;
  void give_up(window_core& w, status why) noexcept override;

 private:
  [[nodiscard]] fence_phase next(const window_core& w) const noexcept;
  void issue_before_finish(window_core& w) noexcept;
  void enter(window_core& w) noexcept;
  status step(window_core& w) noexcept;
  void enter_finish(window_core& w) noexcept;
  void enter_complete(window_core& w) noexcept;
  void enter_count(window_core& w) noexcept;
  void enter_issue(window_core& w) noexcept;
  void enter_flags(window_core& w) noexcept;
  status announce(window_core& w) noexcept;
  status complete_dirty(window_core& w) noexcept;
  bool arrived(window_core& w) noexcept;
  bool opened(window_core& w) noexcept;
  void end(window_core& w) noexcept;
  void say_finished(window_core& w, int target) noexcept;
  void take(status s) noexcept;

  assertion promises_;
  bool among_neighbors_;
  bool apart_;
  bool broken_ = false;  ///< a promise was broken
  fence_phase phase_ = fence_phase::begin;
  access_epoch before_ = access_epoch::none;
  std::uint32_t number_ = 0;
  std::uint32_t expected_ = 0;    ///< finish messages and immediates
  status result_ = status::done;  ///< the result so far
  std::vector<int> due_;          ///< targets to be notified when the operations on them are complete
};

/// True if no epoch is open, or one that a fence may end.
bool may_fence(const window_core& w) noexcept;
/// Blocks until the fence has ended.
status run_to_end(window_core& w, fence_run& run) noexcept;

}  // namespace rma::detail
