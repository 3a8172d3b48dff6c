// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "network", scheme "fompi": a global word at the team's first rank, and a local word at each target.
///
///   global   63..32: epochs of lock_all           31..0: exclusive holders of any target, and registered waiters
///   local    63: a writer   62..59: writers that died and were removed, modulo 16   58..32: its name, rank + 1
///            31..0: readers
///
///   exclusive:  registering --add to global--> taking --swap of local hits--> held
///                  ^   |  a lock_all is open      |  misses, it is held
///                  |   '----------> withdrawing <-'
///                  |  it left            |  add to global: as before
///                  '--- barred (looks at global), blocked (at local) <--'
///   lock_all:   registering --add to global, no exclusive holder--> held; else withdrawing, barred
///   shared:     taking --add to local, no writer--> held
///                  '--a writer--> blocked, in the word --it left--> held
///
/// A lock_all is one atomic for any number of targets; an exclusive lock needs two more than with scheme "word", four
/// in all with its unlock. Pauses between two polls double and are drawn uniformly from [t/2, t].
///
/// Death of a holder: the local word contains the writer's name (a bit in the paper). A waiter that finds it dead
/// removes it and its part of the global word (RMA_LOCK_RECOVERY=on), and reports peer_failed, as do the other
/// current waiters. Readers and holders of lock_all are only counted: after a death, a word that excludes a
/// waiter and does not change is reported as peer_failed. So are all locks but shared ones after the death of the
/// team's first rank. Source: Gerstenberger, Besta, Hoefler, SC'13, section 2.3 (figure 3). The steps are pure;
/// lock_fompi.cpp drives them.
#pragma once

#include <cstdint>

#include "core/assert.hpp"
#include "sync/lock_machine.hpp"
#include "sync/lock_network.hpp"
#include "window/target.hpp"

