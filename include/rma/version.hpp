// SPDX-License-Identifier: Apache-2.0
/// \file
/// Versions of the headers and of the library.
#pragma once

#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)

namespace rma {

/// Version of these headers, as 10000 MAJOR + 100 MINOR + PATCH. A Runtime throws Error(bad_setting) if MAJOR.MINOR
/// differs from the library's: the program has to be compiled again.
inline constexpr std::uint32_t header_version = 100;

/// The library's version, "MAJOR.MINOR.PATCH".
/// Shape      local
/// Threads    any
std::string_view version() noexcept;

}  // namespace rma

#pragma GCC visibility pop
