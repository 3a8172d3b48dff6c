// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_cpu.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/membarrier.hpp"
#include "rma/detail/window_ops.hpp"
#include "sync/locking.hpp"

namespace rma::detail {
namespace {

constexpr unsigned tries_before_listing_max = 64;
constexpr std::uint16_t rebias_after_max = 4096;
constexpr std::int64_t drain_ns = 1'000'000;
constexpr std::int64_t passed_ns = 1'000'000;  ///< a rank that has waited for this time becomes the heir
constexpr unsigned looks_per_time = 16;
constexpr unsigned heir_spins = 400;

}  // namespace

int holder_of(std::uint64_t state) noexcept {
  return static_cast<int>((state & ~(lock_writer | lock_proxy | lock_away | lock_migrating)) >> 32);
}

namespace {

int rank_of(const window_core& w, const target_view& t) noexcept {
  return static_cast<int>(w.first) + static_cast<int>(&t - w.targets);
}

void ring_writer(window_core& w, int target, std::uint64_t state) noexcept {
  if ((state & lock_writer) == 0 || (state & lock_waiters) == 0) return;
  if ((state & (lock_proxy | lock_away)) != 0) return w.ring(target);
  const std::size_t holder = w.board->index_of(holder_of(state));
  if (holder < w.board->size()) w.board->ring_doorbell(holder);
}

/// Clears the record of an attempt that came too late: it is no hold, but a writer may have read it as one, and sleep.
void take_record_back(window_core& w, target_view& t) noexcept {
  if (t.record->load(std::memory_order_relaxed) == 0) return;
  t.record->exchange(0);
  ring_writer(w, rank_of(w, t), t.lock->state.load());
}

/// Restores the bias with a counted shared lock after enough others without a writer in between: from now on readers
/// use their records again.
bool restore_bias(target_view& t) noexcept {
  constexpr auto hold = static_cast<std::uint8_t>(lock_kind::shared);
  t.counted_locks = 0;
  if (!take_shared(t)) return false;
  if (t.rebias_after < rebias_after_max) t.rebias_after *= 2;  // each restoring costs the next writer a search
  if (t.record->load(std::memory_order_relaxed) != hold) return true;
  std::uint64_t found = t.lock->state.load();
  while ((found & lock_writer) == 0 && !t.lock->state.compare_exchange(found, found & ~lock_counted)) continue;
  return true;
}

/// True if no reader's record holds the target's lock. The caller is the writer, so that no reader can enter.
bool readers_gone(window_core& w, int target) noexcept {
  for (int r = static_cast<int>(w.first); r < static_cast<int>(w.first + w.near_count()); ++r) {
    window_block* const theirs = w.block_of(r);
    if (theirs == nullptr) continue;
    if (w.array<word<std::uint8_t>>(*theirs, w.layout.records_at)[w.index_of(target)].load() == shared_biased)
      return false;
  }
  return true;
}

void wake(window_core& w, waiter_list& waiters, int index) noexcept {
  waiters.clear(static_cast<std::size_t>(index));
  w.ring(static_cast<int>(w.first) + index);
}

/// False for a rank that computes while its ilock is pending, and for a target with a lock manager, which may be
/// computing or waiting for another lock: another rank is woken as well.
bool will_look(const window_core& w, int target, int index) noexcept {
  const int slot = w.team->node_index(static_cast<int>(w.first) + index);
  return !(w.agent != nullptr && static_cast<int>(w.first) + index == target) && slot >= 0 &&
         w.board->is_inside(static_cast<std::size_t>(slot));
}

/// Wakes the waiters after `begin` up to the first that will test the word.
void wake_from(window_core& w, waiter_list& waiters, int target, std::size_t begin) noexcept {
  int next = waiters.next_after(begin);
  for (std::size_t woken = 0; next >= 0 && woken < w.near_count(); ++woken) {
    wake(w, waiters, next);
    if (will_look(w, target, next)) return;
    next = waiters.next_after(static_cast<std::size_t>(next));
  }
}

void wake_next(window_core& w, int target) noexcept {
  cpu_lock& lock = *w.views[w.index_of(target)].lock;
  word64& state = lock.state;
  waiter_list waiters(w, target);
  const std::size_t begin = lock.passes.load() % w.near_count();  // another one each time, so that all get a turn
  for (wake_stage at = wake_stage::ring; at != wake_stage::over;) {
    bool yes = false;
    switch (at) {
      case wake_stage::ring: wake_from(w, waiters, target, begin); break;
      case wake_stage::look:
      case wake_stage::look_again: yes = waiters.empty(); break;
      case wake_stage::unmark: state.fetch_and(~lock_waiters); break;
      case wake_stage::mark: yes = (state.fetch_or(lock_waiters) & (lock_writer | lock_readers)) != 0; break;
      case wake_stage::tell: ring_writer(w, target, state.load()); break;
      case wake_stage::over: break;
    }
    at = after(at, yes);
  }
}

void drop_heir(word64& state, std::size_t index) noexcept {
  std::uint64_t found = state.load();
  while (lock_heir_of(found) == static_cast<int>(index) && !state.compare_exchange(found, found & ~lock_heir)) continue;
}

/// Releases a dead rank's hold on the target's lock, once. True if it had one. An heir has no record of a lock that is
/// handed over to it, perhaps after its death: its name in the word suffices.
bool recover_from(window_core& w, int target, int dead) noexcept {
  window_block* const theirs = w.block_of(dead);
  if (theirs == nullptr) return false;
  word64& state = w.views[w.index_of(target)].lock->state;
  auto& record = w.array<word<std::uint8_t>>(*theirs, w.layout.records_at)[w.index_of(target)];
  const std::uint64_t tag = lock_tag(static_cast<std::uint32_t>(w.world_rank(dead)));
  drop_heir(state, w.index_of(dead));
  const bool named = lock_held_as(state.load(), tag);
  std::uint8_t found = record.load();
  const dead_hold hold = dead_hold_of(found, named);
  if (hold == dead_hold::none) return false;
  if (hold == dead_hold::given_back || w.ctx->config().is(knob::lock_recovery, "off")) return true;
  w.views[w.index_of(target)].lock->recoveries.fetch_add(1);  // first: the next holder of the lock sees it
  const std::uint8_t given_back = record_after_recovery(found);
  if (hold == dead_hold::word) {
    std::uint64_t held = state.load();
    while (lock_held_as(held, tag) && !state.compare_exchange(held, lock_abandoned(held))) continue;
    record.compare_exchange(found, given_back);
  } else if (hold != dead_hold::unknown && record.compare_exchange(found, given_back) && hold == dead_hold::counted) {
    state.fetch_sub(1);
  }
  w.team->ring_all();
  return true;
}

/// The members whose hold on the target's lock was released before: new waiters do not report their death.
std::vector<int> settled(const window_core& w, int target) {
  std::vector<int> found;
  if (w.views[w.index_of(target)].lock->recoveries.load() == 0) return found;
  for (int r = static_cast<int>(w.first); r < static_cast<int>(w.first + w.near_count()); ++r) {
    window_block* const block = w.block_of(r);
    if (block == nullptr) continue;
    const auto& record = w.array<word<std::uint8_t>>(*block, w.layout.records_at)[w.index_of(target)];
    if ((record.load() & record_recovered) != 0) found.push_back(r);
  }
  return found;
}

}  // namespace

bool waiter_list::empty() const noexcept {
  return std::all_of(words_, words_ + count_, [](const word64& w) { return w.load() == 0; });
}

int waiter_list::next_after(std::size_t i) const noexcept {
  const std::size_t bits = count_ * 64;
  for (std::size_t step = 1; step <= bits; ++step) {
    const std::size_t at = (i + step) % bits;
    if ((words_[at / 64].load(std::memory_order_relaxed) & bit(at)) != 0) return static_cast<int>(at);
  }
  return -1;
}

cpu_wait::cpu_wait(window_core& w, int target, lock_kind kind, std::uint64_t proxy) noexcept
    : w_(w),
      target_(target),
      kind_(kind),
      proxy_(proxy),
      view_(w.views[w.index_of(target)]),
      list_(w, target),
      recoveries_(view_.lock->recoveries.load()),
      settled_(settled(w, target)),
      tries_before_listing_(proxy != 0 ? 0 : std::min(tries_before_listing_max, w.ctx->looks_before_sleep())) {}

bool cpu_wait::ready() noexcept {
  if (step()) return true;
  if (++tries_ < tries_before_listing_) return false;
  const bool woken = !list_.has(my_index());
  list_.set(my_index());  // listed before the last poll: an unlock after that sees the list
  word64& state = view_.lock->state;
  if ((state.load() & lock_waiters) == 0) {
    state.fetch_or(lock_waiters);
    readers_know_ = false;
  }
  if (insists_ && !draining_ && passed_too_often(woken || tries_ % looks_per_time == 0) && become_heir()) return true;
  if (draining_ && view_.plain_record != 0 && !std::exchange(readers_know_, true)) fence_for_others();
  return step();
}

status cpu_wait::failed() noexcept {
  for (int r = static_cast<int>(w_.first); r < static_cast<int>(w_.first + w_.near_count()); ++r) {
    if (w_.team->node_index(r) < 0 || r == w_.team->rank || !w_.ctx->gone(w_.world_rank(r))) continue;
    list_.clear(w_.index_of(r));  // otherwise it would be woken instead of a living rank
    if (recover_from(w_, target_, r) && is_news(r)) return fail_with(w_.world_rank(r));
  }
  return w_.agent == nullptr ? status::done : failed_far();
}

// Holders on other nodes have no records here: the lock manager knows them, unless its rank has gone.
status cpu_wait::failed_far() noexcept {
  if (w_.ctx->gone(w_.world_rank(target_))) return fail_with(w_.world_rank(target_));
  word64& word = view_.lock->state;
  std::uint64_t state = word.load();
  const bool recovers = !w_.ctx->config().is(knob::lock_recovery, "off");
  if ((state & lock_writer) != 0 && (state & lock_proxy) != 0 && w_.ctx->dead(holder_of(state))) {
    const int dead = holder_of(state);
    if (recovers) view_.lock->recoveries.fetch_add(1);
    while (recovers && (state & lock_proxy) != 0 && holder_of(state) == dead &&
           !word.compare_exchange(state, lock_abandoned(state)))
      continue;
    if (recovers) w_.team->ring_all();
    return fail_with(dead);
  }
  return !recovers && (state & lock_readers) != 0 ? w_.team->lost_member() : status::done;
}

status cpu_wait::missed() noexcept {
  if (view_.lock->recoveries.load() == recoveries_) return status::done;
  for (const int r : settled(w_, target_)) {
    if (!is_news(r)) continue;
    w_.ctx->report_lost(w_.world_rank(r));  // this rank may not know of the death yet
    return status::peer_failed;
  }
  if (w_.agent == nullptr || proxy_ != 0) return status::done;
  await_news_of_death(w_);  // a rank of another node has died, for which the lock manager held the lock
  (void)w_.team->lost_member();
  return status::peer_failed;
}

void cpu_wait::leave_list() noexcept {
  if (w_.agent != nullptr && target_ == w_.team->rank) return;  // the lock manager may wait, too: rung in vain at worst
  if (tries_ >= tries_before_listing_) list_.clear(w_.index_of(w_.team->rank));
}

bool cpu_wait::passed_too_often(bool look_at_clock) noexcept {
  const std::uint32_t passes = view_.lock->passes.load(std::memory_order_relaxed);
  if (since_ns_ < 0) {
    since_ns_ = w_.ctx->around().now_ns();
    passes_ = passes;
  }
  if (passes - passes_ >= w_.ctx->config().number(knob::lock_bypasses)) return true;
  // If each hand-over takes long, time alone would make all waiters heirs in turn, and no waiter would be passed any
  // more.
  return passes != passes_ && look_at_clock && w_.ctx->around().now_ns() - since_ns_ >= passed_ns;
}

bool cpu_wait::become_heir() noexcept {
  if (my_index() >= lock_heir_max) return false;
  std::uint64_t found = view_.lock->state.load();
  if (heir_ && (lock_heir_of(found) == static_cast<int>(my_index()) || lock_held_as(found, tag()))) return false;
  heir_ = false;  // the lock has had other holders meanwhile
  while (!heir_ && (found & (lock_away | lock_heir)) == 0)
    heir_ = view_.lock->state.compare_exchange(found, lock_inherited_by(found, my_index()));
  // The holder mostly releases it soon: an heir that sleeps again would delay all ranks.
  for (unsigned i = 0; heir_ && !w_.ctx->keeps_accounts() && i < heir_spins; ++i) {
    if (take_inheritance()) return true;
    spin_pause();
  }
  return false;
}

// The lock is handed over exclusively, also for a shared request. There is no record of that: survivors find the name
// in the word.
bool cpu_wait::take_inheritance() noexcept {
  RMA_ASSERT(heir_ && insists_);
  RMA_ASSERT(proxy_ == 0 && !draining_);  // a lock manager is no heir, and an heir has not taken the word
  std::uint64_t found = view_.lock->state.load();
  if (!lock_held_as(found, tag())) return false;
  heir_ = false;
  if (kind_ == lock_kind::exclusive) {
    view_.record->store(static_cast<std::uint8_t>(kind_));
    view_.counted_locks = 0;
    return true;
  }
  view_.record->store(static_cast<std::uint8_t>(kind_) | record_unsure);
  while (!view_.lock->state.compare_exchange(found, lock_released(found, lock_kind::exclusive) + 1)) continue;
  view_.record->store(static_cast<std::uint8_t>(kind_));
  return true;
}

bool cpu_wait::renounce() noexcept {
  if (!heir_) return false;
  drop_heir(view_.lock->state, my_index());
  return take_inheritance();
}

bool cpu_wait::step() noexcept {
  RMA_ASSERT(!draining_ || kind_ == lock_kind::exclusive);
  RMA_ASSERT(!heir_ || insists_);  // the word may name only a rank that takes the lock as soon as it gets it
  if (heir_ && take_inheritance()) return true;
  if (kind_ == lock_kind::shared && proxy_ != 0) return take_counted();
  if (kind_ == lock_kind::shared) {
    if (view_.counted_locks >= view_.rebias_after ? restore_bias(view_) : take_shared(view_)) return true;
    take_record_back(w_, view_);
    return false;
  }
  if (!draining_ && !take_word()) return false;
  if (draining_ && ((view_.lock->state.load() & lock_readers) != 0 || !readers_gone(w_, target_))) {
    withdraw_late();
    return false;
  }
  draining_ = false;
  // If it was taken for a rank of another node that has died meanwhile, another rank may have released it.
  return proxy_ == 0 || lock_held_as(view_.lock->state.load(), tag());
}

// Readers that do not leave may wait for others that this writer excludes: it lets these in for a while.
void cpu_wait::withdraw_late() noexcept {
  const std::int64_t now = w_.ctx->around().now_ns();
  if (drains_since_ns_ < 0) drains_since_ns_ = now;
  if (now - drains_since_ns_ < drain_ns) return;
  drains_since_ns_ = -1;
  out_until_ns_ = now + drain_ns;
  withdraw();
}

// The lock stays biased, since readers' records may hold it.
void cpu_wait::withdraw() noexcept {
  draining_ = false;
  std::uint64_t found = view_.lock->state.load();
  while (lock_held_as(found, tag()) && !view_.lock->state.compare_exchange(found, lock_abandoned(found))) continue;
  if (proxy_ == 0) view_.record->store(0);
  wake_all(w_, target_);
}

// Takes a counted shared lock, even beside readers that hold it only by records.
bool cpu_wait::take_counted() noexcept {
  std::uint64_t found = view_.lock->state.load();
  while (lock_admits_reader(found)) {
    if (view_.lock->state.compare_exchange(found, found + 1)) return true;
  }
  return false;
}

bool cpu_wait::take_word() noexcept {
  RMA_ASSERT(kind_ == lock_kind::exclusive && !draining_);
  RMA_ASSERT(proxy_ == 0 || !heir_);
  if (out_until_ns_ >= 0 && w_.ctx->around().now_ns() < out_until_ns_) return false;
  out_until_ns_ = -1;
  std::uint64_t found = view_.lock->state.load(std::memory_order_relaxed);
  const bool own = proxy_ == 0;
  if (own) view_.record->store(static_cast<std::uint8_t>(lock_kind::exclusive) | record_unsure);
  bool inherits = false;
  do {
    inherits = heir_ && lock_heir_of(found) == static_cast<int>(my_index());
    if (!lock_admits_writer(found, inherits)) {
      if (own) view_.record->store(0);
      return false;
    }
  } while (!view_.lock->state.compare_exchange(found, lock_taken(found, tag(), inherits)));
  if (own) view_.record->store(static_cast<std::uint8_t>(lock_kind::exclusive));
  heir_ = false;
  RMA_ASSERT(lock_held_as(lock_taken(found, tag(), inherits), tag()));
  draining_ = lock_drains(found);
  if (draining_ && view_.plain_record != 0) fence_for_others();
  if (own) view_.counted_locks = 0;
  return true;
}

bool cpu_wait::moved() const noexcept { return !draining_ && (view_.lock->state.load() & lock_away) != 0; }

bool cpu_wait::is_news(int r) const noexcept {
  return std::find(settled_.begin(), settled_.end(), r) == settled_.end();
}

status cpu_wait::fail_with(int world_rank) noexcept {
  w_.ctx->set_last_failed(world_rank);
  return status::peer_failed;
}

cpu_machine::cpu_machine(window_core& w, int target, lock_kind kind) noexcept
    : w_(w), target_(target), kind_(kind), wait_(w, target, kind) {
  RMA_ASSERT(maps_lock(w, target));
  take_record_back(w, w.views[w.index_of(target)]);
}

bool cpu_machine::may_advance() noexcept {
  got_ = got_ || wait_.ready();
  return got_ || wait_.moved();
}

status cpu_machine::failed() noexcept {
  const status s = w_.revocation();
  return s != status::done ? s : wait_.failed();
}

lock_step cpu_machine::end(status s) noexcept {
  RMA_ASSERT(!got_ || !wait_.has_word());  // the wait has ended if this rank has the lock
  wait_.leave_list();
  if (wait_.renounce()) got_ = true;
  if (s == status::done && !got_) return lock_step::moved;
  if (s == status::done) s = wait_.missed();
  if (s != status::done && got_) release_cpu(w_, target_, kind_);
  if (wait_.has_word()) wait_.withdraw();
  RMA_ASSERT(!wait_.has_word());
  // Wakes others that may share it, or that were not woken because this rank was in the list.
  const bool others = s != status::done || kind_ == lock_kind::shared;
  if (others && (w_.views[w_.index_of(target_)].lock->state.load() & lock_waiters) != 0) wake_next(w_, target_);
  return s == status::done ? lock_step::held : fail(s);
}

namespace {

/// The word after the release by a holder of `kind`.
std::uint64_t left_behind(const window_core& w, std::uint64_t found, lock_kind kind) noexcept {
  const int heir = kind == lock_kind::exclusive ? lock_heir_of(found) : -1;
  if (heir < 0) return lock_released(found, kind);
  const int next = w.world_rank(static_cast<int>(w.first) + heir);
  return w.ctx->dead(next) ? lock_released(found & ~lock_heir, kind)
                           : lock_handed_over(lock_tag(static_cast<std::uint32_t>(next)));
}

/// Rings the ranks that have to see the word after a release.
void call_next(window_core& w, int target, std::uint64_t left) noexcept {
  if ((left & lock_writer) != 0) return ring_writer(w, target, left);
  if ((left & lock_waiters) == 0) return;
  w.views[w.index_of(target)].lock->passes.fetch_add(1);  // once for each woken rank: see wake_next
  wake_next(w, target);
}

}  // namespace

void take_back_first_use(window_core& w, int target) noexcept {
  if (w.shared_by_threads || target < 0 || target >= w.size() || w.is_far(target))
    return;  // with several threads no call is inlined
  target_view& t = w.views[w.index_of(target)];
  if (t.lock != nullptr && t.held == 0) take_record_back(w, t);
}

void release_cpu(window_core& w, int target, lock_kind kind) noexcept {
  target_view& t = w.views[w.index_of(target)];
  if (t.record->load(std::memory_order_relaxed) == shared_biased) {
    take_record_back(w, t);
    return;
  }
  t.record->store(static_cast<std::uint8_t>(kind) | record_unsure);
  std::uint64_t found = t.lock->state.load();
  std::uint64_t left = 0;
  do {
    left = left_behind(w, found, kind);
  } while (!t.lock->state.compare_exchange(found, left));
  t.record->store(0);
  call_next(w, target, left);
}

void wake_all(window_core& w, int target) noexcept {
  waiter_list waiters(w, target);
  for (std::size_t i = 0; i < w.near_count(); ++i) {
    if (!waiters.has(i)) continue;
    waiters.clear(i);
    w.ring(static_cast<int>(w.first + i));
  }
}

void release_proxy(window_core& w, lock_kind kind, std::uint64_t proxy) noexcept {
  const int target = w.team->rank;
  word64& state = w.views[w.index_of(target)].lock->state;
  std::uint64_t found = state.load();
  std::uint64_t left = 0;
  do {
    if (kind == lock_kind::exclusive && !lock_held_as(found, proxy)) return;  // a waiter has released it
    left = left_behind(w, found, kind);
  } while (!state.compare_exchange(found, left));
  call_next(w, target, left);
}

void wake_writer(window_view& view, int target) noexcept {
  window_core& w = core_of(view);
  ring_writer(w, target, w.views[w.index_of(target)].lock->state.load());
}

}  // namespace rma::detail
