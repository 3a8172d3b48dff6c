// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "hybrid": the CPU lock (lock_cpu.hpp) and the network lock (lock_network.hpp) of one target. In each mode one
/// of them is the lock, and the other one is marked "away".
///
///   CPU mode:      the network word says "away"; the node's ranks take the CPU lock, the others ask the lock manager
///   network mode:  the CPU word says "away"; all ranks take the network word
///
///   CPU -> network (fig. 5.4):  another node's rank finds "away" in the network word (1), asks the manager (2), which
///       takes the CPU lock as "away, granted to that rank" (3, 4) and answers (5); the rank turns the network word
///       from "away" into its hold
///   network -> CPU:  a rank of the node takes the network word exclusively, marks the CPU word "away, migrating", and
///       turns its hold of the network word into "away", and the CPU word into its hold
///
/// At each of these moments at least one of the two words says "away", so that the lock is never held twice. Where both
/// do, the CPU word names the rank that acts next. If that rank dies, the rank that notices it finishes the step
/// (`mend`): back to CPU mode if the network word says "away", else nothing has happened yet.
///
/// The policy decides when to migrate. "adaptive": each request that would be served better in the other mode adds to
/// the benefit, each other one subtracts; when the benefit exceeds the cost of a migration, the lock migrates. The cost
/// doubles with each migration after which the lock did not stay, and halves with each after which it did. In network
/// mode requests of the node add; in CPU mode those of other nodes, but only if the lock manager has repeatedly
/// answered them late (window/lock_experience.hpp): a manager that answers is as good as the network. If the target is
/// alone on its node, every request of another node adds, and the first migration costs one of them. "pattern",
/// "priority" and "native" (LockChoice::policy) are criteria that section 5.2 names and leaves open. Source:
/// dissertation ch. 5, figures 5.1-5.4 (step 4 of figure 5.4 means network mode); the policy is our own.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/assert.hpp"
#include "rma/hints.hpp"
#include "sync/lock_cpu.hpp"
#include "sync/lock_network.hpp"

