// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sleeping on a 32-bit word that processes share.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <ctime>

#include "rma/detail/word.hpp"

namespace rma::detail {

/// Sleeps while `at` holds `expected`, at most `timeout_ns`. May wake for no reason.
inline void futex_wait(word32& at, std::uint32_t expected, std::int64_t timeout_ns) noexcept {
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  ::syscall(SYS_futex, at.address(), FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

/// Wakes all threads that sleep on `at`.
inline void futex_wake_all(word32& at) noexcept {
  ::syscall(SYS_futex, at.address(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace rma::detail
