// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "cpu": one word in memory that the node's ranks share, shared and exclusive, barging.
///
///   state word   63: held exclusively   62..32: by this rank (world)   31: somebody sleeps   30..0: shared holders
///
///   free --exclusive--> writer --unlock--> free            a rank that finds it held spins a little, then writes
///   free --shared--> 1 reader <--> n readers --> free      itself into the target's list of waiters and sleeps;
///                                                         who unlocks wakes the next in the list, which tries again
///
/// Barging (whoever is awake may take it) keeps the lock fast when there are more ranks than cores: a ticket lock
/// hands it to somebody who does not run.
///
/// Death of a holder: each rank writes down what it holds where (records). A waiter that sees a death gives the dead
/// rank's hold back (RMA_LOCK_RECOVERY=on) and reports peer_failed.
/// Source: dissertation ch. 5 (the CPU lock of the hybrid scheme).
#pragma once

#include "rma/epoch.hpp"
#include "xfer/window_core.hpp"

namespace rma::detail {

/// What the state word becomes if `kind` takes it, or 0 if it cannot now.
constexpr std::uint64_t lock_taken(std::uint64_t state, lock_kind kind, std::uint64_t tag) noexcept {
  const std::uint64_t waiters = state & lock_waiters;
  if ((state & lock_writer) != 0) return 0;
  if (kind == lock_kind::shared) return state + 1;
  return (state & lock_readers) == 0 ? tag | waiters : 0;
}

/// What it becomes when a holder of `kind` lets go.
constexpr std::uint64_t lock_released(std::uint64_t state, lock_kind kind) noexcept {
  return kind == lock_kind::shared ? state - 1 : state & lock_waiters;
}

static_assert(lock_taken(0, lock_kind::exclusive, lock_tag(3)) == lock_tag(3));
static_assert(lock_taken(2, lock_kind::exclusive, lock_tag(3)) == 0);
static_assert(lock_taken(2, lock_kind::shared, lock_tag(3)) == 3);
static_assert(lock_taken(lock_tag(1), lock_kind::shared, lock_tag(3)) == 0);
static_assert(lock_released(lock_tag(1) | lock_waiters, lock_kind::exclusive) == lock_waiters);

/// Blocks until this rank holds the target's lock. `peer_failed` if a rank that held it died meanwhile.
status acquire_cpu(window_core& w, int target, lock_kind kind) noexcept;
/// Lets go and wakes the next waiter. Never waits.
void release_cpu(window_core& w, int target, lock_kind kind) noexcept;

}  // namespace rma::detail