namespace rma::detail {

/// The CPU word in network mode, or while migrating there: it names the rank that moves or has moved the lock.
constexpr std::uint64_t granted_tag(int rank) noexcept {
  return lock_tag(static_cast<std::uint32_t>(rank)) | lock_away;
}
/// The CPU word while the lock migrates to CPU mode.
constexpr std::uint64_t migrating_tag(int rank) noexcept { return granted_tag(rank) | lock_migrating; }

/// The counts of the requests for one lock.
struct migration_ledger {
  std::uint32_t benefit = 0;         ///< requests of the other side, less those of the lock's home
  std::uint32_t migration_cost = 0;  ///< benefit at which the lock migrates
  std::uint32_t local_streak = 0;  ///< requests of the lock's home since the last migration, as far as they are counted
  bool migrate = false;
};
inline constexpr std::uint32_t migration_cost_min = 4;
inline constexpr std::uint32_t migration_cost_max = 512;

/// Policy "pattern": `benefit` holds the sides of the last requests, one bit each; 1 is the other side.
inline constexpr unsigned pattern_length = 8;
inline constexpr int pattern_majority = 6;
constexpr migration_ledger followed(migration_ledger l, bool at_home) noexcept {
  l.benefit = ((l.benefit << 1) | (at_home ? 0U : 1U)) & ((1U << pattern_length) - 1);
  l.migrate = std::popcount(l.benefit) >= pattern_majority;
  if (l.migrate) l.benefit = 0;
  return l;
}

/// The ledger after a request from the lock's home (`home`), or from the other side.
constexpr migration_ledger accounted(migration_ledger l, lock_policy policy, std::uint32_t threshold, bool at_home,
                                     std::uint32_t cost_min = migration_cost_min, std::uint32_t weight = 1) noexcept {
  RMA_ASSERT(cost_min > 0 && cost_min <= migration_cost_max);
  RMA_ASSERT(at_home || weight > 0);
  if (policy == lock_policy::pattern) return followed(l, at_home);
  l.migrate = false;
  l.migration_cost = std::max(l.migration_cost, cost_min);
  if (at_home) {
    l.benefit = policy == lock_policy::threshold || l.benefit == 0 ? 0 : l.benefit - 1;
    l.local_streak = std::min(l.local_streak + 1, migration_cost_max);
    return l;
  }
  l.benefit += weight;
  const std::uint32_t needed = policy == lock_policy::naive || policy == lock_policy::priority ? 1
                               : policy == lock_policy::threshold                              ? threshold
                                                                                               : l.migration_cost;
  if (l.benefit < needed) return l;
  const bool failed_attempt = l.local_streak < l.migration_cost;
  l.migration_cost =
      failed_attempt ? std::min(2 * l.migration_cost, migration_cost_max) : std::max(l.migration_cost / 2, cost_min);
  l.benefit = 0;
  l.local_streak = 0;
  l.migrate = true;
  RMA_ASSERT(l.migration_cost >= cost_min);
  return l;
}
static_assert(accounted({}, lock_policy::naive, 0, false).migrate);
static_assert(!accounted({}, lock_policy::threshold, 2, false).migrate);
static_assert(!accounted({}, lock_policy::adaptive, 0, false).migrate);

/// The CPU word after finishing the step of a dead rank that was to act next, given the network word; unchanged if
/// there is nothing to do.
constexpr std::uint64_t mended(std::uint64_t state, std::uint64_t network_word) noexcept {
  RMA_ASSERT((state & (lock_away | lock_migrating)) != lock_migrating);
  if ((state & lock_away) == 0) return state;
  const bool both_away = (network_word & network_away) != 0;
  const std::uint64_t next = both_away ? lock_abandoned(state) : state & ~lock_migrating;
  RMA_ASSERT(((next & lock_away) == 0) == both_away);
  return next;
}

// Lock "auto": a rank of another node and the lock manager move the lock to CPU mode. Each function returns the CPU
// word after a step, or the unchanged word if there is nothing to do.

/// The manager permits this rank to move the lock: the CPU word names it as the one that acts next. A rank of the node
/// that moves the lock first replaces it. Not permitted while the network word says "away" as well: then the CPU word
/// names a rank that is moving the lock.
constexpr std::uint64_t migration_offered(std::uint64_t state, std::uint64_t network_word, int rank) noexcept {
  if ((state & lock_away) == 0 || (state & lock_migrating) != 0 || (network_word & network_away) != 0) return state;
  return migrating_tag(rank) | (state & lock_waiters);
}
/// True while the CPU word names this rank as the one that may move the lock.
constexpr bool may_migrate_to_cpu(std::uint64_t state, int rank) noexcept {
  return (state & ~lock_waiters) == migrating_tag(rank);
}
/// The CPU word after this rank has moved the lock.
constexpr std::uint64_t migration_finished(std::uint64_t state, std::uint64_t network_word, int rank) noexcept {
  if (!may_migrate_to_cpu(state, rank) || (network_word & network_away) == 0) return state;
  return lock_counted | (state & lock_waiters);
}
/// The CPU word after this rank has cancelled the migration.
constexpr std::uint64_t migration_cancelled(std::uint64_t state, int rank) noexcept {
  return may_migrate_to_cpu(state, rank) ? granted_tag(rank) | (state & lock_waiters) : state;
}
/// The CPU word after this rank, to which the manager had granted the lock, gives up before it has moved it to the
/// network: both words still say "away".
constexpr std::uint64_t grant_withdrawn(std::uint64_t state, std::uint64_t network_word, int rank) noexcept {
  const bool brought = (state & ~lock_waiters) != granted_tag(rank) || (network_word & network_away) == 0;
  return brought ? state : lock_abandoned(state);
}
static_assert(migration_offered(granted_tag(1), 0, 2) == migrating_tag(2));
static_assert(migration_offered(granted_tag(1), network_away, 2) == granted_tag(1));
static_assert(migration_finished(migrating_tag(2), network_away, 2) == lock_counted);
static_assert(migration_cancelled(migrating_tag(1), 2) == migrating_tag(1));
static_assert(grant_withdrawn(granted_tag(1), 0, 1) == granted_tag(1));

/// Excess time, in network locks, from which a rank of another node wants the lock to migrate.
inline constexpr std::uint32_t excess_of_benefit = 2;

/// Counts a request for the lock in the target's block; true if the lock should migrate. `near`: called by a rank of
/// the node, with `home` if the lock is there; else by the lock manager in CPU mode, for a rank with that excess
/// (`late`).
bool note_request(window_core& w, window_block& block, lock_kind kind, bool at_home,
                  std::uint32_t late = excess_of_benefit) noexcept;
/// Finishes the step of a dead rank with the lock of a mapped target. True if there was one.
bool mend(window_core& w, int target) noexcept;
/// Sets the words of this rank's own lock, before any rank can request it.
void set_home(window_core& w, lock_home home) noexcept;

status release_hybrid(window_core& w, int target, lock_kind kind) noexcept;

}  // namespace rma::detail
