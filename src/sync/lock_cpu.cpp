// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_cpu.hpp"

#include <algorithm>

namespace rma::detail {
namespace {

constexpr unsigned tries_before_listing = 64;
constexpr std::uint8_t record_recovered = 0x80;

/// The bits of the ranks that sleep for one target's lock.
class waiter_list {
 public:
  waiter_list(window_core& w, int target) noexcept
      : words_(w.array<word64>(*w.block_of(target), w.layout.waiters_at)), count_((w.mapped + 63) / 64) {}

  void set(std::size_t i) noexcept {
    if ((words_[i / 64].load() & bit(i)) == 0) words_[i / 64].fetch_or(bit(i));
  }
  void clear(std::size_t i) noexcept {
    if ((words_[i / 64].load() & bit(i)) != 0) words_[i / 64].fetch_and(~bit(i));
  }
  [[nodiscard]] bool empty() const noexcept {
    return std::all_of(words_, words_ + count_, [](const word64& w) { return w.load() == 0; });
  }
  /// The first one after `i`, round and round; -1 if there is none.
  [[nodiscard]] int next_after(std::size_t i) const noexcept {
    const std::size_t bits = count_ * 64;
    for (std::size_t step = 1; step <= bits; ++step) {
      const std::size_t at = (i + step) % bits;
      if ((words_[at / 64].load(std::memory_order_relaxed) & bit(at)) != 0) return static_cast<int>(at);
    }
    return -1;
  }

 private:
  static std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << (i % 64); }
  word64* words_;
  std::size_t count_;
};

bool try_take(word64& state, lock_kind kind, std::uint64_t tag) noexcept {
  std::uint64_t found = state.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t wanted = lock_taken(found, kind, tag);
    if (wanted == 0) return false;
    if (state.compare_exchange(found, wanted)) return true;
  }
}

void wake_next(window_core& w, int target) noexcept {
  word64& state = w.views[w.index_of(target)].lock->state;
  waiter_list waiters(w, target);
  const std::size_t me = w.index_of(w.team->rank);
  for (;;) {
    const int next = waiters.next_after(me);
    if (next >= 0) {
      waiters.clear(static_cast<std::size_t>(next));
      w.ring(static_cast<int>(w.first) + next);
    }
    if (!waiters.empty()) return;
    state.fetch_and(~lock_waiters);
    if (waiters.empty()) return;
    // Somebody came in between. If it is held, its holder sees the flag again; else nobody would wake them but us.
    const std::uint64_t found = state.fetch_or(lock_waiters);
    if ((found & (lock_writer | lock_readers)) != 0) return;
  }
}

/// A dead rank's hold on the target's lock is given back, once. True if it had one.
bool recover_from(window_core& w, int target, int dead) noexcept {
  window_block* const theirs = w.block_of(dead);
  if (theirs == nullptr) return false;
  word64& state = w.views[w.index_of(target)].lock->state;
  auto& record = w.array<word<std::uint8_t>>(*theirs, w.layout.records_at)[w.index_of(target)];
  std::uint8_t found = record.load();
  const bool exclusive = (found & 0xf) == static_cast<std::uint8_t>(lock_kind::exclusive);
  if (found == 0) return false;
  if ((found & record_recovered) != 0 || w.ctx->config().is(knob::lock_recovery, "off")) return true;
  if (exclusive) {
    std::uint64_t held = state.load();
    while ((held & ~lock_waiters) == lock_tag(static_cast<std::uint32_t>(w.world_rank(dead)))) {
      if (state.compare_exchange(held, held & lock_waiters)) break;
    }
    record.compare_exchange(found, static_cast<std::uint8_t>(found | record_recovered));
  } else if ((found & record_unsure) == 0 &&
             record.compare_exchange(found, static_cast<std::uint8_t>(found | record_recovered))) {
    state.fetch_sub(1);
  }
  w.team->ring_all();
  return true;
}

/// The members whose hold on the target's lock was given back before: their death is no news for who comes now.
std::vector<int> settled(const window_core& w, int target) {
  std::vector<int> found;
  if (w.ctx->deaths() == 0) return found;
  for (int r = static_cast<int>(w.first); r < static_cast<int>(w.first + w.mapped); ++r) {
    window_block* const block = w.block_of(r);
    if (block == nullptr) continue;
    const auto& record = w.array<word<std::uint8_t>>(*block, w.layout.records_at)[w.index_of(target)];
    if ((record.load() & record_recovered) != 0) found.push_back(r);
  }
  return found;
}

/// One rank's wait for one lock.
class waiting {
 public:
  waiting(window_core& w, int target, lock_kind kind) noexcept
      : w_(w),
        target_(target),
        kind_(kind),
        state_(w.views[w.index_of(target)].lock->state),
        list_(w, target),
        settled_(settled(w, target)) {}

  bool ready() noexcept {
    if (try_take(state_, kind_, w_.my_lock_tag)) return true;
    if (++tries_ < tries_before_listing) return false;
    list_.set(w_.index_of(w_.team->rank));  // before the last look: who unlocks after it sees the list
    if ((state_.load() & lock_waiters) == 0) state_.fetch_or(lock_waiters);
    return try_take(state_, kind_, w_.my_lock_tag);
  }
  status failed() noexcept {
    for (int r = static_cast<int>(w_.first); r < static_cast<int>(w_.first + w_.mapped); ++r) {
      if (w_.team->place(r) < 0 || r == w_.team->rank || !w_.ctx->gone(w_.world_rank(r))) continue;
      const bool recovered = recover_from(w_, target_, r);
      if (!recovered || std::find(settled_.begin(), settled_.end(), r) != settled_.end()) continue;
      w_.ctx->blame(w_.world_rank(r));
      return status::peer_failed;
    }
    return status::done;
  }
  void leave_list() noexcept {
    if (tries_ >= tries_before_listing) list_.clear(w_.index_of(w_.team->rank));
  }

 private:
  window_core& w_;
  int target_;
  lock_kind kind_;
  word64& state_;
  waiter_list list_;
  std::vector<int> settled_;
  unsigned tries_ = 0;
};

}  // namespace

status acquire_cpu(window_core& w, int target, lock_kind kind) noexcept {
  target_view& t = w.views[w.index_of(target)];
  t.record->store(static_cast<std::uint8_t>(kind) | record_unsure);
  status s = status::done;
  if (!try_take(t.lock->state, kind, w.my_lock_tag)) {
    waiting wait(w, target, kind);
    s = w.ctx->wait_until([&]() noexcept { return wait.ready(); }, [&]() noexcept { return wait.failed(); });
    wait.leave_list();
    // Another waiter may have given the dead rank's hold back before this one looked: it is news for this one, too.
    if (s == status::done && w.ctx->deaths() != 0 && wait.failed() != status::done) {
      release_cpu(w, target, kind);
      return status::peer_failed;
    }
    // Others that may share it, or that this rank's place in the list kept from being woken, get their turn.
    if ((s != status::done || kind == lock_kind::shared) && (t.lock->state.load() & lock_waiters) != 0)
      wake_next(w, target);
  }
  t.record->store(s == status::done ? static_cast<std::uint8_t>(kind) : 0);
  return s;
}

void release_cpu(window_core& w, int target, lock_kind kind) noexcept {
  target_view& t = w.views[w.index_of(target)];
  t.record->store(static_cast<std::uint8_t>(kind) | record_unsure);
  std::uint64_t found = t.lock->state.load();
  while (!t.lock->state.compare_exchange(found, lock_released(found, kind))) {}
  t.record->store(0);
  if ((found & lock_waiters) != 0) wake_next(w, target);
}

}  // namespace rma::detail
