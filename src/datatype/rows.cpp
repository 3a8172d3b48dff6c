// SPDX-License-Identifier: Apache-2.0
#include "datatype/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "datatype/string_copy.hpp"
#include "rma/detail/copy.hpp"

namespace rma::detail {
namespace {

/// Copies rows that it is told the length of, or that it was made for.
using row_mover = void (*)(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                           std::size_t bytes, std::size_t rows) noexcept;

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
#endif

void move_strings(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                  std::size_t bytes, std::size_t rows) noexcept {
  for (; rows > 0; --rows) {
    copy_as_string(dst, src, bytes);
    dst += dst_stride;
    src += src_stride;
  }
}

row_mover mover_of(std::size_t bytes) noexcept {
  switch (bytes) {
    case 1: return move_integers<std::uint8_t>;
    case 2: return move_integers<std::uint16_t>;
    case 4: return move_integers<std::uint32_t>;
    case 8: return move_integers<std::uint64_t>;
    case 16: return move_lanes<1>;
    case 32: return move_lanes<2>;
    case 64: return move_lanes<4>;
    case 128: return move_lanes<8>;
    case 256: return move_lanes<16>;
    default: return move_any;
  }
}

row_mover wide_mover_of(std::size_t bytes) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) {
    switch (bytes) {
      case 32: return move_wide_lanes<1>;
      case 64: return move_wide_lanes<2>;
      case 128: return move_wide_lanes<4>;
      case 256: return move_wide_lanes<8>;
      default: break;
    }
  }
#endif
  return mover_of(bytes);
}

/// Rows this far apart share a few places of the first cache, and loads from one look like stores to another.
constexpr std::ptrdiff_t page = 4096;

/// Nothing after it begins before everything ahead of it is done, stores on their way to the cache excepted.
void wait_for_loads() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#endif
}

/// Some rows at once; if told to wait, the next begin when they are loaded. Left to itself the processor fetches the
/// lines of so many rows ahead that they push each other out of the first cache before they are used.
template <std::size_t Group, bool Waits>
void move_in_groups(row_mover move, std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src,
                    std::ptrdiff_t src_stride, std::size_t bytes, std::size_t rows) noexcept {
  for (std::size_t n = 0; rows > 0; rows -= n) {
    n = std::min(rows, Group);
    move(dst, dst_stride, src, src_stride, bytes, n);
    dst += static_cast<std::ptrdiff_t>(n) * dst_stride;
    src += static_cast<std::ptrdiff_t>(n) * src_stride;
    if constexpr (Waits) wait_for_loads();
  }
}

/// The same in both directions, through a place of our own.
template <std::size_t StageBytes, std::size_t Group, bool Waits>
void move_staged(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                 std::size_t bytes, std::size_t rows) noexcept {
  const row_mover move = wide_mover_of(bytes);
  alignas(64) std::byte stage[StageBytes];
  const auto stage_stride = static_cast<std::ptrdiff_t>(bytes);
  for (std::size_t n = 0; rows > 0; rows -= n) {
    n = std::min(rows, StageBytes / bytes);
    move_in_groups<Group, Waits>(move, stage, stage_stride, src, src_stride, bytes, n);
    move_in_groups<Group, Waits>(move, dst, dst_stride, stage, stage_stride, bytes, n);
    src += static_cast<std::ptrdiff_t>(n) * src_stride;
    dst += static_cast<std::ptrdiff_t>(n) * dst_stride;
  }
}

/// Beyond, a row by itself keeps the caches busy.
constexpr std::size_t waiting_bytes_max = 256;
constexpr std::size_t staged_bytes_max = 64;
/// With fewer rows there is nothing to gain.
constexpr std::size_t staged_rows_min = 9;

/// With fast_string_copy: shorter rows by strings if they collide, longer ones if all do not fit the first cache.
constexpr std::size_t colliding_string_bytes_max = 96;
constexpr std::size_t string_bytes_min = 1024;

bool are_better_strings(std::size_t bytes, std::size_t rows, bool collide) noexcept {
  if (bytes >= string_bytes_min) return bytes * rows > first_cache_bytes;
  return collide && bytes <= colliding_string_bytes_max && rows >= staged_rows_min;
}

bool same_page_offsets(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  return (apart + bytes) % page < 2 * bytes;
}

}  // namespace

void copy_rows(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
               std::size_t bytes, std::size_t rows) noexcept {
  const bool dst_collides = dst_stride % page == 0;
  const bool src_collides = src_stride % page == 0;
  const bool fast_strings = has_fast_string_copy();
  if (fast_strings && are_better_strings(bytes, rows, dst_collides || src_collides)) {
    return move_strings(dst, dst_stride, src, src_stride, bytes, rows);
  }
  if (!fast_strings && bytes <= waiting_bytes_max && rows >= staged_rows_min && (dst_collides || src_collides)) {
    // Each load would wait for all stores under way: long phases of loads only and of stores only.
    if (dst_collides && src_collides && same_page_offsets(dst, src, bytes)) {
      return move_staged<2048, 8, true>(dst, dst_stride, src, src_stride, bytes, rows);
    }
    if (src_collides && bytes <= staged_bytes_max) {
      return move_in_groups<8, true>(wide_mover_of(bytes), dst, dst_stride, src, src_stride, bytes, rows);
    }
    if (bytes <= staged_bytes_max) {
      return move_staged<4 * staged_bytes_max, 4, false>(dst, dst_stride, src, src_stride, bytes, rows);
    }
  }
  // Stores of 32 bytes take half the time of twice as many, but longer rows fill the queue with them faster than lines
  // that push each other out arrive.
  const bool wide = bytes <= staged_bytes_max || !(dst_collides || src_collides);
  (wide ? wide_mover_of(bytes) : mover_of(bytes))(dst, dst_stride, src, src_stride, bytes, rows);
}

}  // namespace rma::detail
