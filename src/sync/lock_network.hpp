// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "network": one word per window and target, taken by the fabric's atomics alone. The target does nothing.
///
///   63: a writer   62: the lock's home is elsewhere   61..58: number of released holds of dead ranks, modulo 16
///   57..40: number of holders   39: wanted   35..0: the sum of the holders' names, which are rank + 1
///
///   exclusive:  entering --swap hits, nobody holds it--> held        shared:  entering --add, no writer--> held
///                   |  hits, readers hold it: draining --they left--> held        |  writer: leaving --add--> waiting
///                   |  misses, a writer: waiting --it left--> entering or held    '--------- entering <--it left--'
///
/// A writer that drains for long withdraws for a while: readers that hold other locks must not wait for it in a cycle.
///
/// The first poll of a rank that waits for a writer sets "wanted", by a swap of the word. A writer's later polls swap
/// the word that the holder will leave behind for the writer's own hold: the poll that finds the lock free has taken
/// it. The holder reads "wanted" in the result of its release, and pauses before it takes the lock exclusively again
/// ("yielding"): until another rank has had it, or for yield_max_ns if none comes.
/// A rank that takes the lock exclusively clears the bit.
///
/// An uncontended lock is one atomic, and its release another. The writer's bit keeps new readers out, so that writers
/// do not starve. Contenders poll again after pauses that double and are drawn uniformly from [t/2, t] (the
/// dissertation names the back-off as the missing piece).
///
/// Death of a holder: count and sum identify a single holder. A waiter that finds it dead releases its
/// hold (RMA_LOCK_RECOVERY=on) and reports peer_failed, as do the other current waiters: they see the number of
/// recoveries change. Several dead holders cannot be identified
/// (docs/decisions/0012-names-in-the-lock-word.md). Source: dissertation ch. 4, direct passive. The steps are pure;
/// network_machine.hpp drives them.
#pragma once

#include <cstdint>

#include "core/assert.hpp"
#include "rma/epoch.hpp"
#include "rma/error.hpp"

