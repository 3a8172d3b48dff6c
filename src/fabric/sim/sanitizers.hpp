// SPDX-License-Identifier: Apache-2.0
/// \file
/// Notifies the sanitizers of switches between stacks. Without sanitizers these functions do nothing.
#pragma once

#include <cstddef>

#include "rma/detail/word.hpp"  // RMA_THREAD_SANITIZER

#if defined(__SANITIZE_ADDRESS__)
#define RMA_SIM_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RMA_SIM_ADDRESS_SANITIZER 1
#endif
#endif

#if defined(RMA_SIM_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(RMA_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

#define RMA_SIM_NOT_INSTRUMENTED __attribute__((no_sanitize("address")))

namespace rma::sim {

/// Called just before a switch. `fake` keeps the fake stack of the stack being left; it is null if that does not
/// resume.
inline void leave_stack([[maybe_unused]] void** fake, [[maybe_unused]] const void* bottom,
                        [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(RMA_SIM_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(fake, bottom, bytes);
#endif
}

/// Called just after a switch. Returns the bounds of the previous stack.
inline void arrived_on_stack([[maybe_unused]] void* fake, [[maybe_unused]] const void** old_bottom,
                             [[maybe_unused]] std::size_t* old_bytes) noexcept {
#if defined(RMA_SIM_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fake, old_bottom, old_bytes);
#endif
}

/// Called before a stack's pages are unmapped: they will be reused.
inline void unpoison([[maybe_unused]] std::byte* at, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(RMA_SIM_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(at, bytes);
#endif
}

/// Makes the leak check scan this memory. True if it does, so that the memory must stay mapped.
inline bool keep_for_leak_check([[maybe_unused]] std::byte* at, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(RMA_SIM_ADDRESS_SANITIZER)
  __lsan_register_root_region(at, bytes);
  return true;
#else
  return false;
#endif
}

inline void* make_history() noexcept {
#if defined(RMA_THREAD_SANITIZER)
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}

inline void drop_history([[maybe_unused]] void* history) noexcept {
#if defined(RMA_THREAD_SANITIZER)
  __tsan_destroy_fiber(history);
#endif
}

inline void* current_history() noexcept {
#if defined(RMA_THREAD_SANITIZER)
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}

inline void switch_history([[maybe_unused]] void* history) noexcept {
#if defined(RMA_THREAD_SANITIZER)
  __tsan_switch_to_fiber(history, 0);
#endif
}

}  // namespace rma::sim
