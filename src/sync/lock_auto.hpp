// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "auto" of a team that spans nodes: a hybrid lock (lock_hybrid.hpp) whose path is chosen for each epoch.
///
///   the target's node:  as the hybrid lock, policy "adaptive"
///   other nodes:        CPU mode:     a deferrable epoch is sent at its end, while it has no more than
///                                     deferral_bytes_max and no call waits for a result: lock, operations and unlock
///                                     in one message, as lock "two-sided"; all other epochs get the lock from the
///                                     lock manager, and their operations use the adapter
///                       network mode: only the adapter
///
/// At first the lock of a rank that is alone on its node is in network mode, all others are in CPU mode. A lock leaves
/// CPU mode when its manager answers late (lock_experience.hpp). It enters CPU mode at the request of the node's ranks,
/// or so:
///
///   a rank of another node, after some small deferrable epochs in a row: asks --> manager: CPU word "away, migrating,
///   that rank" --reply--> if it came as soon as the adapter would have replied: at the end of its
///   next exclusive epoch the rank leaves the network word as "away" --notifies--> manager: CPU word free
///
/// No rank waits for these messages. The CPU word names the rank in case it dies in between, see lock_hybrid.hpp.
/// Source: the alternatives are those of the dissertation, ch. 4 and 5; the choice: docs/decisions/0016-lock-choice.md.
#pragma once

#include <cstdint>

#include "core/assert.hpp"
#include "rma/epoch.hpp"
#include "rma/error.hpp"
#include "sync/hybrid_machine.hpp"
#include "window/lock_experience.hpp"

namespace rma::detail {

// The choices are pure steps; lock_auto.cpp carries them out.

/// The beginning of an epoch of a rank of another node.
enum class auto_begin : std::uint8_t {
  at_once,        ///< acquires the lock as the hybrid lock does
  network_first,  ///< acquires it by the network word; is deferred if the lock is not there
  deferred,       ///< acquires nothing before its end
};
constexpr auto_begin begin_of(bool deferrable, lock_place manager) noexcept {
  const auto_begin later = manager == lock_place::cpu ? auto_begin::deferred : auto_begin::network_first;
  const auto_begin begin = deferrable ? later : auto_begin::at_once;
  RMA_ASSERT((begin == auto_begin::at_once) == !deferrable);
  RMA_ASSERT(begin != auto_begin::deferred || manager == lock_place::cpu);  // only its manager runs a whole epoch
  return begin;
}

/// The stage with which the hybrid lock begins after the manager's reply to a whole epoch; `held` if the manager has
/// run the epoch.
constexpr hybrid_stage after_epoch_answer(lock_step answer) noexcept {
  RMA_ASSERT(answer == lock_step::held || answer == lock_step::migrates || answer == lock_step::moved);
  const hybrid_stage behind = answer == lock_step::migrates ? hybrid_stage::claiming : hybrid_stage::network;
  const hybrid_stage next = answer == lock_step::held ? hybrid_stage::held : behind;
  RMA_ASSERT((next == hybrid_stage::held) == (answer == lock_step::held));
  return next;
}

/// The state of the request to move the lock to CPU mode, and its reply.
enum class migration_reply : std::uint8_t { not_asked, asked, yes, no };

/// The end of an exclusive epoch with the network lock, for a rank that prefers CPU mode.
enum class auto_end : std::uint8_t {
  release,
  request_migration,  ///< releases, and asks the manager for permission to move the lock
  migrate,            ///< leaves the network word as "away", and notifies the manager
  cancel,             ///< releases, and cancels the migration at the manager
};
/// `named`: the CPU word still names this rank as the one that may move the lock.
constexpr auto_end end_of(migration_reply reply, bool named) noexcept {
  const bool permitted = reply == migration_reply::yes;
  const auto_end without = reply == migration_reply::not_asked ? auto_end::request_migration : auto_end::release;
  const auto_end end = !permitted ? without : named ? auto_end::migrate : auto_end::cancel;
  RMA_ASSERT(end != auto_end::migrate || named);
  RMA_ASSERT((end == auto_end::migrate || end == auto_end::cancel) == permitted);  // a permission is used or returned
  return end;
}
static_assert(end_of(migration_reply::yes, true) == auto_end::migrate);
static_assert(end_of(migration_reply::yes, false) == auto_end::cancel);

status lock_auto(window_core& w, int target, lock_kind kind, deferral by) noexcept;
status release_auto(window_core& w, int target, lock_kind kind) noexcept;
/// The path of the held lock, for the trace.
void explain_path(target_state& state) noexcept;

}  // namespace rma::detail
