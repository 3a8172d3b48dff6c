// SPDX-License-Identifier: Apache-2.0
/// \file
/// A synchronization in the background: the object behind the requests of ifence, ilock, iunlock, iflush and icomplete.
/// Every round of progress advances it, in any thread; the thread that tests or waits for the request concludes
/// it.
#pragma once

#include "rma/error.hpp"

namespace rma::detail {

struct window_core;

class sync_task {
 public:
  virtual ~sync_task() = default;

  /// Advances as far as it can without waiting; returns `not_yet` or its result. Not called again after the end. Called
  /// by any thread, alone in the window; it must not change state that inlined calls read.
  virtual status advance(window_core& w) noexcept = 0;
  /// Called after `advance` has returned that result: changes the window's epoch and its views, in the thread of the
  /// request. Returns the status that the request reports.
  virtual status conclude(window_core& /*w*/, status s) noexcept { return s; }
  /// `done` while it can still complete, else the reason why not. Called before its end.
  virtual status failed(window_core& w) noexcept = 0;
  /// Called when the window is freed: the task must not access it any more.
  virtual void forget_window() noexcept {}
  /// Cancels the task for this reason: it is not advanced any more.
  virtual void give_up(window_core& /*w*/, status /*why*/) noexcept {}
  /// True if no event wakes this rank when the task could advance: it has to be polled.
  [[nodiscard]] virtual bool silent() const noexcept { return false; }
  /// Called when its request is dropped before its end: true if the task may be dropped, else it is waited for.
  [[nodiscard]] virtual bool may_be_dropped() const noexcept { return false; }
};

}  // namespace rma::detail
