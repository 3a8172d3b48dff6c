// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which of the ranges that a rank has attached to a dynamic window hold an operation's bytes.
#pragma once

#include <cstdint>

#include "window/window_core.hpp"

namespace rma::detail {

inline bool lies_in(const attachment& range, std::uint64_t first, std::uint64_t bytes) noexcept {
  return first >= range.address && first - range.address <= range.bytes &&
         bytes <= range.bytes - (first - range.address);
}

/// Of `count` ranges in the order of their addresses: the one that holds the bytes; else those that hold them together,
/// one behind the other without a gap, as one range without a region, for each has its own; bytes 0 if there are none.
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
