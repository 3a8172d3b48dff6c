// SPDX-License-Identifier: Apache-2.0
/// \file
/// The lock of a window that several threads share (thread_level::multiple). A thread that is inside may enter again;
/// it leaves, as often as it has entered, where it waits for what another thread may have to bring about.
#pragma once

#include <pthread.h>

#include <atomic>
#include <utility>

#include "core/small_lock.hpp"

namespace rma::detail {

class door {
 public:
  void enter() noexcept {
    if (!inside()) {
      lock_.lock();
      owner_.store(::pthread_self(), std::memory_order_relaxed);
    }
    ++depth_;
  }
  void leave() noexcept {
    if (--depth_ != 0) return;
    owner_.store(nobody, std::memory_order_relaxed);
    lock_.unlock();
  }
  /// However often this thread has entered; what `come_back` is to be given.
  [[nodiscard]] unsigned leave_wholly() noexcept {
    if (!inside()) return 0;
    const unsigned depth = std::exchange(depth_, 1U);
    leave();
    return depth;
  }
  void come_back(unsigned depth) noexcept {
    if (depth == 0) return;
    enter();
    depth_ = depth;
  }

 private:
  static constexpr pthread_t nobody = 0;

  /// Only this thread itself writes its own name there.
  [[nodiscard]] bool inside() const noexcept { return owner_.load(std::memory_order_relaxed) == ::pthread_self(); }

  small_lock lock_;
  std::atomic<pthread_t> owner_ = nobody;
  unsigned depth_ = 0;  ///< the owner's
};

}  // namespace rma::detail
