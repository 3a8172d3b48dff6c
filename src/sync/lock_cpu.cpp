// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_cpu.hpp"

#include <algorithm>
#include <utility>

#include "core/membarrier.hpp"
#include "rma/detail/window_ops.hpp"
#include "sync/lock_attempt.hpp"

namespace rma::detail {
namespace {

constexpr unsigned tries_before_listing_max = 64;
constexpr std::uint16_t rebias_after_max = 4096;
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

void ring_writer(window_core& w, std::uint64_t state) noexcept {
  if ((state & lock_writer) == 0 || (state & lock_waiters) == 0) return;
  const std::size_t holder = w.board->index_of(static_cast<int>((state & ~lock_writer) >> 32));
  if (holder < w.board->size()) w.board->ring_doorbell(holder);
}

/// An attempt that came too late: no hold, but the record says so, and a writer may have seen it and sleep.
void take_back(window_core& w, target_view& t) noexcept {
  if (t.record->load(std::memory_order_relaxed) == 0) return;
  t.record->exchange(0);
  ring_writer(w, t.lock->state.load());
}

/// A counted shared lock after enough others without a writer in between: from now on readers have their records again.
bool restore_bias(target_view& t) noexcept {
  constexpr auto hold = static_cast<std::uint8_t>(lock_kind::shared);
  t.counted_locks = 0;
  if (!take_shared(t)) return false;
  if (t.rebias_after < rebias_after_max) t.rebias_after *= 2;  // each time costs the next writer a search
  if (t.record->load(std::memory_order_relaxed) == hold) t.lock->state.fetch_and(~lock_counted);
  return true;
}

/// True once no reader's record says that it holds the target's lock. The caller is the writer, so none comes in.
bool readers_gone(window_core& w, int target) noexcept {
  for (int r = static_cast<int>(w.first); r < static_cast<int>(w.first + w.mapped); ++r) {
    window_block* const theirs = w.block_of(r);
    if (theirs == nullptr) continue;
    if (w.array<word<std::uint8_t>>(*theirs, w.layout.records_at)[w.index_of(target)].load() == shared_biased)
      return false;
  }
  return true;
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
  w.views[w.index_of(target)].lock->recoveries.fetch_add(1);  // first: who gets the lock then sees it
  const auto settled = static_cast<std::uint8_t>(found | record_recovered);
  if (exclusive) {
    std::uint64_t held = state.load();
    while ((held & ~lock_waiters) == lock_tag(static_cast<std::uint32_t>(w.world_rank(dead)))) {
      if (state.compare_exchange(held, lock_released(held, lock_kind::exclusive))) break;
    }
    record.compare_exchange(found, settled);
  } else if ((found & record_unsure) == 0 && record.compare_exchange(found, settled) && (found & record_biased) == 0) {
    state.fetch_sub(1);
  }
  w.team->ring_all();
  return true;
}

/// The members whose hold on the target's lock was given back before: their death is no news for who comes now.
std::vector<int> settled(const window_core& w, int target) {
  std::vector<int> found;
  if (w.views[w.index_of(target)].lock->recoveries.load() == 0) return found;
  for (int r = static_cast<int>(w.first); r < static_cast<int>(w.first + w.mapped); ++r) {
    window_block* const block = w.block_of(r);
    if (block == nullptr) continue;
    const auto& record = w.array<word<std::uint8_t>>(*block, w.layout.records_at)[w.index_of(target)];
    if ((record.load() & record_recovered) != 0) found.push_back(r);
  }
  return found;
}

/// One rank's wait for one lock. A writer takes the word, then waits for the readers that it found by their records.
class waiting {
 public:
  waiting(window_core& w, int target, lock_kind kind) noexcept
      : w_(w),
        target_(target),
        kind_(kind),
        view_(w.views[w.index_of(target)]),
        list_(w, target),
        recoveries_(view_.lock->recoveries.load()),
        settled_(settled(w, target)),
        tries_before_listing_(std::min(tries_before_listing_max, w.ctx->looks_before_sleep())) {}

  bool ready() noexcept {
    if (step()) return true;
    if (++tries_ < tries_before_listing_) return false;
    list_.set(w_.index_of(w_.team->rank));  // before the last look: who unlocks after it sees the list
    word64& state = view_.lock->state;
    if ((state.load() & lock_waiters) == 0) {
      state.fetch_or(lock_waiters);
      readers_know_ = false;
    }
    if (draining_ && view_.plain_record != 0 && !std::exchange(readers_know_, true)) fence_for_others();
    return step();
  }
  status failed() noexcept {
    for (int r = static_cast<int>(w_.first); r < static_cast<int>(w_.first + w_.mapped); ++r) {
      if (w_.team->place(r) < 0 || r == w_.team->rank || !w_.ctx->gone(w_.world_rank(r))) continue;
      if (recover_from(w_, target_, r) && is_news(r)) return blame(r);
    }
    return status::done;
  }
  /// After the lock was got: another waiter may have given a dead rank's hold back; it is news for this one, too.
  status missed() noexcept {
    if (view_.lock->recoveries.load() == recoveries_) return status::done;
    for (const int r : settled(w_, target_)) {
      if (!is_news(r)) continue;
      w_.ctx->lost(w_.world_rank(r));  // this rank may not have heard of the death
      return status::peer_failed;
    }
    return status::done;
  }
  void leave_list() noexcept {
    if (tries_ >= tries_before_listing_) list_.clear(w_.index_of(w_.team->rank));
  }
  /// True if the word is taken, although the wait has not ended.
  [[nodiscard]] bool has_word() const noexcept { return draining_; }

