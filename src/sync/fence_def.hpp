// SPDX-License-Identifier: Apache-2.0
/// \file
/// Fence "def": operations are deferred to the fence that closes their epoch; the first fence does nothing.
///
///   begin -> count -> issue -> complete -> arrive -> over
///     |                                               ^
///     +-- no_precede: complete ---------------------+
///
/// count: a reduce-scatter, in which every rank contributes its targets. No rank leaves it before all have entered it,
/// so that no operation reaches a rank that is still in the previous epoch: no barrier is needed. issue: small
/// operations are sent to the target's handler, and the last message of each rank is marked. no_succeed changes
/// nothing, since this fence has no step that opens the next epoch.
///
/// Communication does not overlap computation, but for an empty epoch or a few small operations it is the fence with
/// the fewest messages. A rank that leaves the fence does not know whether the others have: call a barrier before a
/// lock epoch that reads data which others put. Source: dissertation, section 6.2 (Fence-Def).
#pragma once

#include "sync/fence_phase.hpp"

namespace rma::detail {

constexpr fence_phase after_def(fence_phase now, assertion promises) noexcept {
  RMA_ASSERT(!has(promises, no_precede) || now == fence_phase::begin || now == fence_phase::complete);
  switch (now) {
    case fence_phase::begin: return has(promises, no_precede) ? fence_phase::complete : fence_phase::count;
    case fence_phase::count: return fence_phase::issue;
    case fence_phase::issue: return fence_phase::complete;
    case fence_phase::complete: return has(promises, no_precede) ? fence_phase::over : fence_phase::arrive;
    default: RMA_ASSERT(now == fence_phase::arrive); return fence_phase::over;
  }
}

}  // namespace rma::detail
