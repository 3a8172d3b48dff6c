// SPDX-License-Identifier: Apache-2.0
/// \file
/// Atomic words of the shared-memory protocols, and the fences between them.
///
/// Every lock, ring and doorbell word is a `word`, so that the explorer (tests/explore) can run another rank between
/// any two accesses. Its build of the library defines RMA_EXPLORE.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#if defined(__SANITIZE_THREAD__)
#define RMA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RMA_THREAD_SANITIZER 1
#endif
#endif

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace rma::detail {

/// True if a read-modify-write instruction orders everything before it before everything after it.
#if defined(__x86_64__)
inline constexpr bool locked_is_fence = true;
#else
inline constexpr bool locked_is_fence = false;
#endif

#if defined(RMA_EXPLORE)
/// The explorer's hook, called before every access to shared memory; null means an unknown address. The explorer
/// defines it.
void explore_point(const void* at = nullptr, bool writes = true) noexcept;
#else
inline void explore_point(const void* = nullptr, bool = true) noexcept {}
#endif

/// An atomic integer in memory that several ranks may map. Trivial, so that it can lie in fresh shared memory;
/// zero is its initial value.
template <class Integer>
class word {
  static_assert(std::atomic_ref<Integer>::is_always_lock_free);

 public:
  [[nodiscard]] Integer load(std::memory_order order = std::memory_order_acquire) const noexcept {
    return ref(false).load(order);
  }
  void store(Integer v, std::memory_order order = std::memory_order_release) noexcept { ref().store(v, order); }
  /// A store that no later access overtakes. An exchange would do the same, but takes 1.5 times as long where another
  /// core polls the word. Defined below, next to the fence.
  void publish(Integer v) noexcept;
  // Read-modify-write accesses are full fences: protocols rely on that.
  Integer exchange(Integer v) noexcept { return fenced(ref().exchange(v)); }
  Integer fetch_add(Integer v) noexcept { return fenced(ref().fetch_add(v)); }
  Integer fetch_sub(Integer v) noexcept { return fenced(ref().fetch_sub(v)); }
  Integer fetch_or(Integer v) noexcept { return fenced(ref().fetch_or(v)); }
  Integer fetch_and(Integer v) noexcept { return fenced(ref().fetch_and(v)); }
  /// Replaces `expected` by `desired`; on failure `expected` becomes the current value.
  bool compare_exchange(Integer& expected, Integer desired) noexcept {
    return fenced(ref().compare_exchange_strong(expected, desired));
  }
  /// The address for futex calls.
  [[nodiscard]] Integer* address() noexcept { return &value_; }

 private:
  /// Makes a read-modify-write access a full fence: a locked instruction is one, but a pair of load-acquire and
  /// store-release lets later loads overtake the store.
  template <class Found>
  static Found fenced(Found found) noexcept {
#if !defined(__x86_64__) && !defined(RMA_THREAD_SANITIZER)
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    return found;
  }
  std::atomic_ref<Integer> ref(bool writes = true) const noexcept {
    explore_point(&value_, writes);
    return std::atomic_ref<Integer>(const_cast<Integer&>(value_));
  }
  alignas(sizeof(Integer)) Integer value_;
};

using word32 = word<std::uint32_t>;
using word64 = word<std::uint64_t>;

/// Orders every earlier store before every later load (and everything else).
/// One locked instruction on the stack: 5 ns where mfence takes 20.
inline void full_fence() noexcept {
#if defined(RMA_THREAD_SANITIZER)
  std::uint32_t line = 0;
  std::atomic_ref<std::uint32_t>(line).fetch_add(1);  // the sanitizer does not know fences
#elif defined(__x86_64__)
  __asm__ __volatile__("lock; orl $0, (%%rsp)" ::: "memory", "cc");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

template <class Integer>
void word<Integer>::publish(Integer v) noexcept {
  store(v);
  full_fence();
}

/// Prevents the compiler from moving memory accesses; emits no instruction.
inline void compiler_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// Tells the core that this is a spin loop.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/// Fetches the cache line exclusively, so that the store that follows needs no second transfer.
inline void prefetch_for_write(const void* at) noexcept {
#if defined(__x86_64__)
  __asm__ __volatile__("prefetchw %0" ::"m"(*static_cast<const char*>(at)));  // a hint: older processors ignore it
#else
  __builtin_prefetch(at, 1);
#endif
}

/// Accesses a value that another rank may be reading or writing: untorn where the type allows it.
template <class T>
inline constexpr bool untorn =
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8) && alignof(T) == sizeof(T);

template <class T>
inline void store_value(std::byte* at, const T& value) noexcept {
  T* const to = reinterpret_cast<T*>(at);
  if constexpr (untorn<T>) {
    __atomic_store(to, const_cast<T*>(&value), __ATOMIC_RELAXED);
  } else {
    *to = value;
  }
}

template <class T>
inline T load_value(const std::byte* at) noexcept {
  const T* const from = reinterpret_cast<const T*>(at);
  if constexpr (untorn<T>) {
    T value;
    __atomic_load(const_cast<T*>(from), &value, __ATOMIC_RELAXED);
    return value;
  } else {
    return *from;
  }
}

}  // namespace rma::detail