 private:
  bool step() noexcept {
    if (kind_ == lock_kind::shared) {
      if (view_.counted_locks >= view_.rebias_after ? restore_bias(view_) : take_shared(view_)) return true;
      take_back(w_, view_);
      return false;
    }
    if (!draining_ && !take_word()) return false;
    if (draining_ && !readers_gone(w_, target_)) return false;
    draining_ = false;
    return true;
  }
  bool take_word() noexcept {
    std::uint64_t found = view_.lock->state.load(std::memory_order_relaxed);
    view_.record->store(static_cast<std::uint8_t>(lock_kind::exclusive) | record_unsure);
    do {
      if ((found & (lock_writer | lock_readers)) != 0) {
        view_.record->store(0);
        return false;
      }
    } while (!view_.lock->state.compare_exchange(found, w_.my_lock_tag | (found & lock_waiters)));
    view_.record->store(static_cast<std::uint8_t>(lock_kind::exclusive));
    draining_ = (found & lock_counted) == 0;
    if (draining_ && view_.plain_record != 0) fence_for_others();
    view_.counted_locks = 0;
    return true;
  }
  [[nodiscard]] bool is_news(int r) const noexcept {
    return std::find(settled_.begin(), settled_.end(), r) == settled_.end();
  }
  status blame(int r) noexcept {
    w_.ctx->blame(w_.world_rank(r));
    return status::peer_failed;
  }

  window_core& w_;
  int target_;
  lock_kind kind_;
  target_view& view_;
  waiter_list list_;
  std::uint32_t recoveries_;
  std::vector<int> settled_;  ///< whose hold was given back before
  unsigned tries_before_listing_;
  unsigned tries_ = 0;
  bool draining_ = false;
  bool readers_know_ = false;  ///< who lets go with a plain store sees that there is a waiter
};

}  // namespace

namespace {

/// The steps of acquire_cpu, one by one.
class cpu_attempt final : public lock_attempt {
 public:
  cpu_attempt(window_core& w, int target, lock_kind kind) noexcept
      : w_(w), target_(target), kind_(kind), wait_(w, target, kind) {}
  status advance() noexcept override {
    if (!wait_.ready()) return status::not_yet;
    return leave(wait_.missed(), true);
  }
  status failed() noexcept override {
    const status s = wait_.failed();
    return s == status::done ? s : leave(s, false);
  }
  void cancel() noexcept override { (void)leave(status::peer_failed, false); }
  [[nodiscard]] bool silent() const noexcept override { return false; }

 private:
  status leave(status s, bool got) noexcept {
    wait_.leave_list();
    if (s != status::done && (got || wait_.has_word())) release_cpu(w_, target_, kind_);
    const bool others = s != status::done || kind_ == lock_kind::shared;
    if (others && (w_.views[w_.index_of(target_)].lock->state.load() & lock_waiters) != 0) wake_next(w_, target_);
    return s;
  }
  window_core& w_;
  int target_;
  lock_kind kind_;
  waiting wait_;
};

}  // namespace

std::unique_ptr<lock_attempt> attempt_cpu(window_core& w, int target, lock_kind kind) {
  take_back(w, w.views[w.index_of(target)]);
  return std::make_unique<cpu_attempt>(w, target, kind);
}

status acquire_cpu(window_core& w, int target, lock_kind kind) noexcept {
  take_back(w, w.views[w.index_of(target)]);
  waiting wait(w, target, kind);
  status s = w.ctx->wait_until([&]() noexcept { return wait.ready(); }, [&]() noexcept { return wait.failed(); });
  wait.leave_list();
  const bool got = s == status::done;
  if (got) s = wait.missed();
  if (s != status::done && (got || wait.has_word())) release_cpu(w, target, kind);
  // Others that may share it, or that this rank's place in the list kept from being woken, get their turn.
  if ((s != status::done || kind == lock_kind::shared) &&
      (w.views[w.index_of(target)].lock->state.load() & lock_waiters) != 0)
    wake_next(w, target);
  return s;
}

void release_cpu(window_core& w, int target, lock_kind kind) noexcept {
  target_view& t = w.views[w.index_of(target)];
  if (t.record->load(std::memory_order_relaxed) == shared_biased) {
    take_back(w, t);
    return;
  }
  t.record->store(static_cast<std::uint8_t>(kind) | record_unsure);
  std::uint64_t found = t.lock->state.load();
  while (!t.lock->state.compare_exchange(found, lock_released(found, kind))) {}
  t.record->store(0);
  if ((found & lock_waiters) != 0) wake_next(w, target);
}

void wake_writer(window_view& view, int target) noexcept {
  window_core& w = core_of(view);
  ring_writer(w, w.views[w.index_of(target)].lock->state.load());
}

}  // namespace rma::detail
