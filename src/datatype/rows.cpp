// SPDX-License-Identifier: Apache-2.0
#include "datatype/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "datatype/string_copy.hpp"
#include "rma/detail/copy.hpp"
#include "rma/detail/word.hpp"

namespace rma::detail {
namespace {

/// Copies rows of a length that is given, or for which it was instantiated.
using row_mover = void (*)(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                           std::size_t bytes, std::size_t rows) noexcept;
using plane_mover = void (*)(std::byte* dst, nest_strides dst_strides, const std::byte* src, nest_strides src_strides,
                             const row_nest& nest) noexcept;
struct mover {
  row_mover rows;
  plane_mover planes;
};

/// The number of rows in a plane is known where it is `Rows`: a loop around two rows costs as much as their copies.
template <row_mover Move, std::size_t Rows>
[[gnu::always_inline]] inline void move_each_plane(std::byte* dst, nest_strides dst_strides, const std::byte* src,
                                                   nest_strides src_strides, const row_nest& nest) noexcept {
  const std::size_t rows = Rows != 0 ? Rows : nest.rows;
  const std::size_t bytes = nest.bytes;
  for (std::size_t left = nest.planes; left > 0; --left) {
    Move(dst, dst_strides.row, src, src_strides.row, bytes, rows);
    dst += dst_strides.plane;
    src += src_strides.plane;
  }
}

template <row_mover Move>
void move_planes(std::byte* dst, nest_strides dst_strides, const std::byte* src, nest_strides src_strides,
                 const row_nest& nest) noexcept {
  if (nest.rows == 2) return move_each_plane<Move, 2>(dst, dst_strides, src, src_strides, nest);
  move_each_plane<Move, 0>(dst, dst_strides, src, src_strides, nest);
}

template <row_mover Move>
constexpr mover both{Move, move_planes<Move>};

void move_any(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
              std::size_t bytes, std::size_t rows) noexcept {
  for (; rows > 0; --rows) {
    copy_bytes(dst, src, bytes);
    dst += dst_stride;
    src += src_stride;
  }
}

template <class Integer>
void move_integers(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                   std::size_t /*bytes*/, std::size_t rows) noexcept {
  for (; rows > 0; --rows) {
    Integer row;
    std::memcpy(&row, src, sizeof row);
    std::memcpy(dst, &row, sizeof row);
    dst += dst_stride;
    src += src_stride;
  }
}

template <std::size_t Lanes>
void move_lanes(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                std::size_t /*bytes*/, std::size_t rows) noexcept {
  for (; rows > 0; --rows) {
    lane row[Lanes];
    for (std::size_t i = 0; i < Lanes; ++i) row[i] = reinterpret_cast<const lane*>(src)[i];
    for (std::size_t i = 0; i < Lanes; ++i) reinterpret_cast<lane*>(dst)[i] = row[i];
    dst += dst_stride;
    src += src_stride;
  }
}

#if defined(__x86_64__)
using wide_lane __attribute__((vector_size(32), aligned(1), may_alias)) = unsigned char;

/// As move_planes, for movers with this target.
template <row_mover Move>
[[gnu::target("avx2")]] void move_wide_planes(std::byte* dst, nest_strides dst_strides, const std::byte* src,
                                              nest_strides src_strides, const row_nest& nest) noexcept {
  if (nest.rows == 2) return move_each_plane<Move, 2>(dst, dst_strides, src, src_strides, nest);
  move_each_plane<Move, 0>(dst, dst_strides, src, src_strides, nest);
}

template <row_mover Move>
constexpr mover both_wide{Move, move_wide_planes<Move>};

template <std::size_t Lanes>
[[gnu::target("avx2")]] void move_wide_lanes(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src,
                                             std::ptrdiff_t src_stride, std::size_t /*bytes*/,
                                             std::size_t rows) noexcept {
  for (; rows > 0; --rows) {
    wide_lane row[Lanes];
    for (std::size_t i = 0; i < Lanes; ++i) row[i] = reinterpret_cast<const wide_lane*>(src)[i];
    for (std::size_t i = 0; i < Lanes; ++i) reinterpret_cast<wide_lane*>(dst)[i] = row[i];
    dst += dst_stride;
    src += src_stride;
  }
}

/// Copies a row of at least four lines. Both sides are prefetched four lines ahead; the destination also across the end
/// of the row into the next one.
[[gnu::target("avx512f")]] void move_row_ahead(std::byte* dst, const std::byte* src, std::size_t bytes,
                                               const std::byte* next_dst) noexcept {
  using piece __attribute__((vector_size(64), aligned(1), may_alias)) = unsigned char;
  constexpr std::size_t ahead_bytes = 4 * sizeof(piece);
  const std::byte* const end = dst + bytes;
  const piece* const tail = reinterpret_cast<const piece*>(src + bytes) - 2;
  piece* const last = reinterpret_cast<piece*>(dst + bytes) - 2;
  *reinterpret_cast<piece*>(dst) = *reinterpret_cast<const piece*>(src);
  const std::size_t to_line = sizeof(piece) - reinterpret_cast<std::uintptr_t>(dst) % sizeof(piece);
  const piece* from = reinterpret_cast<const piece*>(src + to_line);
  for (piece* to = reinterpret_cast<piece*>(dst + to_line); to < last; to += 2, from += 2) {
    const std::byte* source = reinterpret_cast<const std::byte*>(from) + ahead_bytes;
    const std::byte* ahead = reinterpret_cast<const std::byte*>(to) + ahead_bytes;
    if (ahead >= end) ahead = next_dst + (ahead - end);
    __builtin_prefetch(source);
    __builtin_prefetch(source + sizeof(piece));
    __builtin_prefetch(ahead, 1);
    __builtin_prefetch(ahead + sizeof(piece), 1);
    const piece a = from[0], b = from[1];
    to[0] = a;
    to[1] = b;
  }
  const piece a = tail[0], b = tail[1];
  last[0] = a;
  last[1] = b;
}

void move_rows_ahead(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                     std::size_t bytes, std::size_t rows) noexcept {
  for (; rows > 0; --rows) {
    move_row_ahead(dst, src, bytes, rows > 1 ? dst + dst_stride : dst);
    dst += dst_stride;
    src += src_stride;
  }
}
#endif

void move_strings(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                  std::size_t bytes, std::size_t rows) noexcept {
  for (; rows > 0; --rows) {
    copy_as_string(dst, src, bytes);
    dst += dst_stride;
    src += src_stride;
  }
}

const mover& mover_of(std::size_t bytes) noexcept {
  switch (bytes) {
    case 1: return both<move_integers<std::uint8_t>>;
    case 2: return both<move_integers<std::uint16_t>>;
    case 4: return both<move_integers<std::uint32_t>>;
    case 8: return both<move_integers<std::uint64_t>>;
    case 16: return both<move_lanes<1>>;
    case 32: return both<move_lanes<2>>;
    case 64: return both<move_lanes<4>>;
    case 128: return both<move_lanes<8>>;
    case 256: return both<move_lanes<16>>;
    default: return both<move_any>;
  }
}

const mover& wide_mover_of(std::size_t bytes) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) {
    switch (bytes) {
      case 32: return both_wide<move_wide_lanes<1>>;
      case 64: return both_wide<move_wide_lanes<2>>;
      case 128: return both_wide<move_wide_lanes<4>>;
      case 256: return both_wide<move_wide_lanes<8>>;
      default: break;
    }
  }
#endif
  return mover_of(bytes);
}

