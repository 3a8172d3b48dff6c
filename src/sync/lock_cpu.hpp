// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "cpu": one word in memory that the node's ranks share, and a record of each rank for each target. Shared and
/// exclusive, barging, biased towards readers.
///
///   state word   63: held exclusively   62: by the lock manager of the target, for   59..32: this rank (world)
///                61: away   60: migrating   31: somebody sleeps   30: readers are counted
///                29..18: the heir   17..0: counted readers
///
///   biased:   a reader writes its own record, then looks at the word     no line that two ranks write
///             a writer sets the word, then waits until no record says that a reader holds it
///                 | the first exclusive lock                  ^ so many shared locks without a writer, doubling
///                 v                                           |
///   counted:  free --exclusive--> writer --unlock--> free     one locked instruction each way
///             free --shared--> 1 reader <--> n readers --> free
///
///   a rank that finds it held spins a little, then writes itself into the target's list of waiters and sleeps; who
///   unlocks wakes the next in the list, which tries again; a biased reader wakes the writer that waits for it
///
/// Barging (whoever is awake may take it) keeps the lock fast when there are more ranks than cores: a ticket lock
/// hands it to somebody who does not run. Bias: readers of one target would otherwise pass its line around.
///
/// Barging ends where it would starve somebody: a rank that sleeps for the lock, and has seen it given back to others
/// RMA_LOCK_BYPASSES times or for 1 ms, makes itself the heir, one at a time. Who lets go of an exclusive hold writes
/// the heir's into the word instead of nobody's; counted readers keep an heir no longer than a biased one keeps a
/// writer: it takes the word beside them, and waits until they have left.
///
///   asleep --passed too often, no other heir--> heir --an exclusive holder lets go--> holds it (a reader shares it
///                                                |    then)
///                                                '--finds it free, or readers only--> takes it
///
/// Ranks that do not map the word ask the target's lock manager (lock_agent.hpp), which takes it for them.
///
/// Death of a holder: each rank writes down what it holds where (records). A waiter that sees a death gives the dead
/// rank's hold back (RMA_LOCK_RECOVERY=on) and reports peer_failed.
/// Source: dissertation ch. 5 (the CPU lock of the hybrid scheme); Dice and Kogan, BRAVO, 2019 (biased readers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rma/epoch.hpp"
#include "sync/lock_machine.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

/// The state word has these beside an exclusive hold: a mark of waiters, and readers that an heir came in beside.
inline constexpr std::uint64_t lock_beside = lock_waiters | lock_heir | lock_readers;

/// True if it is held exclusively as `tag` says: a lock_tag and what else the hold is marked with.
constexpr bool lock_held_as(std::uint64_t state, std::uint64_t tag) noexcept { return (state & ~lock_beside) == tag; }

// The steps on the word are pure; cpu_wait drives them.

/// True if a reader may count itself in.
constexpr bool lock_admits_reader(std::uint64_t state) noexcept { return (state & lock_writer) == 0; }
/// True if a writer may take the word; an heir comes in beside counted readers.
constexpr bool lock_admits_writer(std::uint64_t state, bool inherits = false) noexcept {
  return (state & lock_writer) == 0 && ((state & lock_readers) == 0 || inherits);
}
/// The state word becomes this when a writer takes it, which is then named by `tag`.
constexpr std::uint64_t lock_taken(std::uint64_t state, std::uint64_t tag, bool inherits = false) noexcept {
  const std::uint64_t kept = inherits                 ? lock_waiters | lock_readers
                             : (tag & lock_away) != 0 ? lock_waiters
                                                      : lock_waiters | lock_heir;
  return tag | (state & kept);
}
/// True if that writer has to wait for readers: counted ones, or those that only records name.
constexpr bool lock_drains(std::uint64_t before) noexcept {
  return (before & lock_counted) == 0 || (before & lock_readers) != 0;
}
static_assert(lock_admits_writer(lock_counted) && !lock_admits_writer(lock_counted + 1) && lock_admits_writer(1, true));
static_assert(lock_drains(0) && !lock_drains(lock_counted) && lock_drains(lock_counted + 1));

