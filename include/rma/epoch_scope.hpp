// SPDX-License-Identifier: Apache-2.0
/// \file
/// The scope of a passive epoch: what `Window::lock` and `Window::lock_all` return.
#pragma once

#include <exception>
#include <source_location>
#include <utility>

#include "rma/detail/window_ops.hpp"

namespace rma {

/// Closes a passive epoch when the scope ends. Left by an exception, it abandons the epoch: the lock is given
/// back without waiting for anything and the window is marked failed.
class [[nodiscard]] Epoch {
 public:
  Epoch(detail::window_view* view, int target) noexcept
      : view_(view), target_(target), exceptions_(std::uncaught_exceptions()) {}
  Epoch(Epoch&& other) noexcept
      : view_(std::exchange(other.view_, nullptr)), target_(other.target_), exceptions_(other.exceptions_) {}
  Epoch& operator=(Epoch&&) = delete;
  ~Epoch() {
    if (view_ == nullptr) return;
    detail::window_view* const view = view_;
    if (std::uncaught_exceptions() > exceptions_ || !ok(close())) detail::abandon_epoch(*view, target_);
  }

  /// Completes what was issued to the target (all targets for lock_all), here and there, and stays in the epoch.
  void flush(std::source_location where = std::source_location::current()) {
    const status s = target_ < 0 ? detail::flush_all(*view_) : detail::flush(*view_, target_);
    detail::require(*view_, detail::call::flush, s, target_, 0, 0, where);
  }
  /// Completes and gives the lock back now.
  void unlock(std::source_location where = std::source_location::current()) {
    if (view_ == nullptr)
      detail::raise(detail::freed_window, detail::call::unlock, status::not_locked, target_, 0, 0, where);
    detail::window_view* const view = view_;
    const status s = close();
    if (s != status::done) detail::raise(*view, detail::call::unlock, s, target_, 0, 0, where);
  }

 private:
  status close() noexcept {
    detail::window_view* const view = std::exchange(view_, nullptr);
    return target_ < 0 ? detail::unlock_all(*view) : detail::unlock(*view, target_);
  }
  detail::window_view* view_;
  int target_;
  int exceptions_;
};

}  // namespace rma