/// Rows this far apart share a few sets of the L1 cache, and loads from one look like stores to another.
constexpr std::ptrdiff_t page = 4096;

enum class wait_for {
  nothing,
  loads,   ///< nothing begins before all earlier work is complete, except stores on their way to the cache
  stores,  ///< nor before those have reached it
};

template <wait_for What>
void wait() noexcept {
#if defined(__x86_64__)
  if constexpr (What == wait_for::loads) __builtin_ia32_lfence();
#endif
  if constexpr (What == wait_for::stores) full_fence();
}

/// Copies some rows at once, and the next ones when these are loaded or stored. Otherwise the processor fetches the
/// lines of so many rows ahead that they evict each other from the L1 cache before they are used.
template <std::size_t Group, wait_for What>
void move_in_groups(row_mover move, std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src,
                    std::ptrdiff_t src_stride, std::size_t bytes, std::size_t rows) noexcept {
  for (std::size_t n = 0; rows > 0; rows -= n) {
    n = std::min(rows, Group);
    move(dst, dst_stride, src, src_stride, bytes, n);
    dst += static_cast<std::ptrdiff_t>(n) * dst_stride;
    src += static_cast<std::ptrdiff_t>(n) * src_stride;
    wait<What>();
  }
}

/// Does so in both directions, through a buffer on the stack.
template <std::size_t StageBytes, std::size_t Group, wait_for What>
void move_staged(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                 std::size_t bytes, std::size_t rows) noexcept {
  const row_mover move = wide_mover_of(bytes).rows;
  alignas(64) std::byte stage[StageBytes];
  const auto stage_stride = static_cast<std::ptrdiff_t>(bytes);
  for (std::size_t n = 0; rows > 0; rows -= n) {
    n = std::min(rows, StageBytes / bytes);
    move_in_groups<Group, What>(move, stage, stage_stride, src, src_stride, bytes, n);
    move_in_groups<Group, What>(move, dst, dst_stride, stage, stage_stride, bytes, n);
    src += static_cast<std::ptrdiff_t>(n) * src_stride;
    dst += static_cast<std::ptrdiff_t>(n) * dst_stride;
  }
}

/// Stores of 32 bytes take half the time of twice as many smaller ones, but for longer rows they fill the queue faster
/// than lines that evict each other arrive.
const mover& mover_for(std::size_t bytes, bool collides) noexcept {
  constexpr std::size_t wide_bytes_max = 64;
  return bytes <= wide_bytes_max || !collides ? wide_mover_of(bytes) : mover_of(bytes);
}

