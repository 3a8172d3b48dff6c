// SPDX-License-Identifier: Apache-2.0
/// \file
/// The common part of the protocols "shared" and "staged": a large contiguous copy of which the target makes parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

/// True for a put or get that is contiguous at both ends, on memory that processors copy.
[[nodiscard]] bool can_share(const window_core& w, const checked_operation& o) noexcept;

/// The origin's buffer of a put or get.
[[nodiscard]] std::byte* buffer_of(const checked_operation& o) noexcept;

/// Copies bytes [first, first + bytes) of the operation by this rank alone.
status copy_here(window_core& w, const fabric::region_key& region, const checked_operation& o, std::uint64_t first,
                 std::uint64_t bytes) noexcept;

/// Requests a copy from the target; null if it is not certain to reply. The caller waits for its end with
/// wait_for_copy.
[[nodiscard]] operation_record* ask_for_copy(window_core& w, const checked_operation& o, share_header what) noexcept;
/// Returns `done`, operation_record::refused if the target has not made it, or `peer_failed`. Frees the record.
status wait_for_copy(window_core& w, const checked_operation& o, operation_record& copy) noexcept;

}  // namespace rma::detail
