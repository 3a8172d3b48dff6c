// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several small operations in one message to a target's handler, with the message that ends the epoch after them.
///
///   batch_header | [length | operation message] ... | rider         origin -> target, acknowledged as one message
///
/// Similar neighbors (puts; accumulates of one operator and type) become the pieces of one operation message. Source:
/// dissertation, 10.2, figures 10.5 and 10.6.
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
/// The limit of one operation, so that its reply fits one message, too.
inline constexpr std::uint64_t batched_bytes_max = 2048;

/// The limit of the pieces of one operation with a layout on this node.
inline constexpr std::size_t batched_pieces_max = 32;

/// The pieces that a batch has of an operation on a target with this layout, null if it is contiguous; a target on
/// another node knows the layout by its number.
inline std::size_t batched_pieces(bool far, const Layout* layout) noexcept {
  return layout == nullptr ? 0 : far ? 1 : layout->blocks();
}
/// The bytes of a message that an operation takes at most, with so many pieces at the target; 0: it is contiguous.
constexpr std::uint32_t batched_bytes(call kind, std::uint64_t bytes, std::size_t pieces) noexcept {
  const std::uint64_t data = kind == call::get ? 0 : kind == call::compare_and_swap ? 2 * bytes : bytes;
  const std::size_t head = pieces == 0 ? 0 : sizeof(std::uint32_t) + sizeof(operation_header);
  return static_cast<std::uint32_t>(head + std::max<std::size_t>(pieces, 1) * sizeof(target_rows) + data + 1);
}
/// The same for a held operation.
std::uint32_t batched_bytes_of(const window_core& w, const operation_record& op) noexcept;
/// The bytes of one message to the target, counted in the same way.
std::uint32_t batch_bytes_of(const window_core& w, int target) noexcept;

/// True if few messages to the rank wait for room of the network: send_batches does not wait before its first message.
[[nodiscard]] bool has_room_for_batch(window_core& w, int rank) noexcept;

/// Sends operations on one target, in as few messages as possible, with the rider (may be null) after the last one.
/// `ops` is empty afterwards. Waits where many messages wait for room.
void send_batches(window_core& w, int target, target_state& state, operation_record::queue& ops,
                  const rider* end) noexcept;

/// Serves a batch; the caller holds the progress lock.
void serve_batch(engine& e, int source, std::span<const std::byte> payload) noexcept;

}  // namespace rma::detail
