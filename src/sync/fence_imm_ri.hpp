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
/// finish messages. count sums the immediates. The paper uses an allreduce for that; each rank needs its own sum only,
/// so this is a reduce-scatter.
///
/// placed: where the completion of a write implies that it is in the target's memory, there is no barrier. No rank
/// leaves count before all ranks have entered it, with their puts complete: later operations cannot meet earlier ones.
/// RMA_FENCE=imm-ri:barrier keeps the barrier, as the figure has it.
///
/// Each immediate consumes a receive descriptor of the target, and a target that computes replenishes none. So an
/// origin sends at most `immediates_max` of them to one target in one epoch: further puts are plain writes, and one
/// finish message after them counts as one more. Any number of puts costs a target a bounded number of descriptors.
/// Puts in several pieces, and those that the target's handler carries out, have no immediate either. With no_precede
/// there is nothing to finish and nothing to count; with no_succeed nothing has to be opened. Source: dissertation,
/// section 6.3.3, figure 6.6 (Fence-Imm-RI).
#pragma once

#include "sync/fence_phase.hpp"

namespace rma::detail {

constexpr fence_phase after_imm_ri(fence_phase now, assertion promises, bool placed) noexcept {
  return after_imm(now, promises, fence_phase::barrier, placed);
}

}  // namespace rma::detail
