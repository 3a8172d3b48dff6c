// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "two-sided", origin's side: the target's lock manager (lock_agent.hpp) is the lock. Lock, operations and unlock
/// of a deferrable epoch wait for the unlock and go to the target together, where the lock manager runs them.
///
///   lock, deferrable: nothing --put, get, accumulate--> they wait --unlock--> one or more messages, one answer
///   what cannot wait (flush, a value that is fetched, a request, a signal): the lock is asked for now, what waited is
///   sent, and the rest of the epoch goes as with any other lock
///
/// Locks of a window are taken in the order of the program's calls: one that is taken first sends the earlier ones.
///
/// Where several threads share the window (thread_level::multiple), the lock is asked for at once.
///
/// Source: dissertation ch. 4.
#pragma once

#include <memory>

#include "sync/lock_machine.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

/// Locks are taken in the order of the program's calls, or two ranks that obey an order would wait for each other:
/// takes those that were locked before `target` (-1: all) and sends what waits for them.
status send_deferred_before(window_core& w, int target) noexcept;

/// Nothing is sent yet: the operations of the epoch that begins wait. target_state::deferrable says why.
void begin_deferred(window_core& w, int target, lock_kind kind);
/// The epoch that waits, which is no more.
std::unique_ptr<deferred_epoch> take_deferred(window_core& w, int target);
/// Lock, operations and unlock, in as few messages as they fit in.
lock_request& send_epoch(window_core& w, int target, const deferred_epoch& epoch, std::uint32_t late = 0);
/// An epoch that was sent has ended so: `held`, the lock manager has run it.
struct epoch_end {
  lock_step step;
  status why;  ///< `transfer_failed` if the target could not run some of its operations
  const lock_request* request;
};
epoch_end await_epoch(window_core& w, int target, const deferred_epoch& epoch, std::uint32_t late) noexcept;
/// The target has run the epoch's operations, or they will never run: they are held no more.
void end_epoch(window_core& w, int target) noexcept;
/// The operations of an epoch whose lock this rank holds now.
void send_operations(window_core& w, int target);

/// With `by`, nothing is sent yet, but this rank's own lock is taken at once: its plain loads and stores cannot wait.
status lock_two_sided(window_core& w, int target, lock_kind kind, deferral by) noexcept;
/// Sends what has waited, or lets go of a lock that was asked for before. Waits for the target.
status release_two_sided(window_core& w, int target) noexcept;

}  // namespace rma::detail
