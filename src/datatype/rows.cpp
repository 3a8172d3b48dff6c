// SPDX-License-Identifier: Apache-2.0
#include "datatype/rows.hpp"

#include <cstdint>
#include <cstring>

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

/// Of strided rows every store may miss the first cache: one of 32 bytes takes half the time of two.
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

row_mover mover_of(std::size_t bytes) noexcept {
#if defined(__x86_64__)
  if ((bytes == 32 || bytes == 64) && __builtin_cpu_supports("avx2") != 0) {
    return bytes == 32 ? move_wide_lanes<1> : move_wide_lanes<2>;
  }
#endif
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

/// Rows that are moved together below.
constexpr std::size_t group = 4;
/// Addresses that far apart go to the same few places of the first cache.
constexpr std::ptrdiff_t page = 4096;
constexpr std::size_t staged_bytes_max = 64;
constexpr std::size_t paced_bytes_max = 256;

/// Nothing below begins before all above has been done. Its only use here is that little is under way at a time.
void wait_for_loads() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#endif
}

/// Through a place of our own. Left to itself the processor fetches the lines of so many rows ahead that they push each
/// other out of the first cache before they are used.
void move_staged(row_mover move, std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src,
                 std::ptrdiff_t src_stride, std::size_t bytes, std::size_t rows) noexcept {
  alignas(64) std::byte stage[group * staged_bytes_max];
  const auto stage_stride = static_cast<std::ptrdiff_t>(bytes);
  for (std::size_t n = 0; rows > 0; rows -= n) {
    n = rows < group ? rows : group;
    move(stage, stage_stride, src, src_stride, bytes, n);
    move(dst, dst_stride, stage, stage_stride, bytes, n);
    src += static_cast<std::ptrdiff_t>(n) * src_stride;
    dst += static_cast<std::ptrdiff_t>(n) * dst_stride;
  }
}

/// The same where moreover each load waits for the stores under way, since it looks like one of theirs: same offset in
/// the page.
void move_paced(row_mover move, std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src,
                std::ptrdiff_t src_stride, std::size_t bytes, std::size_t rows) noexcept {
  for (std::size_t n = 0; rows > 0; rows -= n) {
    n = rows < group ? rows : group;
    move(dst, dst_stride, src, src_stride, bytes, n);
    wait_for_loads();
    src += static_cast<std::ptrdiff_t>(n) * src_stride;
    dst += static_cast<std::ptrdiff_t>(n) * dst_stride;
  }
}

bool same_page_offsets(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  return (apart + bytes) % page < 2 * bytes;
}

}  // namespace

void copy_rows(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
               std::size_t bytes, std::size_t rows) noexcept {
  const row_mover move = mover_of(bytes);
  const bool dst_collides = dst_stride % page == 0;
  const bool src_collides = src_stride % page == 0;
  if (rows <= 2 * group || !(dst_collides || src_collides)) return move(dst, dst_stride, src, src_stride, bytes, rows);
  if (dst_collides && src_collides && bytes <= paced_bytes_max && same_page_offsets(dst, src, bytes)) {
    return move_paced(move, dst, dst_stride, src, src_stride, bytes, rows);
  }
  if (bytes <= staged_bytes_max) return move_staged(move, dst, dst_stride, src, src_stride, bytes, rows);
  move(dst, dst_stride, src, src_stride, bytes, rows);
}

}  // namespace rma::detail
