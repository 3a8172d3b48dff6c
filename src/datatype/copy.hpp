// SPDX-License-Identifier: Apache-2.0
/// \file
/// Moves data between layouts in memory. Nothing here allocates, throws or locks.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/assert.hpp"
#include "datatype/cursor.hpp"
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

/// Rows of equal blocks on both sides.
struct row_pair {
  std::ptrdiff_t dst_offset;
  std::ptrdiff_t dst_stride;
  std::ptrdiff_t src_offset;
  std::ptrdiff_t src_stride;
  std::size_t bytes;  ///< of each row
  std::size_t rows;
};

/// The number of rows, at most `rows`, that fit into `room`, which has space for at least one.
inline std::size_t rows_within(std::size_t room, std::size_t row_bytes, std::size_t rows) noexcept {
  return row_bytes * rows <= room ? rows : room / row_bytes;
}

/// Calls fn(const row_pair&) for the next `n_bytes` of both positions and advances them.
template <class F>
void for_each_row_pair(cursor& dst, cursor& src, std::size_t n_bytes, F&& fn) {
  RMA_ASSERT(n_bytes <= dst.remaining() && n_bytes <= src.remaining());
  while (n_bytes > 0) {
    // These are references: a copy would be read in wider pieces than it was just written, which stalls.
    const block_run& d = dst.run();
    const block_run& s = src.run();
    const block to = dst.front();
    const block from = src.front();
    std::size_t bytes = 0;
    if (dst.skipped() == 0 && src.skipped() == 0 && d.bytes == s.bytes && d.bytes <= n_bytes) {
      const std::size_t rows = rows_within(n_bytes, d.bytes, std::min(d.count, s.count));
      bytes = rows * d.bytes;
      fn(row_pair{d.offset, d.stride, s.offset, s.stride, d.bytes, rows});
      dst.advance_blocks(rows);
      src.advance_blocks(rows);
    } else if (src.skipped() == 0 && s.bytes <= n_bytes && s.bytes <= to.bytes) {
      const std::size_t rows = rows_within(std::min(n_bytes, to.bytes), s.bytes, s.count);
      bytes = rows * s.bytes;
      fn(row_pair{to.offset, static_cast<std::ptrdiff_t>(s.bytes), s.offset, s.stride, s.bytes, rows});
      dst.advance_in_block(bytes);
      src.advance_blocks(rows);
    } else if (dst.skipped() == 0 && d.bytes <= n_bytes && d.bytes <= from.bytes) {
      const std::size_t rows = rows_within(std::min(n_bytes, from.bytes), d.bytes, d.count);
      bytes = rows * d.bytes;
      fn(row_pair{d.offset, d.stride, from.offset, static_cast<std::ptrdiff_t>(d.bytes), d.bytes, rows});
      dst.advance_blocks(rows);
      src.advance_in_block(bytes);
    } else {
      bytes = std::min({to.bytes, from.bytes, n_bytes});
      fn(row_pair{to.offset, 0, from.offset, 0, bytes, 1});
      dst.advance_in_block(bytes);
      src.advance_in_block(bytes);
    }
    n_bytes -= bytes;
  }
}

/// Calls fn(dst_offset, src_offset, bytes) for each piece that is contiguous on both sides. If both layouts are made
/// of whole elements, so are the pieces.
template <class F>
void for_each_pair(const Layout& dst_layout, const Layout& src_layout, F&& fn) {
  RMA_ASSERT(dst_layout.bytes() == src_layout.bytes());
  cursor dst(dst_layout);
  cursor src(src_layout);
  for_each_row_pair(dst, src, dst_layout.bytes(), [&](const row_pair& r) {
    for (std::size_t i = 0; i < r.rows; ++i) {
      const auto n = static_cast<std::ptrdiff_t>(i);
      fn(r.dst_offset + n * r.dst_stride, r.src_offset + n * r.src_stride, r.bytes);
    }
  });
}

}  // namespace rma::detail
