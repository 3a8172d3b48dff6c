// SPDX-License-Identifier: Apache-2.0
#include "datatype/copy.hpp"

#include <algorithm>

#include "datatype/lists.hpp"
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

/// True if whole blocks of that many bytes begin here. Otherwise such rows are parts of a longer block.
bool at_blocks_of(const cursor& at, std::size_t bytes) noexcept { return at.skipped() == 0 && at.run().bytes == bytes; }

std::ptrdiff_t row_stride(const cursor& at, std::size_t bytes) noexcept {
  return at_blocks_of(at, bytes) ? at.run().stride : static_cast<std::ptrdiff_t>(bytes);
}

/// At most `rows`: those that lie at equal distances from here on.
std::size_t rows_ahead(const cursor& at, std::size_t bytes, std::size_t rows) noexcept {
  if (at_blocks_of(at, bytes)) return std::min(rows, at.run().count);
  return rows_within(at.front().bytes, bytes, rows);
}

/// Planes of that many rows from here on.
run_repeat planes_ahead(const cursor& at, std::size_t bytes, std::size_t rows) noexcept {
  const bool blocks = at_blocks_of(at, bytes);
  if (blocks && at.run().count == rows) return at.repeats();
  const std::ptrdiff_t stride = blocks ? at.run().stride : static_cast<std::ptrdiff_t>(bytes);
  return {moved(0, stride, rows), blocks ? at.run().count / rows : at.front().bytes / (bytes * rows)};
}

void advance_over(cursor& at, const row_nest& nest) noexcept {
  if (!at_blocks_of(at, nest.bytes)) {
    at.advance_in_block(nest.size());
  } else if (at.run().count == nest.rows) {
    at.advance_runs(nest.planes);
  } else {
    at.advance_blocks(nest.rows * nest.planes);
  }
}

/// Copies the first blocks of a list whose blocks differ, as long as they lie in a block of `room` bytes on the other
/// side; returns their bytes, and their number in `count`. `move` takes the offset there, the one here, and bytes.
template <class Move>
[[gnu::always_inline]] inline std::size_t move_differing(const block_list& list, std::size_t room, std::size_t& count,
                                                         Move&& move) noexcept {
  std::size_t done = 0;
  for (count = 0; count < list.count; ++count) {
    const std::size_t bytes = list.entries[count + 1].first - list.entries[count].first;
    if (bytes > room - done) break;
    move(static_cast<std::ptrdiff_t>(done), moved(list.origin, list.entries[count].offset, 1), bytes);
    done += bytes;
  }
  return done;
}

/// Two positions of which at least one is in a list, and where both sides are.
struct listed_copy {
  std::byte* dst;
  const std::byte* src;
  cursor& to;
  cursor& from;
  block_list to_list;
  block_list from_list;
};

/// Copies blocks of one length; returns their bytes, 0 if the other side has none of that length here.
std::size_t copy_alike(const listed_copy& c, std::size_t n_bytes) noexcept {
  const std::size_t bytes = c.to_list.count != 0 ? c.to_list.bytes : c.from_list.bytes;
  block_places<std::byte> to{displaced(c.dst, c.to_list.origin), 0, c.to_list.entries};
  block_places<const std::byte> from{displaced(c.src, c.from_list.origin), 0, c.from_list.entries};
  std::size_t count = n_bytes / bytes;
  if (c.to_list.count != 0) {
    count = std::min(count, c.to_list.count);
  } else {
    count = rows_ahead(c.to, bytes, count);
    to = {c.dst + c.to.front().offset, row_stride(c.to, bytes)};
  }
  if (c.from_list.count != 0) {
    count = std::min(count, c.from_list.count);
  } else {
    count = rows_ahead(c.from, bytes, count);
    from = {c.src + c.from.front().offset, row_stride(c.from, bytes)};
  }
  if (count == 0) return 0;
  copy_listed(to, from, bytes, count);
  const auto advance = [&](cursor& at, const block_list& list) noexcept {
    if (list.count != 0) return at.advance_irregular(count, count * bytes);
    at_blocks_of(at, bytes) ? at.advance_blocks(count) : at.advance_in_block(count * bytes);
  };
  advance(c.to, c.to_list);
  advance(c.from, c.from_list);
  return count * bytes;
}

/// Copies blocks of a list from or to one block on the other side; returns their bytes, 0 if the first does not fit.
std::size_t copy_differing(const listed_copy& c, std::size_t n_bytes) noexcept {
  const bool scatters = c.to_list.count != 0;
  cursor& listed = scatters ? c.to : c.from;
  cursor& other = scatters ? c.from : c.to;
  const block there = other.front();
  const std::size_t room = std::min(there.bytes, n_bytes);
  std::size_t count = 0;
  std::size_t done = 0;
  if (scatters) {
    const std::byte* const from = c.src + there.offset;
    done = move_differing(c.to_list, room, count, [&](std::ptrdiff_t packed, std::ptrdiff_t offset, std::size_t n) {
      copy_block(c.dst + offset, from + packed, n);
    });
  } else {
    std::byte* const to = c.dst + there.offset;
    done = move_differing(c.from_list, room, count, [&](std::ptrdiff_t packed, std::ptrdiff_t offset, std::size_t n) {
      copy_block(to + packed, c.src + offset, n);
    });
  }
  if (count == 0) return 0;
  listed.advance_irregular(count, done);
  other.advance_in_block(done);
  return done;
}