namespace rma::detail {

struct window_core;
struct operation_record;

inline constexpr std::uint64_t network_writer = std::uint64_t{1} << 63;
inline constexpr std::uint64_t network_away = std::uint64_t{1} << 62;
inline constexpr unsigned network_recoveries_shift = 58;
inline constexpr std::uint64_t network_recoveries_mask = std::uint64_t{15} << network_recoveries_shift;
inline constexpr unsigned network_holders_shift = 40;
inline constexpr std::uint64_t network_holders_mask = ((std::uint64_t{1} << 18) - 1) << network_holders_shift;
inline constexpr std::uint64_t network_wanted = std::uint64_t{1} << 39;
inline constexpr std::uint64_t network_names_mask = (std::uint64_t{1} << 36) - 1;

constexpr std::uint64_t network_holders(std::uint64_t word) noexcept {
  return (word & network_holders_mask) >> network_holders_shift;
}
constexpr std::uint64_t network_names(std::uint64_t word) noexcept { return word & network_names_mask; }
constexpr std::uint64_t network_recoveries(std::uint64_t word) noexcept {
  return (word & network_recoveries_mask) >> network_recoveries_shift;
}
/// The value that a hold of this world rank adds to the word.
constexpr std::uint64_t network_hold(int rank, lock_kind kind) noexcept {
  const std::uint64_t named = (std::uint64_t{1} << network_holders_shift) + static_cast<std::uint64_t>(rank) + 1;
  return kind == lock_kind::exclusive ? network_writer | named : named;
}
/// The only holder, as a world rank; -1 if there is none or more than one.
constexpr int network_only_holder(std::uint64_t word) noexcept {
  return network_holders(word) == 1 ? static_cast<int>(network_names(word)) - 1 : -1;
}
/// The word after the release of a dead rank's hold.
constexpr std::uint64_t network_recovered(std::uint64_t word, std::uint64_t dead_hold) noexcept {
  const std::uint64_t counted = (network_recoveries(word) + 1) << network_recoveries_shift;
  return ((word - dead_hold) & ~network_recoveries_mask) | (counted & network_recoveries_mask);
}

enum class network_phase : std::uint8_t {
  claiming,  ///< no hold: the lock's home is elsewhere, and this rank moves it here
  entering,  ///< no hold: tries to take the lock
  leaving,   ///< a hold beside a writer's: removes it
  waiting,   ///< no hold: sets "wanted", polls again after a pause
  yielding,  ///< no hold, after the last one: polls after a pause whether another rank has taken the lock
  draining,  ///< has the writer's bit: polls after a pause whether the readers have left
  held,
  moved,  ///< no hold: the lock's home is elsewhere
};

/// One rank's attempt to acquire one lock.
struct network_attempt {
  lock_kind kind = lock_kind::exclusive;
  network_phase phase = network_phase::entering;
  std::uint64_t hold = 0;  ///< network_hold of this rank
  std::uint64_t seen = 0;  ///< the word after the last request
};

/// The word that a single writer leaves behind at its release, if `wanted` is set already; 0 if it is unknown.
constexpr std::uint64_t network_expected(std::uint64_t word) noexcept {
  const int holder = network_only_holder(word);
  return holder < 0 || (word & network_wanted) == 0 ? 0 : word - network_hold(holder, lock_kind::exclusive);
}
/// The poll of a waiting writer swaps the word that the holder will leave behind for its own hold: if the holder is
/// gone, the poll has taken the lock.
constexpr bool network_takes(const network_attempt& a) noexcept {
  return a.phase == network_phase::waiting && a.kind == lock_kind::exclusive && network_expected(a.seen) != 0;
}

/// The attempt's next atomic on the word: an add of `operand`, or a swap of `expected` for `operand`.
struct network_request {
  bool add = false;
  std::uint64_t expected = 0;
  std::uint64_t operand = 0;
};

/// True if this rank's hold is in the word.
constexpr bool network_in_word(network_phase p) noexcept {
  return p == network_phase::leaving || p == network_phase::draining || p == network_phase::held;
}

constexpr network_request request_of(const network_attempt& a) noexcept {
  if (a.phase == network_phase::claiming) return {true, 0, a.hold - network_away};
  if (a.phase == network_phase::leaving) return {true, 0, std::uint64_t{0} - a.hold};
  if (network_takes(a)) {
    const std::uint64_t free = network_expected(a.seen);
    return {false, free, (free & ~network_wanted) + a.hold};
  }
  if (a.phase == network_phase::waiting) return {false, a.seen, a.seen | network_wanted};
  if (a.phase != network_phase::entering) return {false, a.seen, a.seen};  // a look
  if (a.kind == lock_kind::shared) return {true, 0, a.hold};
  return {false, a.seen, (a.seen & ~network_wanted) + a.hold};
}

/// The phase of a rank without a hold that has seen this word.
constexpr network_phase network_outside(std::uint64_t word) noexcept {
  if ((word & network_away) != 0) return network_phase::moved;
  return (word & network_writer) != 0 ? network_phase::waiting : network_phase::entering;
}

/// The attempt after its request found `old` in the word.
constexpr network_attempt step(network_attempt a, std::uint64_t old) noexcept {
  RMA_ASSERT(network_holders(a.hold) == 1 && (a.kind == lock_kind::exclusive) == ((a.hold & network_writer) != 0));
  RMA_ASSERT(!network_in_word(a.phase) || network_holders(old) != 0);  // this rank's hold is in the word
  const network_request r = request_of(a);
  const bool changed = r.add || old == r.expected;
  const bool taken = changed && network_takes(a);
  a.seen = !changed ? old : r.add ? old + r.operand : r.operand;
  switch (a.phase) {
    case network_phase::claiming:
      a.phase =
          a.kind == lock_kind::shared || network_holders(old) == 0 ? network_phase::held : network_phase::draining;
      break;
    case network_phase::entering:
      if (!changed) {
        a.phase = network_outside(old);
      } else if (a.kind == lock_kind::shared) {
        a.phase = network_outside(old) == network_phase::entering ? network_phase::held : network_phase::leaving;
      } else {
        a.phase = network_holders(old) == 0 ? network_phase::held : network_phase::draining;
      }
      break;
    case network_phase::leaving: a.phase = network_outside(a.seen); break;
    case network_phase::waiting: a.phase = taken ? network_phase::held : network_outside(a.seen); break;
    case network_phase::yielding:
      if (!changed) a.phase = network_outside(old);
      break;
    case network_phase::draining:
      if (network_holders(old) == 1) a.phase = network_phase::held;
      break;
    case network_phase::held:
    case network_phase::moved: break;
  }
  RMA_ASSERT(!network_in_word(a.phase) || network_holders(a.seen) != 0);
  RMA_ASSERT(a.phase != network_phase::held || a.kind == lock_kind::shared || (a.seen & network_writer) != 0);
  return a;
}

static_assert(step({lock_kind::exclusive, network_phase::entering, network_hold(3, lock_kind::exclusive), 0}, 0)
                  .phase == network_phase::held);
static_assert(step({lock_kind::shared, network_phase::entering, network_hold(3, lock_kind::shared), 0},
                   network_hold(1, lock_kind::exclusive))
                  .phase == network_phase::leaving);

/// The phase before the next exclusive lock of a rank that has left this word behind.
constexpr network_phase network_again(std::uint64_t left) noexcept {
  return (left & network_wanted) != 0 && network_outside(left) == network_phase::entering ? network_phase::yielding
                                                                                          : network_phase::entering;
}

/// Turns an exclusive hold into "away".
constexpr network_request leave_request(int rank) noexcept {
  return {true, 0, network_away - network_hold(rank, lock_kind::exclusive)};
}
/// Releases an exclusive hold, and marks the lock's home as elsewhere.
status leave_network(window_core& w, int target) noexcept;
/// Releases the lock. Waits only for the adapter.
status release_network(window_core& w, int target, lock_kind kind) noexcept;
/// As release, in two halves and for a shared hold. Null: nothing happened.
operation_record* start_release_network(window_core& w, int target) noexcept;
status finish_release_network(window_core& w, int target, operation_record* started) noexcept;

}  // namespace rma::detail
