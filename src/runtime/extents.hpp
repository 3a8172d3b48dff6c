// SPDX-License-Identifier: Apache-2.0
/// \file
/// The registered parts of a rank's segment and their keys on the fabric between nodes. Where a registration pins its
/// memory, the sparse segment cannot be one region: each allocated part is a region of its own, whose
/// key is in a table at the start of the segment, a region that all ranks know. An origin reads it once for each
/// window and target.
///
/// The place of an entry follows from the offset of its part, so that one read of a few neighbors finds it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rma::detail {

/// A part of the segment. `bytes` 0: the entry is free.
struct extent {
  std::uint64_t offset;
  std::uint64_t bytes;  ///< registered bytes from its start
  std::uint64_t key;
};

inline constexpr std::size_t extent_homes = 4096;
inline constexpr std::size_t extent_neighbors = 16;

/// The table at the start of a segment whose fabric pins memory.
struct extent_table {
  std::array<extent, extent_homes + extent_neighbors> entries;
};

/// Index of the first of the `extent_neighbors` entries among which a part is found.
constexpr std::size_t home_of(std::uint64_t offset) noexcept {
  return static_cast<std::size_t>(((offset >> 12) * 0x9e3779b97f4a7c15U) >> 52);
}
static_assert(home_of(~std::uint64_t{0}) < extent_homes);

/// The entry of the part at `offset`, or null.
template <class Entry>
Entry* find_extent(std::span<Entry> neighbors, std::uint64_t offset) noexcept {
  for (Entry& e : neighbors) {
    if (e.bytes != 0 && e.offset == offset) return &e;
  }
  return nullptr;
}

}  // namespace rma::detail
