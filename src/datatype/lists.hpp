// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of blocks whose places are listed: the inner loops of index lists, on either side or on both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "datatype/layout_node.hpp"

namespace rma::detail {

/// Where blocks of one length lie: where a list says, or at equal distances.
template <class Byte>
struct block_places {
  Byte* first = nullptr;
  std::ptrdiff_t stride = 0;
  const list_entry* entries = nullptr;  ///< their offsets count from `first`; null: there is no list
};

/// `address` + `by`. The address from which a list counts may lie outside of the memory, or wrap.
template <class Byte>
[[gnu::always_inline]] inline Byte* displaced(Byte* address, std::ptrdiff_t by) noexcept {
  return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(by));
}

/// Copies `count` blocks in their order; at least one side has a list. Nothing overlaps.
void copy_listed(const block_places<std::byte>& to, const block_places<const std::byte>& from, std::size_t bytes,
                 std::size_t count) noexcept;

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

}  // namespace rma::detail
