// SPDX-License-Identifier: Apache-2.0
/// \file
/// Fence "imm-naive".
///
///   begin -> finish -> complete -> count -> arrive -> flags -> over
///     |                   |                   |                    ^
///     +-- no_precede ---> +-- no_precede: flags   +-- no_succeed ---+
///
/// Puts are posted at once. finish: a message to each target of a put, on the channel of the puts and after them.
/// count: the number of finish messages to expect. flags: each rank notifies all others that they may access its part
/// again. Both steps cost O(targets) and O(ranks) messages of each rank.
/// With no_precede there is nothing to finish and nothing to count; with no_succeed nothing has to be opened.
/// Source: dissertation, section 6.3.1, figure 6.4 (Fence-Imm-Naive).
#pragma once

#include "sync/fence_phase.hpp"

namespace rma::detail {

constexpr fence_phase after_imm_naive(fence_phase now, assertion promises) noexcept {
  return after_imm(now, promises, fence_phase::flags, false);
}

}  // namespace rma::detail
