// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of equal blocks at equal distances: the inner loop of all copies of layouts.
#pragma once

#include <cstddef>

namespace rma::detail {

/// Copies row i of `bytes` from src + i * src_stride to dst + i * dst_stride. Source and destination do not overlap.
void copy_rows(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
               std::size_t bytes, std::size_t rows) noexcept;

/// Rows of equal length in planes: a nest of two loops.
struct row_nest {
  std::size_t bytes = 0;  ///< length of each row
  std::size_t rows = 0;   ///< rows in each plane
  std::size_t planes = 1;

  [[nodiscard]] std::size_t size() const noexcept { return bytes * rows * planes; }
};
struct nest_strides {
  std::ptrdiff_t row = 0;
  std::ptrdiff_t plane = 0;
};

/// Does so for each plane.
void copy_planes(std::byte* dst, nest_strides dst_strides, const std::byte* src, nest_strides src_strides,
                 const row_nest& nest) noexcept;

}  // namespace rma::detail
