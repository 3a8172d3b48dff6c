// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "auto" of a team that spans nodes: a hybrid lock (lock_hybrid.hpp) whose way is chosen for each epoch.
///
///   the target's node:  as the hybrid lock, policy "adaptive"
///   other nodes:        CPU mode:     a deferrable epoch waits for its end, while it has no more than
///                                     deferral_bytes_max and nobody waits for a result: lock, operations and unlock in
///                                     one message, as lock "two-sided"; a larger one, and any other, asks the lock
///                                     manager for the lock, its operations go by the adapter
///                       network mode: by the adapter alone
///
/// At first the lock of a rank that has its node for itself is in the network, all others are in CPU mode. It leaves
/// CPU mode when the lock manager was away (lock_experience.hpp). It comes there at the request of the node's ranks, or
/// so:
///
///   another node's rank, after some small deferrable epochs in a row: "may I bring it?" --> manager: CPU word "away,
///   migrating, that rank" --answer--> and if that came as soon as the adapter would have done it: at the end of its
///   next exclusive epoch it leaves the network word as "away" --"it is yours"--> manager: CPU word free
///
/// Nobody waits for these messages. A rank that dies in between is named in the CPU word, see lock_hybrid.hpp.
/// Source: the choice is ours; what is chosen from: dissertation ch. 4 and 5. docs/decisions/0016-lock-choice.md.
#pragma once

#include <cstdint>

#include "core/assert.hpp"
#include "rma/epoch.hpp"
#include "rma/error.hpp"
#include "sync/hybrid_machine.hpp"
#include "window/lock_experience.hpp"

namespace rma::detail {

// The choices are pure steps; lock_auto.cpp carries them out.

/// How an epoch of a rank of another node begins.
enum class auto_begin : std::uint8_t {
  at_once,        ///< takes the lock as the hybrid lock does
  network_first,  ///< takes it from the network word; is deferred if the lock is not there
  deferred,       ///< takes nothing before its end
};
constexpr auto_begin begin_of(bool deferrable, lock_place place) noexcept {
  if (!deferrable) return auto_begin::at_once;
  return place == lock_place::cpu ? auto_begin::deferred : auto_begin::network_first;
}

/// The stage with which the hybrid lock begins for an epoch that was sent whole, after the manager's answer; `held` if
/// the manager has run it.
constexpr hybrid_stage after_epoch_answer(lock_step answer) noexcept {
  RMA_ASSERT(answer == lock_step::held || answer == lock_step::migrates || answer == lock_step::moved);
  if (answer == lock_step::held) return hybrid_stage::held;
  return answer == lock_step::migrates ? hybrid_stage::claiming : hybrid_stage::network;
}

/// A reply ends the question whether this rank may bring the lock.
enum class migration_reply : std::uint8_t { not_asked, asked, yes, no };

/// An exclusive epoch by the network's way ends so, for a rank that prefers CPU mode.
enum class auto_end : std::uint8_t {
  release,
  ask,     ///< the same, and then asks whether it may bring the lock
  bring,   ///< leaves the network word as "away", and tells the manager
  cancel,  ///< releases; the manager hears that this rank will not bring it
};
/// `named`: the CPU word names this rank still, if it may bring the lock.
constexpr auto_end end_of(migration_reply reply, bool named) noexcept {
  if (reply == migration_reply::asked || reply == migration_reply::no) return auto_end::release;
  if (reply == migration_reply::not_asked) return auto_end::ask;
  return named ? auto_end::bring : auto_end::cancel;
}
static_assert(end_of(migration_reply::yes, true) == auto_end::bring);
static_assert(end_of(migration_reply::yes, false) == auto_end::cancel);

status lock_auto(window_core& w, int target, lock_kind kind, deferral by) noexcept;
status release_auto(window_core& w, int target, lock_kind kind) noexcept;
/// For the trace: the way that the lock which is held has taken.
void explain_path(target_state& state) noexcept;

}  // namespace rma::detail
