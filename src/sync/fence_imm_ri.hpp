// SPDX-License-Identifier: Apache-2.0
/// \file
/// Fence "imm-ri".
///
///   begin -> finish -> complete -> count -> arrive -> barrier -> over
///     |                   |                   |                    ^
///     +-- no_precede ---> +-- barrier         +-- no_succeed ------+
///                                             +-- placed ----------+
///
/// As imm-opt (fence_imm_opt.hpp), but puts are writes with an immediate, which the target counts as they arrive: no
/// finish messages. count sums the immediates. The paper sums by an allreduce; each rank needs its own sum only, so
/// that here, too, it is a reduce-scatter.
///
/// placed: where the completion of a write says that it is in the target's memory, there is no barrier. Nobody leaves
/// count before all ranks have come to it, with their puts complete: what comes after cannot meet anything from before.
///
/// Each immediate takes a receive descriptor of the target, and a target that computes replenishes none. So an origin
/// sends at most `immediates_max` of them to one target in one epoch: puts beyond that are plain writes, and one finish
/// message behind them is counted as one more. Any number of puts costs a target a bounded number of descriptors.
/// Puts in several pieces, and those that the target's handler does, have no immediate either.
/// With no_precede there is nothing to finish and nothing to count; with no_succeed nothing has to be opened.
/// Source: dissertation, section 6.3.3, figure 6.6 (Fence-Imm-RI).
#pragma once

#include "sync/fence_phase.hpp"

namespace rma::detail {

constexpr fence_phase after_imm_ri(fence_phase now, assertion promises, bool placed) noexcept {
  const bool first = has(promises, no_precede);
  const fence_phase open = has(promises, no_succeed) ? fence_phase::over : fence_phase::barrier;
  RMA_ASSERT(!first || now == fence_phase::begin || now == fence_phase::complete || now == fence_phase::barrier);
  switch (now) {
    case fence_phase::begin: return first ? fence_phase::complete : fence_phase::finish;
    case fence_phase::finish: return fence_phase::complete;
    case fence_phase::complete: return first ? open : fence_phase::count;
    case fence_phase::count: return fence_phase::arrive;
    case fence_phase::arrive: return placed ? fence_phase::over : open;
    default: RMA_ASSERT(now == fence_phase::barrier && !has(promises, no_succeed)); return fence_phase::over;
  }
}

}  // namespace rma::detail
