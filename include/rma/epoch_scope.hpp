// SPDX-License-Identifier: Apache-2.0
/// \file
/// The scope of a passive epoch: what `Window::lock` and `Window::lock_all` return.
#pragma once

#include <cxxabi.h>

#include <source_location>
#include <utility>

#include "rma/detail/window_ops.hpp"

#pragma GCC visibility push(default)

namespace rma {

namespace detail {

/// Detects whether an exception has been thrown since its construction. std::uncaught_exceptions() looks the thread's
/// state up at each call; this class does so once (Itanium C++ ABI, 2.2.2).
class exception_watch {
 public:
  exception_watch() noexcept : now_(&reinterpret_cast<state*>(abi::__cxa_get_globals())->uncaught), before_(*now_) {}
  [[nodiscard]] bool thrown() const noexcept { return *now_ > before_; }

 private:
  struct state {
    void* caught;
    unsigned int uncaught;
  };
  const unsigned int* now_;
  unsigned int before_;
};

}  // namespace detail

/// Closes a passive epoch when the scope ends. If an exception leaves the scope, the epoch is abandoned: the lock is
/// released and the window is marked failed. The destructor then waits only for reads that the network has begun, which
/// cannot be cancelled. The Error of a refused call (-1 to -31 of `status`; of any call of the library) ends the epoch
/// as `unlock` does, and the window stays usable.
/// In both cases the buffers may be destroyed: operations that no flush has completed may not happen, and their results
/// are not written any more, except where a Request that lives longer reports completion.
/// Errors     the destructor cannot report any: if the epoch cannot be closed (peer_failed, transfer_failed), the
///            window is marked failed. `unlock` as the scope's last call throws instead, and leaves the window usable.
///            An epoch that the window's own `unlock` or `unlock_all` has closed stays closed
/// Threads    belongs to the thread that opened it
/// Lifetime   within that of its window, which may be moved meanwhile. Buffers of its puts and gets must outlive it, or
///            the last flush: declare them before it
class [[nodiscard]] Epoch {
 public:
  /// Made by Window::lock and lock_all.
  Epoch(detail::window_view* view, int target) noexcept : view_(view), target_(target) {}
  Epoch(Epoch&& other) noexcept
      : view_(std::exchange(other.view_, nullptr)), target_(other.target_), exceptions_(other.exceptions_) {}
  Epoch& operator=(Epoch&&) = delete;
  ~Epoch() {
    if (view_ == nullptr) return;
    detail::window_view* const view = view_;
    if (exceptions_.thrown() || !ok(close())) detail::leave_epoch(*view, target_);
  }

  /// Completes all operations issued to the target (all targets for lock_all), at both sides. The epoch stays open.
  /// Errors     not_locked after `unlock`, and for a moved-from Epoch
  void flush(std::source_location where = std::source_location::current()) {
    require_open(detail::call::flush, where);
    const status s = target_ < 0 ? detail::flush_all(*view_) : detail::flush(*view_, target_);
    detail::require(*view_, detail::call::flush, s, target_, 0, 0, where);
  }
  /// Completes all operations and releases the lock now.
  void unlock(std::source_location where = std::source_location::current()) {
    require_open(detail::call::unlock, where);
    detail::window_view* const view = view_;
    const status s = close();
    if (s != status::done) detail::raise(*view, detail::call::unlock, s, target_, 0, 0, where);
  }

 private:
  /// Throws if the epoch is closed or moved from.
  void require_open(detail::call what, const std::source_location& where) const {
    if (view_ == nullptr) detail::raise(detail::freed_window, what, status::not_locked, target_, 0, 0, where);
  }
  status close() noexcept {
    detail::window_view* const view = std::exchange(view_, nullptr);
    return target_ < 0 ? detail::unlock_all(*view) : detail::unlock(*view, target_);
  }
  detail::window_view* view_;
  int target_;
  detail::exception_watch exceptions_;
};

}  // namespace rma

#pragma GCC visibility pop
