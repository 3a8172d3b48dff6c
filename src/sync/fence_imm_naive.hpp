// SPDX-License-Identifier: Apache-2.0
/// \file
/// Fence "imm-naive".
///
///   begin -> finish -> complete -> count -> arrive -> flags -> over
///     |                   |                   |                    ^
///     +-- no_precede ---> +-- no_precede: flags   +-- no_succeed ---+
///
/// Puts go to the adapter at once. finish: a message to each target of a put, on the channel of the puts, behind them.
/// count: how many of these will come. flags: each rank tells each other one that its part may be used again. Both are
/// floods: O(targets) and O(ranks) messages of each rank.
/// With no_precede there is nothing to finish and nothing to count; with no_succeed nothing has to be opened.
/// Source: dissertation, section 6.3.1, figure 6.4 (Fence-Imm-Naive).
#pragma once

#include "sync/fence_phase.hpp"

namespace rma::detail {

constexpr fence_phase after_imm_naive(fence_phase now, assertion promises) noexcept {
  const bool first = has(promises, no_precede);
  const fence_phase open = has(promises, no_succeed) ? fence_phase::over : fence_phase::flags;
  RMA_ASSERT(!first || now == fence_phase::begin || now == fence_phase::complete || now == fence_phase::flags);
  switch (now) {
    case fence_phase::begin: return first ? fence_phase::complete : fence_phase::finish;
    case fence_phase::finish: return fence_phase::complete;
    case fence_phase::complete: return first ? open : fence_phase::count;
    case fence_phase::count: return fence_phase::arrive;
    case fence_phase::arrive: return open;
    default: RMA_ASSERT(now == fence_phase::flags && !has(promises, no_succeed)); return fence_phase::over;
  }
}

}  // namespace rma::detail
