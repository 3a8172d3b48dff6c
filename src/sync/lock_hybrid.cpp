// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_hybrid.hpp"

#include <algorithm>
#include <utility>

#include "sync/lock_agent.hpp"
#include "sync/lock_network.hpp"
#include "xfer/entry_scope.hpp"

namespace rma::detail {
namespace {

constexpr std::int64_t retry_first_ns = 1'000;
constexpr std::int64_t retry_max_ns = 200'000;

/// Pauses while the lock is between its two homes; whoever moves it acts next, or is found dead.
class between_homes {
 public:
  between_homes(window_core& w, int target) noexcept : w_(w), target_(target) {}
  status pause() noexcept {
    if (w_.block_of(target_) != nullptr && mend(w_, target_)) return status::done;
    const int peer = w_.world_rank(target_);
    const bool self = target_ == w_.team->rank;
    const window_unlock_guard out(w_);
    const auto lost = [&]() noexcept { return !self && w_.ctx->gone(peer) ? status::peer_failed : w_.revocation(); };
    const status s = w_.ctx->wait({.fails_if = lost, .deadline_ns = w_.ctx->after_ns(ns_), .whole = &whole_});
    if (s == status::peer_failed) w_.ctx->set_last_failed(peer);
    ns_ = std::min(2 * ns_, retry_max_ns);
    return s;
  }

