// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "cpu": one word in memory that the node's ranks share, and a record of each rank for each target. Shared and
/// exclusive, barging, biased towards readers.
///
///   state word   63: held exclusively   62..32: by this rank (world)   31: somebody sleeps   30: readers are counted
///                29..0: counted readers
///
///   biased:   a reader writes its own record, then looks at the word     no line that two ranks write
///             a writer sets the word, then waits until no record says that a reader holds it
///                 | the first exclusive lock                  ^ so many shared locks without a writer, doubling
///                 v                                           |
///   counted:  free --exclusive--> writer --unlock--> free     one locked instruction each way
///             free --shared--> 1 reader <--> n readers --> free
///
///   a rank that finds it held spins a little, then writes itself into the target's list of waiters and sleeps; who
///   unlocks wakes the next in the list, which tries again; a biased reader wakes the writer that waits for it
///
/// Barging (whoever is awake may take it) keeps the lock fast when there are more ranks than cores: a ticket lock
/// hands it to somebody who does not run. Bias: readers of one target would otherwise pass its line around.
///
/// Death of a holder: each rank writes down what it holds where (records). A waiter that sees a death gives the dead
/// rank's hold back (RMA_LOCK_RECOVERY=on) and reports peer_failed.
/// Source: dissertation ch. 5 (the CPU lock of the hybrid scheme); Dice and Kogan, BRAVO, 2019 (biased readers).
#pragma once

#include "rma/epoch.hpp"
#include "xfer/window_core.hpp"

namespace rma::detail {

/// What the state word becomes when a holder of `kind` that is counted in it lets go.
constexpr std::uint64_t lock_released(std::uint64_t state, lock_kind kind) noexcept {
  return kind == lock_kind::shared ? state - 1 : (state & lock_waiters) | lock_counted;
}

static_assert(lock_released(lock_tag(1) | lock_waiters, lock_kind::exclusive) == (lock_waiters | lock_counted));

/// Blocks until this rank holds the target's lock. `peer_failed` if a rank that held it died meanwhile.
status acquire_cpu(window_core& w, int target, lock_kind kind) noexcept;
/// Lets go and wakes the next waiter. Never waits.
void release_cpu(window_core& w, int target, lock_kind kind) noexcept;

}  // namespace rma::detail
