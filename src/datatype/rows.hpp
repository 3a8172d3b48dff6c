// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of equal blocks at equal distances: the inner loop of all copies of layouts.
#pragma once

#include <cstddef>

namespace rma::detail {

/// Copies row i of `bytes` from src + i * src_stride to dst + i * dst_stride. Source and destination do not overlap.
void copy_rows(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
               std::size_t bytes, std::size_t rows) noexcept;

}  // namespace rma::detail
