// SPDX-License-Identifier: Apache-2.0
#include "datatype/rows.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rma::detail {
namespace {

// 16 bytes at any alignment and of any type: a register of the baseline ISA. Wider ones gain nothing here, the cache
// misses of strided rows decide.
using lane __attribute__((vector_size(16), aligned(1), may_alias)) = unsigned char;

/// N bytes on their way through registers.
template <std::size_t N>
struct chunk {
  [[gnu::always_inline]] explicit chunk(const std::byte* from) noexcept {
    for (std::size_t i = 0; i < N / 16; ++i) lanes[i] = reinterpret_cast<const lane*>(from)[i];
  }
  [[gnu::always_inline]] void store(std::byte* to) const noexcept {
    for (std::size_t i = 0; i < N / 16; ++i) reinterpret_cast<lane*>(to)[i] = lanes[i];
  }
  lane lanes[N / 16];
};

template <std::size_t N>
  requires(N < 16)
struct chunk<N> {
  using integer = std::conditional_t<N == 8, std::uint64_t, std::conditional_t<N == 4, std::uint32_t, std::uint8_t>>;
  static_assert(sizeof(integer) == N);
  [[gnu::always_inline]] explicit chunk(const std::byte* from) noexcept { std::memcpy(&value, from, N); }
  [[gnu::always_inline]] void store(std::byte* to) const noexcept { std::memcpy(to, &value, N); }
  integer value;
};

/// `Together` rows are read before the first of them is written: where both sides have strides of 4 KiB, a load just
/// behind a store to the same offset of another page would wait for it.
template <std::size_t N, std::size_t Together>
void fixed_rows(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                std::size_t rows) noexcept {
  if constexpr (Together == 4) {
    for (; rows >= 4; rows -= 4) {
      const chunk<N> a(src), b(src + src_stride), c(src + 2 * src_stride), d(src + 3 * src_stride);
      a.store(dst);
      b.store(dst + dst_stride);
      c.store(dst + 2 * dst_stride);
      d.store(dst + 3 * dst_stride);
      src += 4 * src_stride;
      dst += 4 * dst_stride;
    }
  } else if constexpr (Together == 2) {
    for (; rows >= 2; rows -= 2) {
      const chunk<N> a(src), b(src + src_stride);
      a.store(dst);
      b.store(dst + dst_stride);
      src += 2 * src_stride;
      dst += 2 * dst_stride;
    }
  }
  for (; rows > 0; --rows) {
    chunk<N>(src).store(dst);
    src += src_stride;
    dst += dst_stride;
  }
}

}  // namespace

void copy_rows(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
               std::size_t bytes, std::size_t rows) noexcept {
  switch (bytes) {
    case 1: return fixed_rows<1, 4>(dst, dst_stride, src, src_stride, rows);
    case 4: return fixed_rows<4, 4>(dst, dst_stride, src, src_stride, rows);
    case 8: return fixed_rows<8, 4>(dst, dst_stride, src, src_stride, rows);
    case 16: return fixed_rows<16, 4>(dst, dst_stride, src, src_stride, rows);
    case 32: return fixed_rows<32, 4>(dst, dst_stride, src, src_stride, rows);
    case 64: return fixed_rows<64, 2>(dst, dst_stride, src, src_stride, rows);
    case 128: return fixed_rows<128, 1>(dst, dst_stride, src, src_stride, rows);
    case 256: return fixed_rows<256, 1>(dst, dst_stride, src, src_stride, rows);
    default: break;
  }
  for (; rows > 0; --rows) {
    std::memcpy(dst, src, bytes);
    dst += dst_stride;
    src += src_stride;
  }
}

}  // namespace rma::detail