/// Copies blocks of lists as long as both sides allow it; returns their bytes, 0 if the next piece is another.
std::size_t copy_lists(std::byte* dst, cursor& to, const std::byte* src, cursor& from, std::size_t n_bytes) noexcept {
  const listed_copy c{dst, src, to, from, to.irregular_blocks(), from.irregular_blocks()};
  if (c.to_list.count == 0 && c.from_list.count == 0) return 0;
  if (c.to_list.count != 0 && c.from_list.count != 0) {
    return c.to_list.bytes != 0 && c.to_list.bytes == c.from_list.bytes ? copy_alike(c, n_bytes) : 0;
  }
  const bool alike = (c.to_list.count != 0 ? c.to_list.bytes : c.from_list.bytes) != 0;
  return alike ? copy_alike(c, n_bytes) : copy_differing(c, n_bytes);
}

/// Copies the next `n_bytes` of two positions, which advance.
void copy(void* dst, cursor& to, const void* src, cursor& from, std::size_t n_bytes) noexcept {
  RMA_ASSERT(n_bytes <= to.remaining() && n_bytes <= from.remaining());
  constexpr std::size_t short_block_max = 64;
  while (n_bytes > 0) {
    std::size_t bytes = copy_lists(bytes_at(dst, 0), to, bytes_at(src, 0), from, n_bytes);
    if (bytes == 0) {
      const row_pair r = next_row_pair(to, from, n_bytes);
      bytes = r.nest.size();
      std::byte* const there = bytes_at(dst, r.dst_offset);
      const std::byte* const here = bytes_at(src, r.src_offset);
      if (bytes == r.nest.bytes && bytes <= short_block_max) {
        copy_block(there, here, bytes);
      } else {
        copy_planes(there, r.dst, here, r.src, r.nest);
      }
    }
    n_bytes -= bytes;
  }
}

}  // namespace

row_pair next_row_pair(cursor& dst, cursor& src, std::size_t n_bytes) noexcept {
  RMA_ASSERT(n_bytes > 0 && n_bytes <= dst.remaining() && n_bytes <= src.remaining());
  const block to = dst.front();
  const block from = src.front();
  const bool dst_whole = dst.skipped() == 0 && to.bytes <= n_bytes;
  const bool src_whole = src.skipped() == 0 && from.bytes <= n_bytes;
  row_pair r{to.offset, {}, from.offset, {}, {}};
  if (src_whole && from.bytes <= to.bytes) {
    r.nest.bytes = from.bytes;
  } else if (dst_whole && to.bytes <= from.bytes) {
    r.nest.bytes = to.bytes;
  } else {
    r.nest = {std::min({to.bytes, from.bytes, n_bytes}), 1};
    dst.advance_in_block(r.nest.bytes);
    src.advance_in_block(r.nest.bytes);
    return r;
  }
  const std::size_t bytes = r.nest.bytes;
  std::size_t rows = std::max(dst.run().count, src.run().count);
  rows = rows_ahead(dst, bytes, rows_ahead(src, bytes, rows));
  r.nest.rows = rows_within(n_bytes, bytes, rows);
  rows = r.nest.rows;
  r.dst.row = row_stride(dst, bytes);
  r.src.row = row_stride(src, bytes);
  if (dst.repeats().count > 1 || src.repeats().count > 1) {
    const run_repeat d = planes_ahead(dst, bytes, rows);
    const run_repeat s = planes_ahead(src, bytes, rows);
    r.dst.plane = d.stride;
    r.src.plane = s.stride;
    r.nest.planes = rows_within(n_bytes, bytes * rows, std::min(d.count, s.count));
  }
  advance_over(dst, r.nest);
  advance_over(src, r.nest);
  return r;
}

void copy(void* dst, const Layout& dst_layout, const void* src, const Layout& src_layout, copy_turn* turn) noexcept {
  RMA_ASSERT(dst_layout.bytes() == src_layout.bytes());
  if (dst_layout.bytes() == 0 || copy_simple(dst, dst_layout, src, src_layout, turn)) return;
  cursor to(dst_layout);
  cursor from(src_layout);
  copy(dst, to, src, from, dst_layout.bytes());
}

void pack(void* dst, const void* src, cursor& at, std::size_t n_bytes) noexcept {
  cursor to = cursor::contiguous(n_bytes);
  copy(dst, to, src, at, n_bytes);
}

void unpack(void* dst, const void* src, cursor& at, std::size_t n_bytes) noexcept {
  cursor from = cursor::contiguous(n_bytes);
  copy(dst, at, src, from, n_bytes);
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