namespace rma::detail {

inline constexpr std::uint64_t fompi_one_exclusive = 1;
inline constexpr std::uint64_t fompi_one_all = std::uint64_t{1} << 32;
inline constexpr std::uint64_t fompi_count_mask = 0xffff'ffff;
inline constexpr std::uint64_t fompi_writer = std::uint64_t{1} << 63;
inline constexpr unsigned fompi_recoveries_shift = 59;
inline constexpr std::uint64_t fompi_recoveries_mask = std::uint64_t{15} << fompi_recoveries_shift;
inline constexpr unsigned fompi_name_shift = 32;
inline constexpr std::uint64_t fompi_name_mask = ((std::uint64_t{1} << 27) - 1) << fompi_name_shift;

/// The kinds of locks. `all`: a lock_all, which the local words do not contain.
enum class fompi_want : std::uint8_t { shared, exclusive, all };

/// An exclusive hold of this world rank adds this to the local word.
constexpr std::uint64_t fompi_hold(int rank) noexcept {
  return fompi_writer | ((static_cast<std::uint64_t>(rank) + 1) << fompi_name_shift);
}
/// The writer in a local word, as a world rank; -1 if there is none.
constexpr int fompi_writer_of(std::uint64_t local) noexcept {
  return (local & fompi_writer) == 0 ? -1 : static_cast<int>((local & fompi_name_mask) >> fompi_name_shift) - 1;
}
constexpr std::uint64_t fompi_recoveries(std::uint64_t local) noexcept {
  return (local & fompi_recoveries_mask) >> fompi_recoveries_shift;
}
/// True if no rank holds the target's lock, or waits in its word.
constexpr bool fompi_free(std::uint64_t local) noexcept { return (local & ~fompi_recoveries_mask) == 0; }
/// The local word without its dead writer.
constexpr std::uint64_t fompi_recovered(std::uint64_t local) noexcept {
  const std::uint64_t counted = (fompi_recoveries(local) + 1) << fompi_recoveries_shift;
  return (local & fompi_count_mask) | (counted & fompi_recoveries_mask);
}

enum class fompi_phase : std::uint8_t {
  registering,  ///< in no word: adds itself to the global word
  withdrawing,  ///< in the global word, but excluded by another rank: removes itself
  barred,       ///< in no word: polls the global word after a pause
  taking,       ///< exclusive: in the global word, takes the local one
  blocked,      ///< exclusive: in no word; shared: in the local word. Polls the local word after a pause
  held,
};

/// One rank's attempt to acquire one lock.
struct fompi_attempt {
  fompi_want want = fompi_want::exclusive;
  fompi_phase phase = fompi_phase::registering;
  fompi_phase then = fompi_phase::barred;  ///< the phase after withdrawing
  std::uint64_t hold = 0;                  ///< fompi_hold of this rank
  std::uint64_t free = 0;                  ///< the local word that is swapped for the hold
  std::uint64_t seen = 0;                  ///< the last value of the word that excludes it
};

constexpr fompi_attempt fompi_begin(fompi_want want, int rank) noexcept {
  fompi_attempt a;
  a.want = want;
  a.phase = want == fompi_want::shared ? fompi_phase::taking : fompi_phase::registering;
  a.hold = fompi_hold(rank);
  return a;
}

/// A registration adds this to the global word.
constexpr std::uint64_t fompi_registration(fompi_want want) noexcept {
  return want == fompi_want::exclusive ? fompi_one_exclusive : want == fompi_want::all ? fompi_one_all : 0;
}
/// The part of this attempt that is in the global word.
constexpr std::uint64_t fompi_in_global(const fompi_attempt& a) noexcept {
  const bool in = a.phase == fompi_phase::withdrawing || a.phase == fompi_phase::taking || a.phase == fompi_phase::held;
  return in ? fompi_registration(a.want) : 0;
}
/// The part of this attempt that is in the local word.
constexpr std::uint64_t fompi_in_local(const fompi_attempt& a) noexcept {
  const bool held = a.phase == fompi_phase::held;
  if (a.want == fompi_want::shared) return held || a.phase == fompi_phase::blocked ? 1 : 0;
  return held && a.want == fompi_want::exclusive ? a.hold : 0;
}
/// True if the global word excludes locks of this kind.
constexpr bool fompi_bars(std::uint64_t global, fompi_want want) noexcept {
  const std::uint64_t all = global / fompi_one_all;
  return (want == fompi_want::all ? global & fompi_count_mask : all) != 0;
}

struct fompi_request {
  bool global = false;
  network_request atomic;
};

constexpr fompi_request request_of(const fompi_attempt& a) noexcept {
  switch (a.phase) {
    case fompi_phase::registering: return {true, {true, 0, fompi_registration(a.want)}};
    case fompi_phase::withdrawing: return {true, {true, 0, std::uint64_t{0} - fompi_registration(a.want)}};
    case fompi_phase::barred: return {true, {false, a.seen, a.seen}};
    case fompi_phase::taking:
      if (a.want == fompi_want::shared) return {false, {true, 0, 1}};
      return {false, {false, a.free, a.free | a.hold}};
    case fompi_phase::blocked:
    case fompi_phase::held: break;
  }
  return {false, {false, a.seen, a.seen}};
}

/// The attempt after its request found `old` in the word.
constexpr fompi_attempt step(fompi_attempt a, std::uint64_t old) noexcept {
  RMA_ASSERT(a.phase != fompi_phase::withdrawing || old >= fompi_registration(a.want));  // it is in the global word
  switch (a.phase) {
    case fompi_phase::registering:
      a.phase = a.want == fompi_want::all ? fompi_phase::held : fompi_phase::taking;
      if (!fompi_bars(old, a.want)) break;
      a.phase = fompi_phase::withdrawing;
      a.then = fompi_phase::barred;
      break;
    case fompi_phase::withdrawing:
      a.phase = a.then;
      if (a.then != fompi_phase::barred) break;
      a.seen = old - fompi_registration(a.want);
      if (!fompi_bars(a.seen, a.want)) a.phase = fompi_phase::registering;
      break;
    case fompi_phase::barred:
      a.seen = old;
      if (!fompi_bars(old, a.want)) a.phase = fompi_phase::registering;
      break;
    case fompi_phase::taking:
      a.seen = old;
      if (a.want == fompi_want::shared) {
        a.seen = old + 1;
        a.phase = (old & fompi_writer) == 0 ? fompi_phase::held : fompi_phase::blocked;
      } else if (old == a.free) {
        a.seen = old | a.hold;
        a.phase = fompi_phase::held;
      } else if (fompi_free(old)) {
        a.free = old;  // a dead writer was removed: try again
      } else {
        a.phase = fompi_phase::withdrawing;
        a.then = fompi_phase::blocked;
      }
      break;
    case fompi_phase::blocked:
      a.seen = old;
      if (a.want == fompi_want::shared && (old & fompi_writer) == 0) a.phase = fompi_phase::held;
      if (a.want == fompi_want::exclusive && fompi_free(old)) {
        a.free = old;
        a.phase = fompi_phase::registering;
      }
      break;
    case fompi_phase::held: break;
  }
  RMA_ASSERT(a.phase != fompi_phase::held || a.want != fompi_want::exclusive || (a.seen & fompi_writer) != 0);
  RMA_ASSERT(a.phase != fompi_phase::blocked || a.want != fompi_want::all);  // local words do not exclude it
  return a;
}

static_assert(step(fompi_begin(fompi_want::all, 3), 0).phase == fompi_phase::held);
static_assert(step(fompi_begin(fompi_want::all, 3), fompi_one_exclusive).phase == fompi_phase::withdrawing);
static_assert(step(step(fompi_begin(fompi_want::exclusive, 3), fompi_one_exclusive), 0).phase == fompi_phase::held);

// For the table (lock_protocol.hpp).
status lock_fompi(window_core& w, int target, lock_kind kind, deferral by) noexcept;
std::unique_ptr<lock_machine> begin_fompi(window_core& w, int target, lock_kind kind, status& failed);
/// Releases the lock. Waits only for the adapter.
status release_fompi(window_core& w, int target, lock_kind kind) noexcept;
/// As release_fompi, for a lock_all epoch: all targets at once.
status lock_fompi_all(window_core& w) noexcept;
status release_fompi_all(window_core& w) noexcept;

}  // namespace rma::detail
