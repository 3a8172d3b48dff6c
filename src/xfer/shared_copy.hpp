// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the protocols "shared" and "staged" have in common: a large contiguous copy of which the target makes parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

/// What the target was asked to copy.
struct asked_copy {
  context::peer* peer = nullptr;
  std::uint64_t number = 0;    ///< of the message
  std::uint32_t refusals = 0;  ///< of the peer before
  [[nodiscard]] bool is_over() const noexcept { return peer->operations_done.load() >= number; }
  [[nodiscard]] bool refused() const noexcept { return peer->refusals.load() != refusals; }
};

/// A put or get whose data are in one piece at both ends, to memory that this processor copies to.
[[nodiscard]] bool can_share(const window_core& w, const checked_operation& o) noexcept;

/// The origin's side of a put or get.
[[nodiscard]] std::byte* buffer_of(const checked_operation& o) noexcept;

/// Bytes [first, first + bytes) of the operation, by this rank alone.
status copy_here(window_core& w, const fabric::region_key& region, const checked_operation& o, std::uint64_t first,
                 std::uint64_t bytes) noexcept;

/// Asks the target for a copy; false if it is not certain to answer.
[[nodiscard]] bool ask_for_copy(window_core& w, const checked_operation& o, const share_header& what,
                                asked_copy& of) noexcept;
/// `done`, though it may have been refused, or `peer_failed`.
status wait_for_copy(window_core& w, const checked_operation& o, const asked_copy& of) noexcept;

}  // namespace rma::detail
