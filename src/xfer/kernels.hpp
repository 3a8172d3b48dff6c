// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loops over arrays of elements for accumulate and its relatives, by operator and element type.
///
///   kernels_for_this_cpu().bulk[index_of(op)][index_of(type)](dst, src, count);
///
/// A null entry means that the operator is not defined for the type, or (atomic forms of more than 8 bytes and of
/// pairs) not lock-free.
#pragma once

#include <cstddef>

#include "rma/operation.hpp"

namespace rma::detail {

/// dst[i] = op(dst[i], src[i]) for n elements.
using apply_kernel = void (*)(void* dst, const void* src, std::size_t n) noexcept;
/// old[i] = dst[i], then the same. `old` is either `src` exactly or does not overlap it; neither overlaps dst.
using fetch_kernel = void (*)(void* dst, const void* src, void* old, std::size_t n) noexcept;

using apply_row = apply_kernel[element_count];
using fetch_row = fetch_kernel[element_count];

constexpr std::size_t index_of(operation op) noexcept { return static_cast<std::size_t>(op); }
constexpr std::size_t index_of(element e) noexcept { return static_cast<std::size_t>(e); }

struct kernel_table {
  const apply_row* bulk;          ///< not atomic, any alignment, SIMD; src may be dst exactly
  const fetch_row* fetch_bulk;    ///< not atomic, any alignment, SIMD
  const apply_row* atomic;        ///< each element by itself; dst aligned to the element's size
  const fetch_row* fetch_atomic;  ///< each element by itself; dst aligned to the element's size
  const char* name;               ///< name of the instruction set
};

/// The instruction sets that kernels are compiled for, best last.
enum class kernel_isa : unsigned char { baseline, avx2, avx512 };
inline constexpr std::size_t kernel_isa_count = 3;

/// The kernels of one instruction set; null if this processor (or this build) does not have it.
const kernel_table* kernels_for(kernel_isa isa) noexcept;
/// The best that this processor has. A few instructions; nothing is remembered.
const kernel_table& kernels_for_this_cpu() noexcept;

}  // namespace rma::detail
