// SPDX-License-Identifier: Apache-2.0
/// \file
/// A synchronization that goes on while its caller does something else: what stands behind the requests of ifence,
/// ilock, iunlock, iflush and icomplete. Every round of progress advances it, whichever thread makes it; the thread
/// that looks at the request concludes it.
#pragma once

#include "rma/error.hpp"

namespace rma::detail {

struct window_core;

class sync_task {
 public:
  virtual ~sync_task() = default;

  /// Goes as far as it can without waiting: `not_yet`, or how it ended. Not called again after that. Called by any
  /// thread, alone in the window, and changes nothing that an inlined call reads.
  virtual status advance(window_core& w) noexcept = 0;
  /// After `advance` has ended so: changes the window's epoch and its views, on the thread that looks at the request.
  /// Returns what the request reports.
  virtual status conclude(window_core& /*w*/, status s) noexcept { return s; }
  /// Whether it can still end: `done`, or why not. Asked while it has not ended.
  virtual status failed(window_core& w) noexcept = 0;
  /// The window is gone: nothing of it may be touched any more.
  virtual void forget_window() noexcept {}
  /// It will not be advanced any more, for this reason.
  virtual void give_up(window_core& /*w*/, status /*why*/) noexcept {}
  /// True if nobody rings this rank when it could go on: it has to be asked again and again.
  [[nodiscard]] virtual bool silent() const noexcept { return false; }
  /// Its request was dropped before its end: true if that is all right, else it is waited for.
  [[nodiscard]] virtual bool may_be_dropped() const noexcept { return false; }
};

}  // namespace rma::detail
