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
/// A barrier right after `complete` would save two steps, but where the completion of a write does not imply that it is
/// in the target's memory, the barrier can overtake it (figure 6.3). A test in tests/sync detects that mutation.
/// With no_precede there is nothing to finish and nothing to count; with no_succeed nothing has to be opened.
/// Source: dissertation, section 6.3.2, figure 6.5 (Fence-Imm-Opt).
#pragma once

#include "sync/fence_phase.hpp"

namespace rma::detail {

constexpr fence_phase after_imm_opt(fence_phase now, assertion promises) noexcept {
  return after_imm(now, promises, fence_phase::barrier, false);
}

}  // namespace rma::detail
