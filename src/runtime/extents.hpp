// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which parts of a rank's segment the fabric between nodes reaches, by which key. Where a registration takes its
/// memory, the segment (which is sparse) cannot be one region: each part that is taken becomes one of its own, and its
/// key stands in a table at the start of the segment, a region that everybody knows. An origin reads it once for each
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
  std::uint64_t bytes;  ///< that are registered, from its start
  std::uint64_t key;
};

inline constexpr std::size_t extent_homes = 4096;
inline constexpr std::size_t extent_neighbors = 16;

/// At the start of a segment whose fabric pins memory.
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
