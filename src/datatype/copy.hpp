// SPDX-License-Identifier: Apache-2.0
/// \file
/// Moves data between layouts in memory. Nothing here allocates, throws or locks.
#pragma once

#include <cstddef>

#include "core/assert.hpp"
#include "datatype/cursor.hpp"
#include "datatype/rows.hpp"
#include "rma/detail/copy.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

/// Copies the data of `src` to `dst`, whatever the two shapes; both layouts have the same number of bytes. The bytes
/// accessed on the two sides do not overlap. With a `turn`, long copies of simple shapes alternate between ascending
/// and descending order.
void copy(void* dst, const Layout& dst_layout, const void* src, const Layout& src_layout,
          copy_turn* turn = nullptr) noexcept;

/// Packs bytes [from_byte, from_byte + n_bytes) of the layout's data into contiguous memory.
void pack(void* dst, const void* src, const Layout& layout, std::size_t from_byte, std::size_t n_bytes) noexcept;
/// The reverse: `layout` describes `dst`.
void unpack(void* dst, const void* src, const Layout& layout, std::size_t from_byte, std::size_t n_bytes) noexcept;

/// Pack and unpack from a stored position, which advances: no search is needed when data are sent in pieces.
void pack(void* dst, const void* src, cursor& at, std::size_t n_bytes) noexcept;
void unpack(void* dst, const void* src, cursor& at, std::size_t n_bytes) noexcept;

/// Calls fn(offset, bytes) for each block.
template <class F>
void for_each_block(const Layout& layout, F&& fn) {
  for (cursor at(layout); at.remaining() > 0;) {
    const block_run run = at.run();
    for (std::size_t i = 0; i < run.count; ++i) fn(run.offset + static_cast<std::ptrdiff_t>(i) * run.stride, run.bytes);
    at.advance_blocks(run.count);
  }
}

/// The number of rows, at most `rows`, that fit into `room`.
inline std::size_t rows_within(std::size_t room, std::size_t row_bytes, std::size_t rows) noexcept {
  return row_bytes * rows <= room ? rows : room / row_bytes;
}

/// Rows of equal blocks in planes, alike on both sides.
struct row_pair {
  std::ptrdiff_t dst_offset = 0;
  nest_strides dst;
  std::ptrdiff_t src_offset = 0;
  nest_strides src;
  row_nest nest;
};

/// The largest such nest at the beginning of the next `n_bytes`, not 0, of both positions; these advance over it.
row_pair next_row_pair(cursor& dst, cursor& src, std::size_t n_bytes) noexcept;

/// Calls fn(dst_offset, src_offset, bytes) for each piece that is contiguous on both sides. If both layouts are made
/// of whole elements, so are the pieces.
template <class F>
void for_each_pair(const Layout& dst_layout, const Layout& src_layout, F&& fn) {
  RMA_ASSERT(dst_layout.bytes() == src_layout.bytes());
  cursor dst(dst_layout);
  cursor src(src_layout);
  while (dst.remaining() > 0) {
    const row_pair r = next_row_pair(dst, src, dst.remaining());
    for (std::size_t plane = 0; plane < r.nest.planes; ++plane) {
      const std::ptrdiff_t to = moved(r.dst_offset, r.dst.plane, plane);
      const std::ptrdiff_t from = moved(r.src_offset, r.src.plane, plane);
      for (std::size_t i = 0; i < r.nest.rows; ++i) {
        fn(moved(to, r.dst.row, i), moved(from, r.src.row, i), r.nest.bytes);
      }
    }
  }
}

}  // namespace rma::detail