 private:
  window_core& w_;
  int target_;
  std::int64_t ns_ = retry_first_ns;
  long_wait whole_{*w_.ctx};
};

/// This rank holds the network word exclusively; afterwards it holds the CPU lock as `kind`.
status bring_to_cpu(window_core& w, int target, lock_kind kind) noexcept {
  target_view& t = w.views[w.index_of(target)];
  word64& state = t.lock->state;
  const int me = w.ctx->rank();
  std::uint64_t found = state.load();
  do {
    if ((found & lock_away) == 0) {  // cannot be, unless memory was overwritten
      (void)release_network(w, target, lock_kind::exclusive);
      return status::transfer_failed;
    }
  } while (!state.compare_exchange(found, migrating_tag(me) | (found & lock_waiters)));
  if (const status s = leave_network(w, target); s != status::done) {
    found = state.load();
    while (!state.compare_exchange(found, granted_tag(me) | (found & lock_waiters))) continue;
    return s;
  }
  const bool exclusively = kind == lock_kind::exclusive;
  const std::uint64_t hold = exclusively ? w.my_lock_tag : lock_counted + 1;
  t.record->store(static_cast<std::uint8_t>(kind) | record_unsure);
  found = state.load();
  while (!state.compare_exchange(found, hold | (found & lock_waiters))) continue;
  t.record->store(static_cast<std::uint8_t>(kind));
  ++w.counts.migrations;
  if (!exclusively) wake_all(w, target);
  return status::done;
}

/// The network word, exclusively, in order to migrate. Who wants it shared must not wait for others that hold it
/// shared.
status take_to_move(window_core& w, int target, lock_kind kind) noexcept {
  return kind == lock_kind::shared ? try_network(w, target) : acquire_network(w, target, kind);
}

/// By the node's ranks, which map both words.
status acquire_near(window_core& w, int target, lock_kind kind) noexcept {
  target_state& state = w.state_of(target);
  window_block& block = *w.block_of(target);
  between_homes between(w, target);
  const bool is_home = (block.lock.state.load() & lock_away) == 0;
  const bool migrate = note_request(w, block, is_home);
  for (;;) {
    state.path = lock_path::cpu;
    status s = acquire_cpu(w, target, kind);
    if (s != status::not_yet) return s;
    s = migrate && !is_home ? take_to_move(w, target, kind) : status::posted;
    if (s == status::done) return bring_to_cpu(w, target, kind);
    state.path = lock_path::network;
    if (s == status::posted) s = acquire_network(w, target, kind);
    if (s != status::not_yet) return s;
    s = between.pause();
    if (s != status::done) return s;
  }
}

/// The lock manager's way. `not_yet`: the lock is in the network, or on its way.
status ask_manager(window_core& w, int target, lock_kind kind) noexcept {
  target_state& state = w.state_of(target);
  const std::int64_t begin_ns = w.ctx->around().now_ns();
  lock_request& request = ask_agent(w, target, kind, excess_ns(state.experience));
  const status s = await_answer(w, target, request);
  state.experience.alone = request.alone;
  state.path = lock_path::agent;
  if (s == status::done) {
    state.experience = found_at(state.experience, lock_place::cpu);
    state.experience = after_answer(state.experience, w.ctx->around().now_ns() - begin_ns - request.waited_ns,
                                    atomics_per_answer(state.experience));
  } else if (s == status::posted || s == status::not_yet) {
    state.experience = found_at(state.experience, lock_place::network);
  }
  if (s != status::posted) return s;
  ++w.counts.migrations;
  state.path = lock_path::network;
  return claim_network(w, target, kind);
}

/// By ranks of other nodes: where the lock was last, else at the other place.
status acquire_afar(window_core& w, int target, lock_kind kind) noexcept {
  between_homes between(w, target);
  bool by_manager = w.state_of(target).experience.place == lock_place::cpu;
  for (unsigned failures = 0;; by_manager = !by_manager) {
    status s = by_manager ? ask_manager(w, target, kind) : acquire_there(w, target, kind);
    if (s != status::not_yet) return s;
    if (++failures % 2 != 0) continue;
    s = between.pause();
    if (s != status::done) return s;
  }
}

}  // namespace

status acquire_there(window_core& w, int target, lock_kind kind) noexcept {
  target_state& state = w.state_of(target);
  const std::int64_t begin_ns = w.ctx->around().now_ns();
  const std::uint64_t pauses = w.lock_pauses;
  state.path = lock_path::network;
  const status s = acquire_network(w, target, kind);
  if (w.lock_pauses == pauses) state.experience = after_atomic(state.experience, w.ctx->around().now_ns() - begin_ns);
  if (s == status::done) state.experience = found_at(state.experience, lock_place::network);
  return s;
}

bool note_request(window_core& w, window_block& block, bool home, std::uint32_t late) noexcept {
  const bool adaptive = w.policy == lock_policy::adaptive;
  const bool counts_all = w.alone && !w.defers_far;
  const bool well = home || (adaptive && !counts_all && late < lateness_of_rent);
  // What was lost to a rank without neighbours is paid at once.
  const std::uint32_t weight = adaptive && w.alone && w.defers_far ? late : 1;
  migration_words& words = block.migration;
  const migration_ledger before{words.benefit.load(std::memory_order_relaxed),
                                words.migration_cost.load(std::memory_order_relaxed),
                                words.local_streak.load(std::memory_order_relaxed), false};
  const migration_ledger after =
      accounted(before, w.policy, w.policy_threshold, well, adaptive && counts_all ? 1 : migration_price_min, weight);
  // Ranks that write at the same time lose a count: it is a wager anyway.
  if (after.benefit != before.benefit) words.benefit.store(after.benefit);
  if (after.migration_cost != before.migration_cost) words.migration_cost.store(after.migration_cost);
  if (after.local_streak != before.local_streak) words.local_streak.store(after.local_streak);
  return after.migrate;
}

bool mend(window_core& w, int target) noexcept {
  window_block& block = *w.block_of(target);
  std::uint64_t state = block.lock.state.load();
  if ((state & lock_away) == 0 || !w.ctx->dead(holder_of(state))) return false;
  const std::uint64_t wanted = mended(state, block.network_lock.load(), network_away);
  if (wanted == state || !block.lock.state.compare_exchange(state, wanted)) return false;
  wake_all(w, target);
  return true;
}

void set_home(window_core& w, lock_home home) noexcept {
  window_block& mine = w.my_block();
  if (home == lock_home::network) {
    mine.lock.state.store(granted_tag(w.ctx->rank()));
  } else {
    mine.network_lock.store(network_away);
  }
}

status acquire_hybrid(window_core& w, int target, lock_kind kind) noexcept {
  const status s = w.block_of(target) != nullptr ? acquire_near(w, target, kind) : acquire_afar(w, target, kind);
  if (s != status::done) w.state_of(target).path = lock_path::cpu;
  return s;
}

status release_hybrid(window_core& w, int target, lock_kind kind) noexcept {
  // Back to what an inlined lock is, which says nothing.
  switch (std::exchange(w.state_of(target).path, lock_path::cpu)) {
    case lock_path::cpu: release_cpu(w, target, kind); return status::done;
    case lock_path::agent: release_by_agent(w, target); return status::done;
    case lock_path::network: break;
  }
  full_fence();  // what was stored in the epoch, before the adapter is asked
  return release_network(w, target, kind);
}

}  // namespace rma::detail
