// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "network", scheme "agent": the network word of this rank's lock, held by its lock manager for all readers.
///
///   none --a reader asks--> asking --swap hits--> held --the last reader has left--> leaving --add--> none
///                             ^ |                  ^ |
///                             | misses             | after a while: looks whether a writer waits
///                             | v                  | v
///                           pausing                closed: admits no other reader for as long
///
/// Exclusive locks are those of scheme "word" (lock_network.hpp), and the hold is one of them, in the name of this
/// rank. Shared ones ask the lock manager, which counts them (lock_agent.hpp). So the word's readers are never more
/// than one, and one is always known by name: what a dead reader held is the manager's to give back. A target that
/// computes lets no reader in, nor the last one out. Source: dissertation ch. 4, figure 4.2 (b). The paper's agent lets
/// readers in for as long as they come; here a writer that says it waits gets its turn. The steps are pure.
#pragma once

#include <cstdint>

#include "core/assert.hpp"
#include "fabric/fabric.hpp"
#include "sync/lock_network.hpp"

namespace rma::detail {

struct operation_record;

enum class readers_phase : std::uint8_t { none, asking, pausing, held, looking, closed, leaving };

struct readers_word {
  readers_phase phase = readers_phase::none;
  network_attempt attempt;      ///< to get the word
  bool bereft = false;          ///< a reader has died: waiting writers have to see that
  std::uint64_t dead_hold = 0;  ///< hold of a dead writer in the word, to be given back next
};

/// These happen to the hold, beside answers of the adapter.
enum class readers_event : std::uint8_t {
  wanted,    ///< somebody wants to read, or reads
  unwanted,  ///< nobody does
  turn,      ///< its time is over
  yielded,   ///< nobody came for whom the word was left
};

/// A hold that is not there yet, for the manager of this world rank.
constexpr readers_word readers_of(int rank) noexcept {
  readers_word r;
  r.attempt.hold = network_hold(rank, lock_kind::exclusive);
  return r;
}
/// True if readers may come in.
constexpr bool readers_enter(const readers_word& r) noexcept {
  return r.phase == readers_phase::held || r.phase == readers_phase::looking;
}
/// Whether the hold is wanted, by who reads or by who has asked to. One that is closed is not kept for the latter.
constexpr readers_event readers_want(const readers_word& r, bool read, bool asked) noexcept {
  const bool yes = read || (asked && r.phase != readers_phase::closed);
  return yes ? readers_event::wanted : readers_event::unwanted;
}
/// True if the adapter is to be asked now.
constexpr bool readers_ask(const readers_word& r) noexcept {
  return r.phase == readers_phase::asking || r.phase == readers_phase::looking || r.phase == readers_phase::leaving;
}
/// True if the hold is in the word.
constexpr bool readers_in_word(readers_phase p) noexcept {
  return p == readers_phase::held || p == readers_phase::looking || p == readers_phase::closed ||
         p == readers_phase::leaving;
}
constexpr network_request request_of(const readers_word& r) noexcept {
  const std::uint64_t seen = r.attempt.seen;
  if (r.dead_hold != 0) return {false, seen, network_recovered(seen, r.dead_hold)};
  if (r.phase == readers_phase::asking) return request_of(r.attempt);
  if (r.phase != readers_phase::leaving) return {false, seen, seen};  // a look
  if (r.bereft) return {false, seen, network_recovered(seen, r.attempt.hold)};
  return {true, 0, std::uint64_t{0} - r.attempt.hold};
}

constexpr readers_word step(readers_word r, readers_event event) noexcept {
  using enum readers_phase;
  RMA_ASSERT(r.dead_hold == 0 || !readers_in_word(r.phase));
  [[maybe_unused]] const readers_phase before = r.phase;
  if (event == readers_event::wanted && r.phase == none) {
    r.attempt.phase = network_again(r.attempt.seen);  // looks first, if a writer was there
    r.phase = asking;
  } else if (event == readers_event::unwanted && r.phase == pausing) {
    r.phase = none;
    r.attempt.seen = 0;
  } else if (event == readers_event::unwanted && (r.phase == held || r.phase == closed)) {
    r.phase = leaving;
  } else if (event == readers_event::turn) {
    if (r.phase == pausing) r.phase = asking;
    if (r.phase == held) r.phase = looking;
    if (r.phase == closed) r.phase = held;
  } else if (event == readers_event::yielded && r.phase == pausing && r.attempt.phase == network_phase::yielding) {
    r.attempt.phase = network_phase::entering;
    r.phase = asking;
  }
  RMA_ASSERT(readers_in_word(r.phase) == readers_in_word(before));  // only the adapter changes the word
  return r;
}

/// The adapter found `old` in the word.
constexpr readers_word step(readers_word r, std::uint64_t old) noexcept {
  using enum readers_phase;
  RMA_ASSERT(r.phase != leaving || network_holders(old) != 0);  // the hold is in the word
  RMA_ASSERT(r.dead_hold == 0 || r.phase == asking);
  [[maybe_unused]] const readers_phase before = r.phase;
  if (r.dead_hold != 0) {
    r.attempt.seen = old == r.attempt.seen ? network_recovered(old, r.dead_hold) : old;
    r.attempt.phase = network_outside(r.attempt.seen);
    r.dead_hold = 0;
    r.phase = r.attempt.phase == network_phase::entering ? asking : pausing;
  } else if (r.phase == asking) {
    r.attempt = step(r.attempt, old);
    const bool waits = r.attempt.phase != network_phase::entering && r.attempt.phase != network_phase::held;
    r.phase = r.attempt.phase == network_phase::held ? held : waits ? pausing : asking;
  } else if (r.phase == looking) {
    r.attempt.seen = old;
    r.phase = (old & network_wanted) != 0 ? closed : held;
  } else if (r.phase == leaving) {
    const network_request q = request_of(r);
    r.attempt.seen = q.add ? old + q.operand : old == q.expected ? q.operand : old;
    if (!q.add && old != q.expected) return r;  // somebody says that he waits: once more
    r.phase = none;
    r.bereft = false;
  }
  RMA_ASSERT(readers_in_word(r.phase) == readers_in_word(before) || before == asking || before == leaving);
  RMA_ASSERT(r.dead_hold == 0);
  return r;
}

static_assert(step(step(readers_of(3), readers_event::wanted), std::uint64_t{0}).phase == readers_phase::held);

/// Drives the steps with posted atomics: for who holds the progress lock, and never waits.
class reader_hold {
 public:
  explicit reader_hold(window_core& w) noexcept;

