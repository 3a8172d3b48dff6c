// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "cpu": one word in memory that the node's ranks share, and a record of each rank for each target. Shared and
/// exclusive, barging, biased towards readers.
///
///   state word   63: held exclusively   62: by the lock manager of the target, for   59..32: this rank (world)
///                61: away   60: migrating   31: a rank sleeps   30: readers are counted
///                29..18: the heir   17..0: counted readers
///
///   biased:   a reader writes its own record, then reads the word        no two ranks write the same line
///             a writer sets the word, then waits until no record of a reader is left
///                 | the first exclusive lock                  ^ some shared locks without a writer, doubling
///                 v                                           |
///   counted:  free --exclusive--> writer --unlock--> free     one locked instruction each way
///             free --shared--> 1 reader <--> n readers --> free
///
///   a rank that finds it held spins a little, then adds itself to the target's list of waiters and sleeps; an unlock
///   wakes the next in the list, which tries again; a biased reader wakes the writer that waits for it
///
/// Barging (any running rank may take the lock) keeps it fast when there are more ranks than cores: a ticket lock
/// hands it to a rank that does not run. Bias: readers of one target would otherwise transfer its line all the time.
///
/// Barging ends where it would starve a rank: one that sleeps for the lock, and has seen it released to others
/// RMA_LOCK_BYPASSES times or for 1 ms, makes itself the heir; there is one at a time. The release of an exclusive hold
/// writes the heir's hold into the word; counted readers delay an heir no longer than a biased one delays a
/// writer: it takes the word beside them, and waits until they have left.
///
///   asleep --passed too often, no other heir--> heir --an exclusive holder releases--> holds it (a reader shares it
///                                                |    then)
///                                                '--finds it free, or readers only--> takes it
///
/// Ranks that do not map the word ask the target's lock manager (lock_agent.hpp), which takes it for them.
///
/// Death of a holder: each rank records its holds. A waiter that notices a death releases the dead
/// rank's hold (RMA_LOCK_RECOVERY=on) and reports peer_failed.
/// Source: dissertation ch. 5 (the CPU lock of the hybrid scheme); Dice and Kogan, BRAVO, 2019 (biased readers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/assert.hpp"
#include "rma/epoch.hpp"
#include "sync/lock_machine.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

/// The bits of the state word beside an exclusive hold: the mark of waiters, and readers beside whom an heir holds it.
inline constexpr std::uint64_t lock_beside = lock_waiters | lock_heir | lock_readers;

/// True if it is held exclusively with this `tag`: a lock_tag and the marks of the hold.
constexpr bool lock_held_as(std::uint64_t state, std::uint64_t tag) noexcept { return (state & ~lock_beside) == tag; }

// The steps on the word are pure; cpu_wait drives them.

/// True if a reader may count itself in.
constexpr bool lock_admits_reader(std::uint64_t state) noexcept { return (state & lock_writer) == 0; }
/// True if a writer may take the word; an heir may take it beside counted readers.
constexpr bool lock_admits_writer(std::uint64_t state, bool inherits = false) noexcept {
  return (state & lock_writer) == 0 && ((state & lock_readers) == 0 || inherits);
}
/// The state word after a writer with this `tag` has taken it.
constexpr std::uint64_t lock_taken(std::uint64_t state, std::uint64_t tag, bool inherits = false) noexcept {
  const std::uint64_t kept = inherits                 ? lock_waiters | lock_readers
                             : (tag & lock_away) != 0 ? lock_waiters
                                                      : lock_waiters | lock_heir;
  return tag | (state & kept);
}
/// True if the writer then has to wait for readers, counted ones or those in records.
constexpr bool lock_drains(std::uint64_t before) noexcept {
  return (before & lock_counted) == 0 || (before & lock_readers) != 0;
}
static_assert(lock_admits_writer(lock_counted) && !lock_admits_writer(lock_counted + 1) && lock_admits_writer(1, true));
static_assert(lock_drains(0) && !lock_drains(lock_counted) && lock_drains(lock_counted + 1));

/// The state word after the release of a hold of `kind` that is counted in it.
constexpr std::uint64_t lock_released(std::uint64_t state, lock_kind kind) noexcept {
  return kind == lock_kind::shared ? state - 1 : (state & lock_beside) | lock_counted;
}
/// The same for an exclusive holder that may not yet have waited for the biased readers.
constexpr std::uint64_t lock_abandoned(std::uint64_t state) noexcept { return state & lock_beside; }

static_assert(lock_released(lock_tag(1) | lock_waiters, lock_kind::exclusive) == (lock_waiters | lock_counted));

