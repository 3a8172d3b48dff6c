// SPDX-License-Identifier: Apache-2.0
#include "datatype/lists.hpp"

namespace rma::detail {
namespace {

template <class Byte>
struct strided_places {
  Byte* first;
  std::ptrdiff_t stride;
  Byte* operator[](std::size_t i) const noexcept { return first + static_cast<std::ptrdiff_t>(i) * stride; }
};

template <class Byte>
struct listed_places {
  Byte* first;
  const list_entry* entries;
  Byte* operator[](std::size_t i) const noexcept { return displaced(first, entries[i].offset); }
};

template <std::size_t Bytes>
[[gnu::always_inline]] inline void move_one(std::byte* to, const std::byte* from) noexcept {
  unsigned char block[Bytes];
  std::memcpy(block, from, Bytes);
  std::memcpy(to, block, Bytes);
}

/// The size is a constant here, so that a move is one load and one store; each step of the loop does four of them.
template <std::size_t Bytes, class To, class From>
void move_each(To to, From from, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; count - i >= 4; i += 4) {
    move_one<Bytes>(to[i], from[i]);
    move_one<Bytes>(to[i + 1], from[i + 1]);
    move_one<Bytes>(to[i + 2], from[i + 2]);
    move_one<Bytes>(to[i + 3], from[i + 3]);
  }
  for (; i < count; ++i) move_one<Bytes>(to[i], from[i]);
}

template <class To, class From>
void move_all(To to, From from, std::size_t bytes, std::size_t count) noexcept {
  switch (bytes) {
    case 4: return move_each<4>(to, from, count);
    case 8: return move_each<8>(to, from, count);
    case 16: return move_each<16>(to, from, count);
    case 32: return move_each<32>(to, from, count);
    case 64: return move_each<64>(to, from, count);
    default:
      for (std::size_t i = 0; i < count; ++i) copy_block(to[i], from[i], bytes);
  }
}

}  // namespace

void copy_listed(const block_places<std::byte>& to, const block_places<const std::byte>& from, std::size_t bytes,
                 std::size_t count) noexcept {
  const listed_places<std::byte> to_list{to.first, to.entries};
  const listed_places<const std::byte> from_list{from.first, from.entries};
  const strided_places<std::byte> to_rows{to.first, to.stride};
  const strided_places<const std::byte> from_rows{from.first, from.stride};
  if (to.entries == nullptr) {
    move_all(to_rows, from_list, bytes, count);
  } else if (from.entries == nullptr) {
    move_all(to_list, from_rows, bytes, count);
  } else {
    move_all(to_list, from_list, bytes, count);
  }
}

}  // namespace rma::detail
