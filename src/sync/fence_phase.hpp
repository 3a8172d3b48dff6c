// SPDX-License-Identifier: Apache-2.0
/// \file
/// The steps that fences are made of. Each design (fence_*.hpp) is a pure function from a step to the next one;
/// fence.cpp carries the steps out.
#pragma once

#include <cstdint>

#include "core/assert.hpp"
#include "rma/epoch.hpp"

namespace rma::detail {

enum class fence_phase : std::uint8_t {
  begin,
  finish,    ///< tell the targets of puts that all are on their way; the message comes behind them
  complete,  ///< wait for this rank's own operations: the origin's side, or both where nothing else tells the target
  count,     ///< reduce-scatter: each rank learns how many finish messages and immediates it has to wait for
  issue,     ///< carry out what was put off, finish messages behind it
  arrive,    ///< wait for that many
  barrier,   ///< nobody goes on before all are here
  flags,     ///< the same by a message from each rank to each other one
  over,
};

/// Fence "placed": today's adapters say when a write is in the target's memory, or a read behind it does.
///
///   begin -> complete (placed) -> barrier -> over
///
/// The barrier cannot overtake what is there. Nothing has to be counted.
constexpr fence_phase after_placed(fence_phase now, assertion promises) noexcept {
  const bool alone = has(promises, no_precede) && has(promises, no_succeed);
  switch (now) {
    case fence_phase::begin: return fence_phase::complete;
    case fence_phase::complete: return alone ? fence_phase::over : fence_phase::barrier;
    default: RMA_ASSERT(now == fence_phase::barrier && !alone); return fence_phase::over;
  }
}

}  // namespace rma::detail
