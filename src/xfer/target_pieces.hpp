// SPDX-License-Identifier: Apache-2.0
/// \file
/// The cutting of a layout's data into rows, at the origin for its messages and at the target for a part that a message
/// names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "datatype/copy.hpp"
#include "datatype/cursor.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

/// Takes the next rows, or a part of one, of at most `room` bytes; they have 0 bytes if there is no room. The layout
/// lies at `offset`.
inline target_rows next_rows(cursor& at, std::uint64_t offset, std::uint64_t room) noexcept {
  const block_run run = at.run();
  const block front = at.front();
  if (at.skipped() == 0 && run.bytes <= room) {
    const std::size_t rows = rows_within(room, run.bytes, run.count);
    at.advance_blocks(rows);
    return {offset + static_cast<std::uint64_t>(run.offset), run.stride, static_cast<std::uint32_t>(run.bytes),
            static_cast<std::uint32_t>(rows)};
  }
  const std::uint64_t part = std::min<std::uint64_t>(front.bytes, room);
  if (part != 0) at.advance_in_block(part);
  return {offset + static_cast<std::uint64_t>(front.offset), 0, static_cast<std::uint32_t>(part), 1};
}

}  // namespace rma::detail
