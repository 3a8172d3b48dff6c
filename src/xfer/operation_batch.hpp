// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several small operations in one message to a target's handler, and what ends the epoch behind them.
///
///   batch_header | [length | operation message] ... | rider         origin -> target, acknowledged as one message
///
/// Neighbors that are alike (puts; accumulates of one operator and type) become the pieces of one operation message.
/// Source: dissertation, 10.2, figures 10.5 and 10.6.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "xfer/operation_record.hpp"
#include "xfer/scheduling.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

class engine;

inline constexpr std::size_t rider_bytes_max = 64;
/// Of one operation, so that its answer fits one message, too.
inline constexpr std::uint64_t batched_bytes_max = 2048;

/// Pieces of one operation with a layout.
inline constexpr std::size_t batched_pieces_max = 32;

/// An operation takes so much of a message at most, whose target has so many pieces; 0: it is contiguous.
constexpr std::uint32_t batched_bytes(call kind, std::uint64_t bytes, std::size_t pieces) noexcept {
  const std::uint64_t data = kind == call::get ? 0 : kind == call::compare_and_swap ? 2 * bytes : bytes;
  const std::size_t head = pieces == 0 ? 0 : sizeof(std::uint32_t) + sizeof(operation_header);
  return static_cast<std::uint32_t>(head + std::max<std::size_t>(pieces, 1) * sizeof(target_rows) + data + 1);
}
/// One message to the target has room for so much, counted like that.
std::uint32_t batch_bytes_of(window_core& w, int target) noexcept;

/// Sends operations on one target, in as few messages as they fit in, with the rider (may be null) behind
/// the last one. `ops` is empty then.
void send_batches(window_core& w, int target, target_state& state, operation_record::queue& ops,
                  const rider* end) noexcept;

/// Serves such a message; the caller holds the progress lock.
void serve_batch(engine& e, int source, std::span<const std::byte> payload) noexcept;

}  // namespace rma::detail