/// The heir's index among the node's ranks; -1 if there is none.
constexpr int lock_heir_of(std::uint64_t state) noexcept {
  return static_cast<int>((state & lock_heir) >> lock_heir_shift) - 1;
}
/// The word with this heir. The lock's home must be here (lock_hybrid.hpp), and it must have no heir.
constexpr std::uint64_t lock_inherited_by(std::uint64_t state, std::uint64_t index) noexcept {
  return state | ((index + 1) << lock_heir_shift) | lock_waiters;
}
/// The word after an exclusive holder has handed it over to the sleeping heir, which holds it with this `tag`.
constexpr std::uint64_t lock_handed_over(std::uint64_t tag) noexcept { return tag | lock_waiters; }
static_assert(lock_heir_of(lock_inherited_by(lock_tag(1), 7)) == 7 && lock_heir_of(lock_tag(1) | lock_waiters) == -1);

/// The stages of waking the next sleeping rank, one access each. The word has the mark lock_waiters until the list is
/// empty; a rank that enters the list meanwhile is seen, or sees that the mark is missing.
enum class wake_stage : std::uint8_t {
  ring,        ///< removes the next rank from the list and wakes it
  look,        ///< tests whether the list is empty
  unmark,      ///< clears lock_waiters in the word
  look_again,  ///< tests whether it is still empty
  mark,        ///< sets lock_waiters again, and tests whether the lock is held: its release sees the mark then
  tell,        ///< rings a writer that has the word: it may sleep for readers that left before the mark was set
  over
};
/// The stage after this one, whose test had the result `yes`.
constexpr wake_stage after(wake_stage now, bool yes) noexcept {
  RMA_ASSERT(now != wake_stage::over);
  RMA_ASSERT(!yes || now == wake_stage::look || now == wake_stage::look_again || now == wake_stage::mark);
  switch (now) {
    case wake_stage::ring: return wake_stage::look;
    case wake_stage::look: return yes ? wake_stage::unmark : wake_stage::over;
    case wake_stage::unmark: return wake_stage::look_again;
    case wake_stage::look_again: return yes ? wake_stage::over : wake_stage::mark;
    case wake_stage::mark: return yes ? wake_stage::tell : wake_stage::ring;
    case wake_stage::tell:
    case wake_stage::over: break;
  }
  return wake_stage::over;
}

/// A mark in a dead rank's record: its hold has been released.
inline constexpr std::uint8_t record_recovered = 0x80;

/// The location of a dead rank's hold, by its record.
enum class dead_hold : std::uint8_t {
  none,
  given_back,  ///< none: it was released before
  word,        ///< it may have taken the word
  counted,     ///< it is one of the readers that the word counts
  record,      ///< its record was the hold
  unknown      ///< it died while its count changed: it may or may not be counted
};
/// `named`: the word names it as the exclusive holder. An heir has no record of a hold that is handed over to it.
constexpr dead_hold dead_hold_of(std::uint8_t record, bool named) noexcept {
  constexpr std::uint8_t kinds = 0xf;
  if (record == 0 && !named) return dead_hold::none;
  if ((record & record_recovered) != 0 && !named) return dead_hold::given_back;
  if (named || (record & kinds) == static_cast<std::uint8_t>(lock_kind::exclusive)) return dead_hold::word;
  if ((record & record_unsure) != 0) return dead_hold::unknown;
  return (record & record_biased) != 0 ? dead_hold::record : dead_hold::counted;
}
/// The record of a hold that has been released.
constexpr std::uint8_t record_after_recovery(std::uint8_t record) noexcept {
  const auto held = record == 0 ? static_cast<std::uint8_t>(lock_kind::exclusive) : record;
  return static_cast<std::uint8_t>(held | record_recovered);
}
static_assert(dead_hold_of(0, false) == dead_hold::none && dead_hold_of(0, true) == dead_hold::word);
static_assert(dead_hold_of(shared_biased, false) == dead_hold::record);
static_assert(dead_hold_of(record_after_recovery(0), false) == dead_hold::given_back);

/// The list of ranks that sleep for one target's lock, one bit each.
class waiter_list {
 public:
  waiter_list(window_core& w, int target) noexcept
      : words_(w.array<word64>(*w.block_of(target), w.layout.waiters_at)), count_((w.near_count() + 63) / 64) {}

  void set(std::size_t i) noexcept {
    if ((words_[i / 64].load() & bit(i)) == 0) words_[i / 64].fetch_or(bit(i));
  }
  void clear(std::size_t i) noexcept {
    if ((words_[i / 64].load() & bit(i)) != 0) words_[i / 64].fetch_and(~bit(i));
  }
  [[nodiscard]] bool has(std::size_t i) const noexcept { return (words_[i / 64].load() & bit(i)) != 0; }
  [[nodiscard]] bool empty() const noexcept;
  /// The first one after `i`, cyclically; -1 if there is none.
  [[nodiscard]] int next_after(std::size_t i) const noexcept;

