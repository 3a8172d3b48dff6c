// SPDX-License-Identifier: Apache-2.0
/// \file
/// Fence among neighbors: for a known pattern, which is set once. No collective, O(neighbors) messages.
///
///   begin -> complete -> finish (to all targets) -> arrive (from all origins)
///         -> flags (to origins, from targets) -> over
///
/// complete is first: a target that has all its finish messages may change data that this rank was still reading.
/// The number that imm-naive counts is known: each origin sends one finish message in each fence, even without a
/// put. flags: an origin may put into this rank's part again when all of this rank's origins have
/// finished. Source: dissertation, "fences for a given pattern" (future work).
#pragma once

#include "sync/fence_phase.hpp"

namespace rma::detail {

constexpr fence_phase after_neighbors(fence_phase now, assertion promises) noexcept {
  const bool first = has(promises, no_precede);
  const fence_phase open = has(promises, no_succeed) ? fence_phase::over : fence_phase::flags;
  RMA_ASSERT(!first || now == fence_phase::begin || now == fence_phase::complete || now == fence_phase::flags);
  switch (now) {
    case fence_phase::begin: return fence_phase::complete;
    case fence_phase::complete: return first ? open : fence_phase::finish;
    case fence_phase::finish: return fence_phase::arrive;
    case fence_phase::arrive: return open;
    default: RMA_ASSERT(now == fence_phase::flags && !has(promises, no_succeed)); return fence_phase::over;
  }
}

}  // namespace rma::detail
