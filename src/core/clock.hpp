// SPDX-License-Identifier: Apache-2.0
/// \file
/// The wall clock of the library's own waits and back-offs.
#pragma once

#include <chrono>
#include <cstdint>

namespace rma::detail {
inline std::int64_t clock_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
}  // namespace rma::detail
