// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stripe locks of mapped memory: a stripe's lock guards the updates of the bytes that belong to it.
///
/// They are biased towards single elements (docs/decisions/0022-biased-stripes.md), for each target:
///
///   biased --bulk update: ending, fence on every core--> ending --no rank is updating--> needed
///
///   biased   inlined calls and scattered updates change an element by one locked instruction and take no stripe
///   ending   they take the stripe; its holder still updates by locked instructions
///   needed   all updates take the stripe, and its holder may use plain instructions
#pragma once

#include <cstddef>
#include <cstdint>

#include "rma/detail/window_ops.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

struct checked_operation;

/// The base of a dynamic window is null, and the offset an address.
inline std::byte* place_of(std::byte* base, std::uint64_t offset) noexcept {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + offset);
}

inline stripe_lock& stripe_at(const window_core& w, const target_view& t, std::uint64_t index) noexcept {
  return t.stripes[index & w.stripe_mask];
}

/// Waits for a stripe. If its holder has died, the stripe is taken over: only that rank's update may be incomplete.
status lock_stripe(window_core& w, stripe_lock& stripe) noexcept;

/// True if the holder of a stripe may use plain instructions for the bytes that it guards. `elements`: number of
/// elements to be updated in one range.
bool owns_stripe(window_core& w, target_view& t, std::uint64_t elements) noexcept;

/// An accumulate with layouts (src/xfer/scattered_updates.cpp): small blocks are updated in batches, sorted by stripe.
status accumulate_layouts(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept;

}  // namespace rma::detail
