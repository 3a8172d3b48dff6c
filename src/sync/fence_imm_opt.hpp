// SPDX-License-Identifier: Apache-2.0
/// \file
/// Fence "imm-opt".
///
///   begin -> finish -> complete -> count -> arrive -> barrier -> over
///     |                   |                   |                    ^
///     +-- no_precede ---> +-- no_precede: barrier   +-- no_succeed ---+
///
/// As imm-naive (fence_imm_naive.hpp), but a barrier of O(log ranks) messages opens the next epoch.
///
/// Why not a barrier after `complete` alone, which would save two steps: where the completion of a write does not say
/// that it is in the target's memory, the barrier can overtake it (figure 6.3). tests/sync has that mutation, and finds
/// it. With no_precede there is nothing to finish and nothing to count; with no_succeed nothing has to be opened.
/// Source: dissertation, section 6.3.2, figure 6.5 (Fence-Imm-Opt).
#pragma once

#include "sync/fence_phase.hpp"

namespace rma::detail {

constexpr fence_phase after_imm_opt(fence_phase now, assertion promises) noexcept {
  const bool first = has(promises, no_precede);
  const fence_phase open = has(promises, no_succeed) ? fence_phase::over : fence_phase::barrier;
  RMA_ASSERT(!first || now == fence_phase::begin || now == fence_phase::complete || now == fence_phase::barrier);
  switch (now) {
    case fence_phase::begin: return first ? fence_phase::complete : fence_phase::finish;
    case fence_phase::finish: return fence_phase::complete;
    case fence_phase::complete: return first ? open : fence_phase::count;
    case fence_phase::count: return fence_phase::arrive;
    case fence_phase::arrive: return open;
    default: RMA_ASSERT(now == fence_phase::barrier && !has(promises, no_succeed)); return fence_phase::over;
  }
}

}  // namespace rma::detail