  /// True if readers may come in.
  [[nodiscard]] bool enter() const noexcept { return readers_enter(r_); }
  [[nodiscard]] bool busy() const noexcept { return r_.phase != readers_phase::none; }
  /// A reader has died.
  void bereave() noexcept { r_.bereft = r_.bereft || r_.phase != readers_phase::leaving; }
  /// Once in each round of progress, not in a handler: somebody reads, somebody has asked to. True if something has
  /// changed.
  bool advance(bool read, bool asked) noexcept;
  /// The writer that keeps readers out, as a world rank; -1 if none is known.
  [[nodiscard]] int writer() const noexcept {
    return r_.phase == readers_phase::pausing ? network_only_holder(r_.attempt.seen) : -1;
  }
  /// It is dead: gives its hold back.
  void remove_writer() noexcept;
  /// Lets go; true once nothing is held or under way. Nothing else is called from then on.
  bool stop() noexcept;

 private:
  bool collect() noexcept;
  bool post() noexcept;
  void set_turn() noexcept;

  window_core& w_;
  readers_word r_;
  operation_record* under_way_ = nullptr;
  std::int64_t turn_ns_ = 0;  ///< when it is over
  std::int64_t pause_ns_ = 0;
  std::int64_t yields_until_ns_ = 0;
  bool stopped_ = false;
};

}  // namespace rma::detail
