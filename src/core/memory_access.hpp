// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether memory of the program's can be read and written, found out without a fault and without changing it. Where
/// the system does not say, it can.
#pragma once

#include <cstddef>

namespace rma::detail {

/// Every page of [at, at + bytes) is mapped, readable and writable, by the list of this process's mappings. Costs time
/// with each mapping of the process.
[[nodiscard]] bool is_mapped_for_writing(const void* at, std::size_t bytes) noexcept;

/// The kernel tries each page of [at, at + bytes) now, by one call for each.
[[nodiscard]] bool can_read(const void* at, std::size_t bytes) noexcept;
[[nodiscard]] bool can_write(void* at, std::size_t bytes) noexcept;

}  // namespace rma::detail
