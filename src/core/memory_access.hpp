// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tests whether memory of the program is readable and writable, without a fault and without changing it. If the system
/// gives no answer, the result is true.
#pragma once

#include <cstddef>

namespace rma::detail {

/// True if every page of [at, at + bytes) is mapped, readable and writable, by the list of this process's mappings. The
/// cost grows with the number of mappings.
[[nodiscard]] bool is_mapped_for_writing(const void* at, std::size_t bytes) noexcept;

/// Tests each page of [at, at + bytes) by a system call.
[[nodiscard]] bool can_read(const void* at, std::size_t bytes) noexcept;
[[nodiscard]] bool can_write(void* at, std::size_t bytes) noexcept;

}  // namespace rma::detail
