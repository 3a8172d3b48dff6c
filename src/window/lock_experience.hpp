// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank's experience with a hybrid lock on another node: its last known home, the cost of network atomics, and the
/// excess cost of requests to the target's lock manager. Pure steps; src/sync/lock_hybrid.cpp drives them.
///
///   the time of each reply of the manager is compared with that of network atomics for the same request: an excess
///   adds to excess_ns, a saving subtracts from it; a rank that computes, and so does not answer, causes excess
///
/// Time in which a request waited for other holders is not counted: they would have held a network lock as long.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/assert.hpp"

namespace rma::detail {

/// The home of a hybrid lock.
enum class lock_place : std::uint8_t { unknown, cpu, network };

struct lock_experience {
  std::int64_t atomic_ns = 0;                ///< the shortest time of a network atomic; 0: not known
  std::int64_t excess_ns = 0;                ///< excess time of the manager's replies, less the time saved
  std::uint16_t small_epochs = 0;            ///< small deferrable epochs in a row in network mode (lock "auto")
  std::uint16_t migrate_after = 8;           ///< number of them after which the manager is asked for a migration
  lock_place manager = lock_place::unknown;  ///< its home at this rank's last request
  bool alone = false;                        ///< no other rank runs on the target's node, by its manager's reply
  bool writes = false;                       ///< only writes were pending at the end of the last epoch
};
inline constexpr std::uint16_t migrate_after_max = 4096;

/// Upper bound on the bytes of an epoch that lock "auto" defers to its end.
inline constexpr std::uint64_t deferral_bytes_max = std::uint64_t{16} << 10;

/// Upper bound, in network locks, on the excess of one reply of a manager whose node has other ranks: they profit from
/// the lock's home, and a single computation of the target says little.
inline constexpr std::int64_t excess_once_locks = 1;
inline constexpr std::uint32_t excess_locks_max = 127;
inline constexpr std::int64_t atomics_per_lock = 2;  ///< one for lock, one for unlock
/// Time of a manager's reply, in atomics, that counts as no excess: one more than a network lock, for the savings of
/// the target's neighbors. If an epoch ends with writes, only the atomics of the network lock beside them: its unlock
/// follows them at once, while the manager's waits for them.
constexpr std::int64_t atomics_per_answer(const lock_experience& e) noexcept { return e.writes ? 1 : 3; }
/// The same bound for a whole epoch that is sent to the manager (lock "auto").
constexpr std::int64_t atomics_per_epoch(const lock_experience& e) noexcept { return e.writes ? 2 : 3; }

/// The experience after an atomic that waited for no other rank.
constexpr lock_experience after_atomic(lock_experience e, std::int64_t took_ns) noexcept {
  RMA_ASSERT(took_ns >= 0);
  e.atomic_ns = e.atomic_ns == 0 ? took_ns : std::min(e.atomic_ns, took_ns);
  e.atomic_ns = std::max<std::int64_t>(e.atomic_ns, 1);
  RMA_ASSERT(e.atomic_ns <= std::max<std::int64_t>(took_ns, 1));
  return e;
}

/// The excess time in network locks.
constexpr std::uint32_t excess_locks(const lock_experience& e) noexcept {
  return e.atomic_ns == 0 ? 0 : static_cast<std::uint32_t>(e.excess_ns / (atomics_per_lock * e.atomic_ns));
}

/// The experience after a reply of the lock manager that came `took_ns` after the request, instead of some atomics.
constexpr lock_experience after_answer(lock_experience e, std::int64_t took_ns, std::int64_t atomics) noexcept {
  RMA_ASSERT(atomics > 0 && e.atomic_ns >= 0);
  if (e.atomic_ns == 0) return e;
  const std::int64_t once_ns = excess_once_locks * atomics_per_lock * e.atomic_ns;
  std::int64_t lost_ns = took_ns - atomics * e.atomic_ns;
  if (!e.alone) lost_ns = std::min(lost_ns, once_ns);
  e.excess_ns = std::clamp<std::int64_t>(e.excess_ns + lost_ns, 0, excess_locks_max * atomics_per_lock * e.atomic_ns);
  RMA_ASSERT(excess_locks(e) <= excess_locks_max);
  return e;
}

/// The number of atomics that correspond to sending an epoch of that many bytes to the manager: lock, unlock, the
/// operations and their completion, for which an unlock that follows writes does not wait; plus one for a long epoch.
constexpr std::int64_t atomics_of_epoch(std::uint64_t bytes, bool writes) noexcept {
  return (writes ? 3 : 4) + static_cast<std::int64_t>(bytes / 4096);
}

/// The experience after an epoch of that many bytes with the network lock.
constexpr lock_experience after_epoch(lock_experience e, std::uint64_t bytes) noexcept {
  const std::uint16_t before = e.small_epochs;
  RMA_ASSERT(before <= migrate_after_max);
  e.small_epochs =
      static_cast<std::uint16_t>(bytes > deferral_bytes_max ? 0 : std::min<int>(before + 1, migrate_after_max));
  RMA_ASSERT(e.small_epochs == 0 || e.small_epochs == std::min<int>(before + 1, migrate_after_max));
  return e;
}
constexpr bool prefers_cpu(const lock_experience& e) noexcept { return e.small_epochs >= e.migrate_after; }

/// The experience after the manager's reply to a request for migration, with its time; -1: it declined.
constexpr bool answers_well(const lock_experience& e, std::int64_t took_ns) noexcept {
  return took_ns >= 0 && took_ns <= atomics_per_epoch(e) * e.atomic_ns;
}
/// The experience if the lock stays in the network, or has returned to it: the next request is made later.
constexpr lock_experience after_no(lock_experience e) noexcept {
  RMA_ASSERT(e.migrate_after != 0 && e.migrate_after <= migrate_after_max);
  e.small_epochs = 0;
  e.migrate_after = static_cast<std::uint16_t>(std::min<int>(2 * e.migrate_after, migrate_after_max));
  RMA_ASSERT(!prefers_cpu(e));
  return e;
}

/// The experience after the lock was found at `place`; it starts anew if the lock has migrated.
constexpr lock_experience found_at(lock_experience e, lock_place manager) noexcept {
  if (e.manager != manager) e.excess_ns = 0;
  e.manager = manager;
  return e;
}

}  // namespace rma::detail