 private:
  static std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << (i % 64); }
  word64* words_;
  std::size_t count_;
};

/// One wait for one lock, of this rank for itself or, in its lock manager, for another (`proxy`: the tag of an
/// exclusive hold then, else 0). A writer takes the word, then waits for the readers that have records.
class cpu_wait {
 public:
  cpu_wait(window_core& w, int target, lock_kind kind, std::uint64_t proxy = 0) noexcept;

  /// Tries to take the lock; after some attempts this rank is in the list of waiters.
  bool ready() noexcept;
  /// After deaths, releases the holds of dead ranks; `peer_failed` if that happened during this wait.
  status failed() noexcept;
  /// Called when the lock is acquired: another waiter may have released a dead rank's hold, which this one reports too.
  status missed() noexcept;
  void leave_list() noexcept;
  /// Allows a handover to this wait: the caller must only poll it until it has the lock.
  void insist() noexcept { insists_ = true; }
  /// Withdraws as heir. True if the lock has been handed over meanwhile, and is held.
  bool renounce() noexcept;
  /// Releases a word that was taken while readers were still present.
  void withdraw() noexcept;
  /// True if it has withdrawn for a while by itself: no rank rings it when the readers have left.
  [[nodiscard]] bool is_out() const noexcept { return out_until_ns_ >= 0; }
  [[nodiscard]] std::int64_t out_until_ns() const noexcept { return out_until_ns_; }
  /// True if the word is taken, although the wait has not ended.
  [[nodiscard]] bool has_word() const noexcept { return draining_; }
  /// True if the lock's home is elsewhere, and nothing is taken here.
  [[nodiscard]] bool moved() const noexcept;

 private:
  bool step() noexcept;
  bool take_counted() noexcept;
  bool take_word() noexcept;
  bool take_inheritance() noexcept;
  /// True if it was handed over at once.
  bool become_heir() noexcept;
  [[nodiscard]] bool passed_too_often(bool look_at_clock) noexcept;
  [[nodiscard]] std::size_t my_index() const noexcept { return w_.index_of(w_.team->rank); }
  [[nodiscard]] std::uint64_t tag() const noexcept { return proxy_ != 0 ? proxy_ : w_.my_lock_tag; }
  void withdraw_late() noexcept;
  status failed_far() noexcept;
  [[nodiscard]] bool is_news(int r) const noexcept;
  status fail_with(int world_rank) noexcept;

  window_core& w_;
  int target_;
  lock_kind kind_;
  std::uint64_t proxy_;
  target_view& view_;
  waiter_list list_;
  std::uint32_t recoveries_;
  std::vector<int> settled_;  ///< ranks whose hold was released before
  unsigned tries_before_listing_;
  unsigned tries_ = 0;
  bool draining_ = false;
  std::int64_t drains_since_ns_ = -1;
  std::int64_t out_until_ns_ = -1;  ///< withdrawn: no attempt before this time
  bool readers_know_ = false;       ///< releases by a plain store see that there is a waiter
  bool insists_ = false;
  bool heir_ = false;           ///< the word has named it, and it has not seen the end of that
  std::int64_t since_ns_ = -1;  ///< time at which it entered the list
  std::uint32_t passes_ = 0;    ///< cpu_lock::passes at that time
};

/// The machine for the lock of a target that this rank maps.
class cpu_machine final : public lock_machine {
 public:
  cpu_machine(window_core& w, int target, lock_kind kind) noexcept;

  bool may_advance() noexcept override;
  [[nodiscard]] std::int64_t resumes_at_ns() const noexcept override {
    return wait_.is_out() ? wait_.out_until_ns() : by_bell;
  }
  status failed() noexcept override;
  void keep_request() noexcept override { wait_.insist(); }

 protected:
  lock_step go_on() noexcept override { return may_advance() ? end(status::done) : lock_step::not_yet; }
  void take_back() noexcept override { (void)end(why()); }

 private:
  lock_step end(status s) noexcept;

  window_core& w_;
  int target_;
  lock_kind kind_;
  cpu_wait wait_;
  bool got_ = false;
};

/// The holder in the word of an exclusive hold.
int holder_of(std::uint64_t state) noexcept;
/// Wakes all ranks that sleep for the target's lock.
void wake_all(window_core& w, int target) noexcept;

/// Releases the lock and wakes the next waiter. Never waits.
void release_cpu(window_core& w, int target, lock_kind kind) noexcept;
/// Releases this rank's own lock, which a cpu_wait with this `proxy` has taken.
void release_proxy(window_core& w, lock_kind kind, std::uint64_t proxy) noexcept;

}  // namespace rma::detail
