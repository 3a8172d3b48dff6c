// SPDX-License-Identifier: Apache-2.0
/// \file
/// The protocols "shared" and "staged" have this in common: a large contiguous copy of which the target makes parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

/// A put or get whose data are in one piece at both ends, to memory that this processor copies to.
[[nodiscard]] bool can_share(const window_core& w, const checked_operation& o) noexcept;

/// The origin's side of a put or get.
[[nodiscard]] std::byte* buffer_of(const checked_operation& o) noexcept;

/// Bytes [first, first + bytes) of the operation, by this rank alone.
status copy_here(window_core& w, const fabric::region_key& region, const checked_operation& o, std::uint64_t first,
                 std::uint64_t bytes) noexcept;

/// Asks the target for a copy; null if it is not certain to answer. The caller waits for its end by wait_for_copy.
[[nodiscard]] operation_record* ask_for_copy(window_core& w, const checked_operation& o, share_header what) noexcept;
/// `done`; operation_record::refused: the target has not made it; or `peer_failed`. Gives the record back.
status wait_for_copy(window_core& w, const checked_operation& o, operation_record& copy) noexcept;

}  // namespace rma::detail