/// The state word becomes this when a holder of `kind` that is counted in it lets go.
constexpr std::uint64_t lock_released(std::uint64_t state, lock_kind kind) noexcept {
  return kind == lock_kind::shared ? state - 1 : (state & lock_beside) | lock_counted;
}
/// The same for an exclusive holder that may not have waited yet until the biased readers were gone.
constexpr std::uint64_t lock_abandoned(std::uint64_t state) noexcept { return state & lock_beside; }

static_assert(lock_released(lock_tag(1) | lock_waiters, lock_kind::exclusive) == (lock_waiters | lock_counted));

/// The heir's index among the node's ranks; -1 if there is none.
constexpr int lock_heir_of(std::uint64_t state) noexcept {
  return static_cast<int>((state & lock_heir) >> lock_heir_shift) - 1;
}
/// The word with this heir. The lock is here (lock_hybrid.hpp), and has none yet.
constexpr std::uint64_t lock_inherited_by(std::uint64_t state, std::uint64_t index) noexcept {
  return state | ((index + 1) << lock_heir_shift) | lock_waiters;
}
/// The word when an exclusive holder lets go for the heir, which sleeps, and holds it as `tag` from then on.
constexpr std::uint64_t lock_handed_over(std::uint64_t tag) noexcept { return tag | lock_waiters; }
static_assert(lock_heir_of(lock_inherited_by(lock_tag(1), 7)) == 7 && lock_heir_of(lock_tag(1) | lock_waiters) == -1);

/// Waking the next rank that sleeps, one access after the other. The word says that somebody sleeps (lock_waiters)
/// until the list is empty; a rank that comes into the list meanwhile is seen, or sees that the word does not say so.
enum class wake_stage : std::uint8_t {
  ring,        ///< takes the next out of the list and wakes it
  look,        ///< is the list empty?
  unmark,      ///< takes lock_waiters out of the word
  look_again,  ///< is it still?
  mark,        ///< puts lock_waiters back: is the lock held? Then its holder sees it when it lets go
  tell,        ///< rings a writer that has the word: it may sleep for readers that left before lock_waiters was back
  over
};
/// The stage after this one, the answer to whose question is `yes`.
constexpr wake_stage after(wake_stage now, bool yes) noexcept {
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

/// In a dead rank's record: what it held has been given back.
inline constexpr std::uint8_t record_recovered = 0x80;

/// Where a dead rank's hold is, by its record.
enum class dead_hold : std::uint8_t {
  none,
  given_back,  ///< before
  word,        ///< it may have taken the word
  counted,     ///< it is one of the readers that the word counts
  record,      ///< its record was the hold
  unknown      ///< it died while it was counted in or out: nobody can tell which
};
/// `named`: the word names it as the one that holds it exclusively. An heir has no record of what is handed over to it.
constexpr dead_hold dead_hold_of(std::uint8_t record, bool named) noexcept {
  constexpr std::uint8_t kinds = 0xf;
  if (record == 0 && !named) return dead_hold::none;
  if ((record & record_recovered) != 0 && !named) return dead_hold::given_back;
  if (named || (record & kinds) == static_cast<std::uint8_t>(lock_kind::exclusive)) return dead_hold::word;
  if ((record & record_unsure) != 0) return dead_hold::unknown;
  return (record & record_biased) != 0 ? dead_hold::record : dead_hold::counted;
}
/// The record of a hold that has been given back.
constexpr std::uint8_t record_after_recovery(std::uint8_t record) noexcept {
  const auto held = record == 0 ? static_cast<std::uint8_t>(lock_kind::exclusive) : record;
  return static_cast<std::uint8_t>(held | record_recovered);
}
static_assert(dead_hold_of(0, false) == dead_hold::none && dead_hold_of(0, true) == dead_hold::word);
static_assert(dead_hold_of(shared_biased, false) == dead_hold::record);
static_assert(dead_hold_of(record_after_recovery(0), false) == dead_hold::given_back);

/// The bits of the ranks that sleep for one target's lock.
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
  /// The first one after `i`, round and round; -1 if there is none.
  [[nodiscard]] int next_after(std::size_t i) const noexcept;

 private:
  static std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << (i % 64); }
  word64* words_;
  std::size_t count_;
};

