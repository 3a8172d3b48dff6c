// SPDX-License-Identifier: Apache-2.0
#include "datatype/copy.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "datatype/rows.hpp"
#include "datatype/string_copy.hpp"

namespace rma::detail {
namespace {

std::byte* bytes_at(void* base, std::ptrdiff_t offset) noexcept { return static_cast<std::byte*>(base) + offset; }
const std::byte* bytes_at(const void* base, std::ptrdiff_t offset) noexcept {
  return static_cast<const std::byte*>(base) + offset;
}

/// True if the layout is one run that `copy_rows` handles directly.
bool is_simple(const Layout& layout) noexcept { return layout_internals::node(layout) == nullptr; }

/// Copies in ascending and descending order alternately.
void copy_in_turn(std::byte* to, std::ptrdiff_t to_stride, const std::byte* from, std::ptrdiff_t from_stride,
                  std::size_t bytes, std::size_t rows, copy_turn& turn) noexcept {
  if (rows == 1) return copy_bytes(to, from, bytes, &turn);
  if (!turn.take()) return copy_rows(to, to_stride, from, from_stride, bytes, rows);
  const auto last = static_cast<std::ptrdiff_t>(rows) - 1;
  copy_rows(to + last * to_stride, -to_stride, from + last * from_stride, -from_stride, bytes, rows);
}

/// Copies between two simple layouts without a cursor: the case of hot paths. Returns false if the blocks do not fit.
bool copy_simple(void* dst, const Layout& d, const void* src, const Layout& s, copy_turn* turn) noexcept {
  using in = layout_internals;
  if (!is_simple(d) || !is_simple(s)) return false;
  const std::size_t d_block = in::block(d);
  const std::size_t s_block = in::block(s);
  std::ptrdiff_t d_stride = in::stride(d);
  std::ptrdiff_t s_stride = in::stride(s);
  std::size_t block = d_block;
  std::size_t rows = d.blocks();
  if (d_block != s_block) {
    if (d.blocks() == 1) {
      block = s_block;
      rows = s.blocks();
      d_stride = static_cast<std::ptrdiff_t>(block);
    } else if (s.blocks() == 1) {
      s_stride = static_cast<std::ptrdiff_t>(block);
    } else {
      return false;
    }
  }
  std::byte* const to = bytes_at(dst, in::offset(d));
  const std::byte* const from = bytes_at(src, in::offset(s));
  if (block * rows > first_cache_bytes && turn != nullptr) [[unlikely]] {
    copy_in_turn(to, d_stride, from, s_stride, block, rows, *turn);
  } else {
    copy_rows(to, d_stride, from, s_stride, block, rows);
  }
  return true;
}

/// Two moves of N bytes, which overlap as far as needed.
template <std::size_t N>
[[gnu::always_inline]] inline void copy_ends(std::byte* dst, const std::byte* src, std::size_t bytes) noexcept {
  unsigned char head[N];
  unsigned char tail[N];
  std::memcpy(head, src, N);
  std::memcpy(tail, src + bytes - N, N);
  std::memcpy(dst, head, N);
  std::memcpy(dst + bytes - N, tail, N);
}

/// Most blocks are short; a call of memcpy costs more than their copy.
[[gnu::always_inline]] inline void copy_block(std::byte* dst, const std::byte* src, std::size_t bytes) noexcept {
  if (bytes > 64 || bytes < 4) {
    std::memcpy(dst, src, bytes);
  } else if (bytes >= 32) {
    copy_ends<32>(dst, src, bytes);
  } else if (bytes >= 16) {
    copy_ends<16>(dst, src, bytes);
  } else if (bytes >= 8) {
    copy_ends<8>(dst, src, bytes);
  } else {
    copy_ends<4>(dst, src, bytes);
  }
}

/// Calls move(place in the packed data, offset) for the first blocks of a list, as long as they have `Bytes` bytes;
/// returns their number. The size is known here, so that a move is one load and one store.
template <std::size_t Bytes, class Move>
[[gnu::always_inline]] inline std::size_t move_alike(const block_list& list, std::size_t most, Move&& move) noexcept {
  const list_entry* const entries = list.entries;
  std::size_t i = 0;
  for (; i < most && entries[i + 1].first - entries[i].first == Bytes; ++i) {
    move(i * Bytes, moved(list.origin, entries[i].offset, 1), std::integral_constant<std::size_t, Bytes>());
  }
  return i;
}

/// Does so for lists that begin with a block of one element: an index list of words, most often.
template <class Move>
[[gnu::always_inline]] inline std::size_t move_elements(const block_list& list, std::size_t left, std::size_t& bytes,
                                                        Move&& move) noexcept {
  if (list.count == 0) return 0;
  bytes = list.entries[1].first - list.entries[0].first;
  const std::size_t most = std::min(list.count, left / bytes);
  switch (bytes) {
    case 4: return move_alike<4>(list, most, move);
    case 8: return move_alike<8>(list, most, move);
    case 16: return move_alike<16>(list, most, move);
    default: return 0;
  }
}

/// Calls fn(place in the packed data, offset, stride, bytes, rows) for the next `n_bytes` and advances.
/// `move` does the same for a block of a size that is known when it is compiled.
template <class F, class Move>
[[gnu::always_inline]] inline void walk(cursor& at, std::size_t n_bytes, F&& fn, Move&& move) noexcept {
  RMA_ASSERT(n_bytes <= at.remaining());
  for (std::size_t packed = 0; packed < n_bytes;) {
    const std::size_t left = n_bytes - packed;
    const block_list list = at.irregular_blocks();
    std::size_t element_bytes = 0;
    std::size_t whole = move_elements(
        list, left, element_bytes,
        [&](std::size_t behind, std::ptrdiff_t offset, auto bytes) noexcept { move(packed + behind, offset, bytes); });
    std::size_t moved_bytes = whole * element_bytes;
    for (; whole < list.count; ++whole) {
      const std::size_t bytes = list.entries[whole + 1].first - list.entries[whole].first;
      if (bytes > left - moved_bytes) break;
      fn(packed + moved_bytes, moved(list.origin, list.entries[whole].offset, 1), 0, bytes, 1);
      moved_bytes += bytes;
    }
    const block_run& run = at.run();
    if (whole > 0) {
      at.advance_irregular(whole, moved_bytes);
    } else if (at.skipped() == 0 && run.bytes <= left) {
      const std::size_t rows = run.bytes * run.count <= left ? run.count : left / run.bytes;
      moved_bytes = rows * run.bytes;
      fn(packed, run.offset, run.stride, run.bytes, rows);
      at.advance_blocks(rows);
    } else {
      const block begun = at.front();
      moved_bytes = std::min(begun.bytes, left);
      fn(packed, begun.offset, 0, moved_bytes, 1);
      at.advance_in_block(moved_bytes);
    }
    packed += moved_bytes;
  }
}

}  // namespace

void copy(void* dst, const Layout& dst_layout, const void* src, const Layout& src_layout, copy_turn* turn) noexcept {
  RMA_ASSERT(dst_layout.bytes() == src_layout.bytes());
  if (dst_layout.bytes() == 0 || copy_simple(dst, dst_layout, src, src_layout, turn)) return;
  const std::size_t bytes = dst_layout.bytes();
  if (src_layout.is_contiguous()) return unpack(dst, bytes_at(src, src_layout.lower()), dst_layout, 0, bytes);
  if (dst_layout.is_contiguous()) return pack(bytes_at(dst, dst_layout.lower()), src, src_layout, 0, bytes);
  cursor to(dst_layout);
  cursor from(src_layout);
  for_each_row_pair(to, from, bytes, [&](const row_pair& r) noexcept {
    copy_rows(bytes_at(dst, r.dst_offset), r.dst_stride, bytes_at(src, r.src_offset), r.src_stride, r.bytes, r.rows);
  });
}

void pack(void* dst, const void* src, cursor& at, std::size_t n_bytes) noexcept {
  auto* const to = static_cast<std::byte*>(dst);
  walk(
      at, n_bytes,
      [&](std::size_t packed, std::ptrdiff_t offset, std::ptrdiff_t stride, std::size_t bytes,
          std::size_t rows) noexcept {
        if (rows == 1) return copy_block(to + packed, bytes_at(src, offset), bytes);
        copy_rows(to + packed, static_cast<std::ptrdiff_t>(bytes), bytes_at(src, offset), stride, bytes, rows);
      },
      [&](std::size_t packed, std::ptrdiff_t offset, auto bytes) noexcept {
        std::memcpy(to + packed, bytes_at(src, offset), bytes());
      });
}

void unpack(void* dst, const void* src, cursor& at, std::size_t n_bytes) noexcept {
  const auto* const from = static_cast<const std::byte*>(src);
  walk(
      at, n_bytes,
      [&](std::size_t packed, std::ptrdiff_t offset, std::ptrdiff_t stride, std::size_t bytes,
          std::size_t rows) noexcept {
        if (rows == 1) return copy_block(bytes_at(dst, offset), from + packed, bytes);
        copy_rows(bytes_at(dst, offset), stride, from + packed, static_cast<std::ptrdiff_t>(bytes), bytes, rows);
      },
      [&](std::size_t packed, std::ptrdiff_t offset, auto bytes) noexcept {
        std::memcpy(bytes_at(dst, offset), from + packed, bytes());
      });
}

void pack(void* dst, const void* src, const Layout& layout, std::size_t from_byte, std::size_t n_bytes) noexcept {
  if (n_bytes == 0) return;
  cursor at(layout, from_byte);
  pack(dst, src, at, n_bytes);
}

void unpack(void* dst, const void* src, const Layout& layout, std::size_t from_byte, std::size_t n_bytes) noexcept {
  if (n_bytes == 0) return;
  cursor at(layout, from_byte);
  unpack(dst, src, at, n_bytes);
}

}  // namespace rma::detail