constexpr std::size_t long_bytes_min = 1024;

/// With fewer rows nothing is gained.
constexpr std::size_t colliding_rows_min = 9;

bool same_page_offsets(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  return (apart + bytes) % page < 2 * bytes;
}

bool lies_in_one_line(const std::byte* at, std::size_t bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(at) % 64 + bytes <= 64;
}

/// Copies rows of one Row each; between groups of them it waits until all are stored. This is one loop, since a call
/// for each group costs a seventh.
template <class Row>
[[gnu::target("avx2")]] void move_waiting(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src,
                                          std::ptrdiff_t src_stride, std::size_t rows) noexcept {
  constexpr std::size_t at_once = 16;
  for (;;) {
    const std::size_t n = std::min(rows, at_once);
    for (std::size_t i = 0; i < n; ++i) {
      Row row;
      std::memcpy(&row, src, sizeof row);
      std::memcpy(dst, &row, sizeof row);
      dst += dst_stride;
      src += src_stride;
    }
    rows -= n;
    if (rows == 0) return;
    full_fence();
  }
}

/// Copies rows that collide where they are stored, on a processor with fast strings. A string starts slowly enough for
/// the rows ahead to reach the cache; rows in one line each reach it faster if the processor waits for them.
bool move_colliding_fast(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                         std::size_t bytes, std::size_t rows) noexcept {
  constexpr std::size_t string_bytes_max = 96;
  if (bytes > string_bytes_max) return false;
  if (lies_in_one_line(dst, bytes) && !same_page_offsets(dst, src, bytes)) {
    if (bytes == 8) return move_waiting<std::uint64_t>(dst, dst_stride, src, src_stride, rows), true;
    if (bytes == 16) return move_waiting<lane>(dst, dst_stride, src, src_stride, rows), true;
    if (bytes == 32) return move_waiting<wide_lane>(dst, dst_stride, src, src_stride, rows), true;
  }
  move_strings(dst, dst_stride, src, src_stride, bytes, rows);
  return true;
}

/// Copies rows that collide at either side, on other processors.
bool move_colliding(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                    std::size_t bytes, std::size_t rows) noexcept {
  constexpr std::size_t waiting_bytes_max = 256;
  constexpr std::size_t staged_bytes_max = 64;  // beyond, a row by itself keeps the caches busy
  if (bytes > waiting_bytes_max) return false;
  const bool src_collides = src_stride % page == 0;
  // Each load would wait for all pending stores: long phases have only loads or only stores.
  if (src_collides && dst_stride % page == 0 && same_page_offsets(dst, src, bytes)) {
    move_staged<2048, 8, wait_for::loads>(dst, dst_stride, src, src_stride, bytes, rows);
  } else if (bytes > staged_bytes_max) {
    return false;
  } else if (src_collides) {
    move_in_groups<8, wait_for::loads>(wide_mover_of(bytes).rows, dst, dst_stride, src, src_stride, bytes, rows);
  } else {
    move_staged<4 * staged_bytes_max, 4, wait_for::nothing>(dst, dst_stride, src, src_stride, bytes, rows);
  }
  return true;
}

}  // namespace

void copy_rows(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
               std::size_t bytes, std::size_t rows) noexcept {
  const bool dst_collides = dst_stride % page == 0;
  const bool collides = dst_collides || src_stride % page == 0;
  const bool fast_strings = has_fast_string_copy();
  if (bytes >= long_bytes_min && bytes * rows > first_cache_bytes) {
    if (fast_strings) return move_strings(dst, dst_stride, src, src_stride, bytes, rows);
#if defined(__x86_64__)
    if (moves_64_at_once()) return move_rows_ahead(dst, dst_stride, src, src_stride, bytes, rows);
#endif
  }
  if (collides && rows >= colliding_rows_min) {
    if (fast_strings ? dst_collides && move_colliding_fast(dst, dst_stride, src, src_stride, bytes, rows)
                     : move_colliding(dst, dst_stride, src, src_stride, bytes, rows)) {
      return;
    }
  }
  mover_for(bytes, collides).rows(dst, dst_stride, src, src_stride, bytes, rows);
}

void copy_planes(std::byte* dst, nest_strides dst_strides, const std::byte* src, nest_strides src_strides,
                 const row_nest& nest) noexcept {
  const bool collides = dst_strides.row % page == 0 || src_strides.row % page == 0;
  if (nest.planes > 1 && nest.bytes < long_bytes_min && !(collides && nest.rows >= colliding_rows_min)) {
    return mover_for(nest.bytes, collides).planes(dst, dst_strides, src, src_strides, nest);
  }
  for (std::size_t left = nest.planes; left > 0; --left) {
    copy_rows(dst, dst_strides.row, src, src_strides.row, nest.bytes, nest.rows);
    dst += dst_strides.plane;
    src += src_strides.plane;
  }
}

}  // namespace rma::detail