/// One wait for one lock, of this rank for itself or, by its lock manager, for another (`proxy`: the tag of an
/// exclusive hold then, else 0). A writer takes the word, then waits for the readers that it found by their records.
class cpu_wait {
 public:
  cpu_wait(window_core& w, int target, lock_kind kind, std::uint64_t proxy = 0) noexcept;

  /// Tries; after some attempts this rank is in the list of those who are woken.
  bool ready() noexcept;
  /// After deaths: gives their holds back; `peer_failed` if that is news for this wait.
  status failed() noexcept;
  /// After the lock was got: another waiter may have given a dead rank's hold back; it is news for this one, too.
  status missed() noexcept;
  void leave_list() noexcept;
  /// It may be handed over to this wait: who calls this looks until it is got, and does nothing else.
  void insist() noexcept { insists_ = true; }
  /// No heir any more. True if it has been handed over meanwhile, and is held.
  bool renounce() noexcept;
  /// Gives back a word that is taken before readers have left.
  void withdraw() noexcept;
  /// It has done so for a while, on its own account: nobody rings it when they have left.
  [[nodiscard]] bool is_out() const noexcept { return out_until_ns_ >= 0; }
  [[nodiscard]] std::int64_t out_until_ns() const noexcept { return out_until_ns_; }
  /// True if the word is taken, although the wait has not ended.
  [[nodiscard]] bool has_word() const noexcept { return draining_; }
  /// True if the lock is elsewhere, and nothing of it is taken.
  [[nodiscard]] bool moved() const noexcept;

 private:
  bool step() noexcept;
  bool take_counted() noexcept;
  bool take_word() noexcept;
  bool take_inheritance() noexcept;
  /// True if it has been handed over at once.
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
  std::vector<int> settled_;  ///< whose hold was given back before
  unsigned tries_before_listing_;
  unsigned tries_ = 0;
  bool draining_ = false;
  std::int64_t drains_since_ns_ = -1;
  std::int64_t out_until_ns_ = -1;  ///< withdrawn: no attempt before
  bool readers_know_ = false;       ///< who lets go with a plain store sees that there is a waiter
  bool insists_ = false;
  bool heir_ = false;           ///< was named in the word, and has not seen that this is over
  std::int64_t since_ns_ = -1;  ///< in the list
  std::uint32_t passes_ = 0;    ///< cpu_lock::passes at that time
};

/// This rank's own way to the lock of a target that it maps.
class cpu_machine final : public lock_machine {
 public:
  cpu_machine(window_core& w, int target, lock_kind kind) noexcept;

  bool may_advance() noexcept override;
  [[nodiscard]] std::int64_t resumes_at_ns() const noexcept override {
    return wait_.is_out() ? wait_.out_until_ns() : by_bell;
  }
  status failed() noexcept override;
  void stay() noexcept override { wait_.insist(); }

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

/// The rank that an exclusive hold names.
int holder_of(std::uint64_t state) noexcept;
/// Wakes everybody who sleeps for the target's lock.
void wake_all(window_core& w, int target) noexcept;

/// Lets go and wakes the next waiter. Never waits.
void release_cpu(window_core& w, int target, lock_kind kind) noexcept;
/// Gives back what a cpu_wait with this `proxy` got of this rank's own lock.
void release_proxy(window_core& w, lock_kind kind, std::uint64_t proxy) noexcept;

}  // namespace rma::detail
