// SPDX-License-Identifier: Apache-2.0
/// \file
/// The steps of fences. Each design (fence_*.hpp) is a pure function from a step to the next one; fence.cpp carries
/// the steps out.
#pragma once

#include <cstdint>

#include "core/assert.hpp"
#include "rma/epoch.hpp"

namespace rma::detail {

enum class fence_phase : std::uint8_t {
  begin,
  finish,    ///< sends a finish message to each target of puts, after the puts
  complete,  ///< waits for this rank's operations, at the origin, or at both sides where no message notifies the target
  count,     ///< reduce-scatter: each rank gets the number of finish messages and immediates to wait for
  issue,     ///< issues deferred operations, then finish messages
  arrive,    ///< waits for that number of them
  barrier,   ///< no rank leaves it before all ranks have entered it
  flags,     ///< a barrier by a message from each rank to all others
  over,
};

/// Fence "placed": with today's adapters a completion, or that of a later read, implies that a write is in memory.
///
///   begin -> complete (placed) -> barrier -> over
///
/// The barrier cannot overtake writes that are in memory, so nothing has to be counted.
constexpr fence_phase after_placed(fence_phase now, assertion promises) noexcept {
  const bool alone = has(promises, no_precede) && has(promises, no_succeed);
  RMA_ASSERT(now == fence_phase::begin || now == fence_phase::complete || now == fence_phase::barrier);
  switch (now) {
    case fence_phase::begin: return fence_phase::complete;
    case fence_phase::complete: return alone ? fence_phase::over : fence_phase::barrier;
    default: RMA_ASSERT(!alone); return fence_phase::over;
  }
}

/// The fences "imm-*", which issue operations at once. They differ in `last`, the step that opens the next epoch; with
/// `placed` it is left out where operations were counted.
///
///   begin -> finish -> complete -> count -> arrive -> last -> over
///     |                   |                   |                ^
///     +-- no_precede ---> +-- no_precede: last  +-- no_succeed -+
///
/// With no_precede there is nothing to finish and nothing to count; with no_succeed nothing has to be opened.
constexpr fence_phase after_imm(fence_phase now, assertion promises, fence_phase last, bool placed) noexcept {
  const bool first = has(promises, no_precede);
  const fence_phase open = has(promises, no_succeed) ? fence_phase::over : last;
  RMA_ASSERT(!first || now == fence_phase::begin || now == fence_phase::complete || now == last);
  switch (now) {
    case fence_phase::begin: return first ? fence_phase::complete : fence_phase::finish;
    case fence_phase::finish: return fence_phase::complete;
    case fence_phase::complete: return first ? open : fence_phase::count;
    case fence_phase::count: return fence_phase::arrive;
    case fence_phase::arrive: return placed ? fence_phase::over : open;
    default: RMA_ASSERT(now == last && !has(promises, no_succeed)); return fence_phase::over;
  }
}

}  // namespace rma::detail
