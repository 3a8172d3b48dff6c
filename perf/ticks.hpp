// SPDX-License-Identifier: Apache-2.0
/// \file
/// The processor's own counter of time. A look at it costs a few instructions, as in rdma-core's perftest; one at the
/// clock of the system costs an emulated processor a fortieth of an RDMA atomic. It counts real time, not that of a
/// simulated job.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace perf {

/// Counts at a constant rate, which whoever wants seconds has to find out.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t now = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace perf
