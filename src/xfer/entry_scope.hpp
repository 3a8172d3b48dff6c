// SPDX-License-Identifier: Apache-2.0
/// \file
/// One public call on a window: whether it may be made, in the trace (RMA_TRACE) and in virtual time, and alone in the
/// window where several threads share it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "window/window_core.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {

/// From the making of the scope to its end. Costs one test where nothing is traced, time is real, and threads take
/// turns.
class entry_scope {
 public:
  /// The call that a window is in, as window_core::in_call says, for people; empty if it is in none.
  [[nodiscard]] static std::string place_of(const window_core& w);

  /// A call of an epoch; its protocol follows from the window.
  entry_scope(const window_core& w, call what, int target = -1) noexcept
      : w_(w), outermost_(w.in_call.load(std::memory_order_relaxed) == 0), what_(what), target_(target) {
    if (outermost_) w.in_call.store(number_of(what, target), std::memory_order_relaxed);
    if (w.needs_entry_scope) [[unlikely]]
      begin();
  }
  /// An operation; `o` says at the end what was chosen.
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
  void tell_how(trace_event& e, std::string& text) noexcept;

  /// window_core::in_call says this; 0 is no call.
  static constexpr std::uint64_t number_of(call what, int target) noexcept {
    return (std::uint64_t{static_cast<std::uint32_t>(target)} << 32) | (1U + static_cast<unsigned>(what));
  }

  const window_core& w_;
  bool outermost_;  ///< the call that is told: not part of another, nor beside one of another thread
  const checked_operation* operation_ = nullptr;
  call what_;
  int target_;
  bool inside_ = false;      ///< the window's mutex, which is locked
  bool under_way_ = false;   ///< something, when the call began
  std::uint64_t words_ = 0;  ///< rounds of barriers that had been written then
  std::int64_t begin_ns_ = 0;
};

/// Alone in the window, for what is not traced.
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
      mutex_->leave();
  }

 private:
  window_mutex* mutex_;
};

/// Lets other threads into the window, while this one waits for what they may have to bring about.
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

/// This thread takes or gives back the target's lock, in several steps with absences in between. Nothing where the
/// window is not shared by threads.
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
/// Until no other thread is at the target's lock.
status await_claim(window_core& w, int target) noexcept;

/// Whether this thread may make a call on the window now: `window_freed`, `window_failed`, `wrong_thread`.
status usable(const window_view& view) noexcept;
/// The same for calls that a failed window allows: those that close an epoch.
status closable(const window_view& view) noexcept;

}  // namespace rma::detail
