// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds the attached ranges of a dynamic window that hold an operation's bytes.
#pragma once

#include <cstdint>

#include "window/window_core.hpp"

namespace rma::detail {

inline bool lies_in(const attachment& range, std::uint64_t first, std::uint64_t bytes) noexcept {
  return first >= range.address && first - range.address <= range.bytes &&
         bytes <= range.bytes - (first - range.address);
}

/// Searches `count` ranges, sorted by address. Returns the range that holds the bytes; or, if adjacent ranges hold them
/// together, one range without a region, since each has its own; or a range of 0 bytes if there are none.
template <class RangeAt>
attachment find_range(std::uint64_t count, RangeAt&& range_at, std::uint64_t first, std::uint64_t bytes) noexcept {
  attachment row;
  for (std::uint64_t i = 0; i < count; ++i) {
    const attachment next = range_at(i);
    if (lies_in(next, first, bytes)) return next;
    const bool follows = row.bytes != 0 && next.address == row.address + row.bytes;
    row = follows ? attachment{row.address, row.bytes + next.bytes, {}} : attachment{next.address, next.bytes, {}};
    if (follows && lies_in(row, first, bytes)) return row;
  }
  return {};
}

}  // namespace rma::detail
