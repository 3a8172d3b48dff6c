// SPDX-License-Identifier: Apache-2.0
/// \file
/// The recursive mutex of a window that several threads share: at thread_level::multiple, and while a synchronization
/// with a request is pending. A thread releases it completely while it waits for a condition that another thread may
/// have to cause.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "core/assert.hpp"
#include "core/small_lock.hpp"
#include "fabric/platform.hpp"

namespace rma::detail {

class window_mutex {
 public:
  void enter(platform& around) noexcept {
    const std::uintptr_t self = around.thread();
    if (!is_inside(self)) {
      around.take(lock_);
      owner_.store(self, std::memory_order_relaxed);
    }
    ++depth_;
  }
  /// Enters if no thread is inside, not even this one.
  [[nodiscard]] bool try_enter(platform& around) noexcept {
    if (!lock_.try_lock()) return false;
    owner_.store(around.thread(), std::memory_order_relaxed);
    depth_ = 1;
    return true;
  }
  void exit() noexcept {
    RMA_ASSERT(depth_ != 0 && lock_.is_taken());
    if (--depth_ != 0) return;
    owner_.store(no_thread, std::memory_order_relaxed);
    lock_.unlock();
  }
  /// Leaves completely; returns the depth, which is passed to `come_back`.
  [[nodiscard]] unsigned leave_wholly(platform& around) noexcept {
    if (!is_inside(around.thread())) return 0;
    const unsigned depth = std::exchange(depth_, 1U);
    exit();
    return depth;
  }
  void come_back(platform& around, unsigned depth) noexcept {
    if (depth == 0) return;
    enter(around);
    RMA_ASSERT(depth_ == 1);  // it was outside
    depth_ = depth;
  }

 private:
  static constexpr std::uintptr_t no_thread = 0;

  /// No lock is needed: only this thread itself stores its own id there.
  [[nodiscard]] bool is_inside(std::uintptr_t self) const noexcept {
    return owner_.load(std::memory_order_relaxed) == self;
  }

  small_lock lock_;
  std::atomic<std::uintptr_t> owner_ = no_thread;
  unsigned depth_ = 0;  ///< the owner's number of entries
};

}  // namespace rma::detail
