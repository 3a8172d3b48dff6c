// SPDX-License-Identifier: Apache-2.0
/// \file
/// A mutex of one word for sections of some hundred instructions, of which std::mutex would take a third: one locked
/// instruction acquires it and, without contention, a store releases it; a thread that finds it taken sleeps.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace rma::detail {

/// Lockable, for std::lock_guard and std::unique_lock. Between the threads of a process.
class small_lock {
 public:
  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t found = free;
    return state_.compare_exchange_strong(found, taken, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    // A thread that begins to wait between the two, or whose store is not visible yet, is not woken: it polls after its
    // nap. It would have to sleep within some nanoseconds, or this thread to lose its processor just here.
    const bool somebody_waits = state_.load(std::memory_order_relaxed) == wanted;
    state_.store(free, std::memory_order_release);
    if (somebody_waits) [[unlikely]]
      ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  /// True if any thread holds it, not necessarily this one: for assertions.
  [[nodiscard]] bool is_taken() const noexcept { return state_.load(std::memory_order_relaxed) != free; }

 private:
  enum : std::uint32_t { free, taken, wanted };  ///< wanted: taken, and a thread may sleep for it

  [[gnu::noinline]] void wait() noexcept {
    constexpr timespec nap{0, 1'000'000};
    while (state_.exchange(wanted, std::memory_order_acquire) != free)
      ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, wanted, &nap, nullptr, 0);
  }

  std::atomic<std::uint32_t> state_ = free;  // std::atomic's own wait needs tables of the process
  static_assert(sizeof(state_) == sizeof(std::uint32_t));
};

}  // namespace rma::detail
