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

#include "rma/epoch.hpp"
#include "rma/error.hpp"

namespace rma::detail {

struct window_core;
struct target_state;
enum class deferral : std::uint8_t;

status lock_auto(window_core& w, int target, lock_kind kind, deferral by) noexcept;
status release_auto(window_core& w, int target, lock_kind kind) noexcept;
/// For the trace: the way that the lock which is held has taken.
void explain_path(target_state& state) noexcept;

}  // namespace rma::detail
