// SPDX-License-Identifier: Apache-2.0
/// \file
/// The scope of a public call on a window: checks whether it may be made, records it in the trace (RMA_TRACE), advances
/// virtual time, and excludes other threads that share the window.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "window/window_core.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {

/// The call lasts as long as the scope. It costs one test without a trace, in real time, and where threads take
/// turns.
class entry_scope {
 public:
  /// The name of the call in window_core::in_call; empty if there is none.
  [[nodiscard]] static std::string place_of(const window_core& w);

  /// A call on an epoch; its protocol follows from the window.
  entry_scope(const window_core& w, call what, int target = -1) noexcept
      : w_(w), outermost_(w.in_call.load(std::memory_order_relaxed) == 0), what_(what), target_(target) {
    if (outermost_) w.in_call.store(number_of(what, target), std::memory_order_relaxed);
    if (w.needs_entry_scope) [[unlikely]]
      begin();
  }
  /// An operation; `o` has the chosen protocol at the end.
  entry_scope(const window_core& w, const operation_args& a, const checked_operation& o) noexcept
      : entry_scope(w, a.kind, a.target) {
    operation_ = &o;
  }
  entry_scope(const entry_scope&) = delete;
  entry_scope& operator=(const entry_scope&) = delete;
  ~entry_scope() {
    if (outermost_) w_.in_call.store(0, std::memory_order_relaxed);
    if (w_.needs_entry_scope) [[unlikely]]
      end();
  }

 private:
  void begin() noexcept;
  void end() noexcept;
  void tell() noexcept;
  void tell_signal() noexcept;
  void tell_how(trace_event& e, std::string& text) noexcept;

  /// The value of window_core::in_call; 0 is no call.
  static constexpr std::uint64_t number_of(call what, int target) noexcept {
    return (std::uint64_t{static_cast<std::uint32_t>(target)} << 32) | (1U + static_cast<unsigned>(what));
  }

  const window_core& w_;
  bool outermost_;  ///< it is recorded: neither part of another call nor beside one of another thread
  const checked_operation* operation_ = nullptr;
  call what_;
  int target_;
  bool inside_ = false;      ///< it holds the window's mutex
  bool under_way_ = false;   ///< operations were pending when the call began
  std::uint64_t words_ = 0;  ///< number of barrier words written before the call
  std::int64_t begin_ns_ = 0;
};

/// Excludes other threads from the window, for calls that are not traced.
class window_guard {
 public:
  explicit window_guard(const window_core& w) noexcept : mutex_(w.shared_by_threads ? &w.mutex : nullptr) {
    if (mutex_ != nullptr) [[unlikely]]
      mutex_->enter(w.ctx->around());
  }
  window_guard(const window_guard&) = delete;
  window_guard& operator=(const window_guard&) = delete;
  ~window_guard() {
    if (mutex_ != nullptr) [[unlikely]]
      mutex_->exit();
  }

 private:
  window_mutex* mutex_;
};

/// Lets other threads into the window while this one waits for a condition that they may have to cause.
class window_unlock_guard {
 public:
  explicit window_unlock_guard(const window_core& w, bool wanted = true) noexcept
      : w_(w), mutex_(w.shared_by_threads && wanted ? &w.mutex : nullptr) {
    if (mutex_ != nullptr) [[unlikely]]
      depth_ = mutex_->leave_wholly(w.ctx->around());
  }
  window_unlock_guard(const window_unlock_guard&) = delete;
  window_unlock_guard& operator=(const window_unlock_guard&) = delete;
  ~window_unlock_guard() {
    if (mutex_ != nullptr) [[unlikely]]
      mutex_->come_back(w_.ctx->around(), depth_);
  }

 private:
  const window_core& w_;
  window_mutex* mutex_;
  unsigned depth_ = 0;
};

/// Marks the target's lock as being acquired or released by this thread, in several steps between which other threads
/// may enter. Does nothing where threads do not share the window.
class lock_in_transition {
 public:
  lock_in_transition(window_core& w, int target) : w_(w), target_(target) {
    if (w.shared_by_threads) w.claimed.push_back(target);
  }
  lock_in_transition(const lock_in_transition&) = delete;
  lock_in_transition& operator=(const lock_in_transition&) = delete;
  ~lock_in_transition() {
    if (w_.shared_by_threads) [[unlikely]]
      end();
  }

 private:
  void end() noexcept;

  window_core& w_;
  int target_;
};

inline bool is_claimed(const window_core& w, int target) noexcept {
  return std::find(w.claimed.begin(), w.claimed.end(), target) != w.claimed.end();
}
/// Waits until no other thread is acquiring or releasing the target's lock.
status await_claim(window_core& w, int target) noexcept;

/// `done` if this thread may make a call on the window now, else `window_freed`, `window_failed` or `wrong_thread`.
status usable(const window_view& view) noexcept;
/// As `usable`, for calls that a failed window allows: those that close an epoch.
status closable(const window_view& view) noexcept;

}  // namespace rma::detail
