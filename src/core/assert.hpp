// SPDX-License-Identifier: Apache-2.0
/// \file
/// Assertions about the library's own state: alive in the dev, release-asserts and sanitizer presets.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace rma::detail {
[[noreturn, gnu::cold]] inline void assertion_failed(const char* what, const char* file, int line) noexcept {
  std::fprintf(stderr, "rma: internal error: %s does not hold at %s:%d; please report it\n", what, file, line);
  std::abort();
}
}  // namespace rma::detail

#if defined(RMA_ASSERTS)
#define RMA_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::rma::detail::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define RMA_ASSERT(condition) static_cast<void>(0)
#endif
