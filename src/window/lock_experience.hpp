// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank knows of a hybrid lock on another node where it was last, what the network's way costs, and what the
/// way by the target's lock manager has cost beyond that. Pure steps; src/sync/lock_hybrid.cpp drives them.
///
///   each answer of the manager is compared with what the network would have taken for the same: what was lost is debt,
///   what was saved pays it back; a manager that was away (its rank computes) makes debt, one that answers has none
///
/// Time for which a request waited for other holders is not counted: they would have held it in the network, too.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rma::detail {

/// Where a hybrid lock is.
enum class lock_place : std::uint8_t { unknown, cpu, network };

struct lock_experience {
  lock_place place = lock_place::unknown;  ///< as it was when this rank asked last
  bool alone = false;                      ///< the target shares its node with no other rank, says its manager
  std::int64_t atomic_ns = 0;              ///< what one atomic of the network has taken, at best; 0: not known
  std::int64_t debt_ns = 0;                ///< lost by asking the manager, less what was saved
  bool writes = false;                     ///< the last epoch ended with nothing but writes under way
  std::uint32_t small_epochs = 0;          ///< deferrable ones in a row, in network mode (lock "auto")
  std::uint32_t migrate_after = 8;         ///< so many, and the manager is asked whether it answers
};
inline constexpr std::uint32_t home_after_max = 4096;

/// An epoch of lock "auto" waits for its end while it has no more than so many bytes.
inline constexpr std::uint64_t deferral_bytes_max = std::uint64_t{16} << 10;

/// So many of the network's locks may be lost in one answer of a manager whose rank has neighbors: they want the lock
/// where it is, and one piece of computation says little.
inline constexpr std::int64_t debt_once_locks = 1;
inline constexpr std::uint32_t lateness_max = 127;
inline constexpr std::int64_t atomics_per_lock = 2;  ///< lock and unlock
/// An answer of the manager may take so many atomics before it loses something: one more than the network's lock, for
/// what the target's neighbors save. Where an epoch ends with writes, only what the network's lock takes beside them:
/// its unlock follows them at once, and the manager's waits for them.
constexpr std::int64_t atomics_per_answer(const lock_experience& e) noexcept { return e.writes ? 1 : 3; }
/// The manager may take so many for a whole epoch that it is sent (lock "auto").
constexpr std::int64_t atomics_per_epoch(const lock_experience& e) noexcept { return e.writes ? 2 : 3; }

/// After an atomic that waited for nobody.
constexpr lock_experience after_atomic(lock_experience e, std::int64_t took_ns) noexcept {
  e.atomic_ns = e.atomic_ns == 0 ? took_ns : std::min(e.atomic_ns, took_ns);
  e.atomic_ns = std::max<std::int64_t>(e.atomic_ns, 1);
  return e;
}

/// After an answer of the lock manager that came `took_ns` after the request, in place of so many atomics.
constexpr lock_experience after_answer(lock_experience e, std::int64_t took_ns, std::int64_t atomics) noexcept {
  if (e.atomic_ns == 0) return e;
  const std::int64_t once_ns = debt_once_locks * atomics_per_lock * e.atomic_ns;
  std::int64_t lost_ns = took_ns - atomics * e.atomic_ns;
  if (!e.alone) lost_ns = std::min(lost_ns, once_ns);
  e.debt_ns = std::clamp<std::int64_t>(e.debt_ns + lost_ns, 0, lateness_max * atomics_per_lock * e.atomic_ns);
  return e;
}

/// The debt in locks of the network.
constexpr std::uint32_t excess_locks(const lock_experience& e) noexcept {
  return e.atomic_ns == 0 ? 0 : static_cast<std::uint32_t>(e.debt_ns / (atomics_per_lock * e.atomic_ns));
}

/// The atomics in place of which an epoch of so many bytes is sent to the manager: lock, unlock, the operations and
/// their completion, for which an unlock that follows writes does not wait; so many bytes take as long as one more.
constexpr std::int64_t atomics_of_epoch(std::uint64_t bytes, bool writes) noexcept {
  return (writes ? 3 : 4) + static_cast<std::int64_t>(bytes / 4096);
}

/// After an epoch of so many bytes by the network's way.
constexpr lock_experience after_epoch(lock_experience e, std::uint64_t bytes) noexcept {
  e.small_epochs = bytes > deferral_bytes_max ? 0 : e.small_epochs + 1;
  return e;
}
constexpr bool prefers_cpu(const lock_experience& e) noexcept { return e.small_epochs >= e.migrate_after; }

/// The manager was asked whether it answers, and did, after so long, or did not want the lock (-1).
constexpr bool answers_well(const lock_experience& e, std::int64_t took_ns) noexcept {
  return took_ns >= 0 && took_ns <= atomics_per_epoch(e) * e.atomic_ns;
}
/// The lock stays where it is, or came back: the next question is later.
constexpr lock_experience after_no(lock_experience e) noexcept {
  e.small_epochs = 0;
  e.migrate_after = std::min(2 * e.migrate_after, home_after_max);
  return e;
}

/// Found at `place`; a lock that has moved begins anew.
constexpr lock_experience found_at(lock_experience e, lock_place place) noexcept {
  if (e.place != place) e.debt_ns = 0;
  e.place = place;
  return e;
}

}  // namespace rma::detail
