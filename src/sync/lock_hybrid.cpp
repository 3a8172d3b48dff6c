// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_hybrid.hpp"

#include <algorithm>
#include <utility>

#include "sync/hybrid_machine.hpp"

namespace rma::detail {
namespace {

constexpr std::int64_t retry_first_ns = 1'000;
constexpr std::int64_t retry_max_ns = 200'000;

/// Makes the CPU word name the rank that acts next, and keeps the mark of waiters.
void set_cpu_word(window_core& w, int target, std::uint64_t next) noexcept {
  word64& state = w.views[w.index_of(target)].lock->state;
  std::uint64_t found = state.load();
  while (!state.compare_exchange(found, next | (found & lock_waiters))) continue;
}

hybrid_stage first_stage(window_core& w, int target) noexcept {
  if (w.block_of(target) != nullptr) return hybrid_stage::cpu;
  return w.state_of(target).experience.manager == lock_place::cpu ? hybrid_stage::manager : hybrid_stage::network;
}

}  // namespace

hybrid_machine::hybrid_machine(window_core& w, int target, lock_kind kind) noexcept
    : w_(w),
      target_(target),
      kind_(kind),
      stage_(first_stage(w, target)),
      way_{stage_, false},
      pause_ns_(retry_first_ns) {
  if (is_near()) {
    window_block& block = *w.block_of(target);
    const bool is_home = (block.lock.state.load() & lock_away) == 0;
    way_.migrates = note_request(w, block, kind, is_home) && !is_home;
  }
  enter(stage_);
}

hybrid_machine::hybrid_machine(window_core& w, int target, lock_kind kind, hybrid_stage first) noexcept
    : w_(w),
      target_(target),
      kind_(kind),
      stage_(first),
      way_{first_stage(w, target), false},
      pause_ns_(retry_first_ns) {
  RMA_ASSERT(!is_near() && (first == hybrid_stage::network_only || first == hybrid_stage::claiming));
  enter(first);
}

void hybrid_machine::enter(hybrid_stage next) noexcept {
  stage_ = next;
  at_ = nullptr;
  since_ns_ = w_.ctx->around().now_ns();
  switch (next) {
    case hybrid_stage::cpu: at_ = &places_.emplace<cpu_machine>(w_, target_, kind_); break;
    case hybrid_stage::manager:
      at_ = &places_.emplace<agent_machine>(w_, target_, kind_, excess_locks(w_.state_of(target_).experience));
      break;
    case hybrid_stage::network:
    case hybrid_stage::network_only: at_ = &places_.emplace<network_machine>(w_, target_, kind_); break;
    case hybrid_stage::moving: {
      network_machine& m = places_.emplace<network_machine>(w_, target_, lock_kind::exclusive);
      if (kind_ == lock_kind::shared) m.only_once();  // it must not wait for others that hold it shared
      at_ = &m;
      break;
    }
    case hybrid_stage::claiming:
      ++w_.counts.migrations;
      at_ = &places_.emplace<network_machine>(w_, target_, kind_, network_phase::claiming);
      break;
    case hybrid_stage::leaving: leaving_.emplace(network_word(w_, target_)); break;
    case hybrid_stage::pausing: pause(); break;
    default: break;
  }
  if (stays_ && at_ != nullptr) at_->keep_request();
}

void hybrid_machine::keep_request() noexcept {
  stays_ = true;
  if (at_ != nullptr) at_->keep_request();
}

/// Pauses until the rank that moves the lock has acted, or is found dead.
void hybrid_machine::pause() noexcept {
  next_ns_ = w_.ctx->around().now_ns();
  if (w_.block_of(target_) != nullptr && mend(w_, target_)) return;
  next_ns_ += pause_ns_;
  pause_ns_ = std::min(2 * pause_ns_, retry_max_ns);
}

bool hybrid_machine::may_advance() noexcept {
  if (at_ != nullptr) return at_->may_advance();
  if (leaving_ && leaving_->asks()) return leaving_->is_answered();
  return w_.ctx->around().now_ns() >= next_ns_;
}

std::int64_t hybrid_machine::resumes_at_ns() const noexcept {
  if (at_ != nullptr) return at_->resumes_at_ns();
  return leaving_ && leaving_->asks() ? by_message : next_ns_;
}

status hybrid_machine::failed() noexcept {
  if (at_ != nullptr) return at_->failed();
  if (stage_ == hybrid_stage::leaving) return status::done;  // the fabric ends every request
  const int peer = w_.world_rank(target_);
  if (peer == w_.ctx->rank() || !w_.ctx->gone(peer)) return w_.revocation();
  w_.ctx->set_last_failed(peer);
  return status::peer_failed;
}

lock_step hybrid_machine::go_on() noexcept {
  RMA_ASSERT(stage_ != hybrid_stage::held && stage_ != hybrid_stage::elsewhere);
  RMA_ASSERT((at_ == nullptr) == (stage_ == hybrid_stage::pausing || stage_ == hybrid_stage::leaving));
  if (!may_advance()) return lock_step::not_yet;
  for (;;) {
    if (stage_ == hybrid_stage::pausing) enter(way_.first);
    const lock_step s = at_ != nullptr ? at_->advance() : leave_network_word();
    if (s == lock_step::not_yet) return s;
    note(s);
    if (s == lock_step::failed) return fail(at_ != nullptr ? at_->why() : left_);
    const hybrid_stage last = stage_;
    const hybrid_stage next = after(last, s, way_);
    RMA_ASSERT(!leaving_ || !leaving_->asks());  // the adapter has answered
    if (next == hybrid_stage::held) w_.state_of(target_).path = path_after(last);
    if (next == hybrid_stage::held) return lock_step::held;
    if (next == hybrid_stage::elsewhere) return lock_step::moved;
    enter(next);
    if (next == hybrid_stage::pausing && !may_advance()) return lock_step::not_yet;
    if (next == hybrid_stage::leaving && mark_migrating() == lock_step::failed) return fail(status::transfer_failed);
  }
}

/// Called when this rank holds the network word exclusively, so that it acts next.
lock_step hybrid_machine::mark_migrating() noexcept {
  word64& state = w_.views[w_.index_of(target_)].lock->state;
  std::uint64_t found = state.load();
  do {
    if ((found & lock_away) == 0) {  // impossible unless memory was overwritten
      (void)release_network(w_, target_, lock_kind::exclusive);
      return lock_step::failed;
    }
  } while (!state.compare_exchange(found, migrating_tag(w_.ctx->rank()) | (found & lock_waiters)));
  return lock_step::not_yet;
}

lock_step hybrid_machine::leave_network_word() noexcept {
  RMA_ASSERT(stage_ == hybrid_stage::leaving && leaving_);
  std::uint64_t old = 0;
  const status s = leaving_->ask_soon(leave_request(w_.ctx->rank()), true, old);
  if (s == status::posted && !leaving_->asks()) next_ns_ = w_.ctx->around().now_ns() + retry_first_ns;
  return s == status::posted ? lock_step::not_yet : arrive(s);
}

/// Makes the CPU word this rank's hold; the network word is "away" now, unless that has failed.
lock_step hybrid_machine::arrive(status left) noexcept {
  if (left != status::done) {
    left_ = left;
    set_cpu_word(w_, target_, granted_tag(w_.ctx->rank()));
    return lock_step::failed;
  }
  target_view& t = w_.views[w_.index_of(target_)];
  const bool exclusively = kind_ == lock_kind::exclusive;
  t.record->store(static_cast<std::uint8_t>(kind_) | record_unsure);
  set_cpu_word(w_, target_, exclusively ? w_.my_lock_tag : lock_counted + 1);
  t.record->store(static_cast<std::uint8_t>(kind_));
  ++w_.counts.migrations;
  if (!exclusively) wake_all(w_, target_);
  return lock_step::held;
}

void hybrid_machine::take_back() noexcept {
  if (at_ != nullptr) return at_->give_up(why());
  if (stage_ != hybrid_stage::leaving) return;
  std::uint64_t old = 0;
  const network_request release = leave_request(w_.ctx->rank());
  const status s = leaving_->asks() ? leaving_->await_answer(true, release, old) : leaving_->add(release.operand, old);
  if (arrive(s) == lock_step::held) release_cpu(w_, target_, kind_);
}

/// Updates the experience of a rank of another node with the lock. Times are meaningful only if it did nothing but
/// wait.
void hybrid_machine::note(lock_step s) noexcept {
  lock_experience& known = w_.state_of(target_).experience;
  if (stage_ == hybrid_stage::manager) note_answer(s);
  if (is_near() || (stage_ != hybrid_stage::network && stage_ != hybrid_stage::network_only)) return;
  if (stays_ && !std::get<network_machine>(places_).has_paused())
    known = after_atomic(known, w_.ctx->around().now_ns() - since_ns_);
  if (s == lock_step::held) known = found_at(known, lock_place::network);
}

void hybrid_machine::note_answer(lock_step s) noexcept {
  lock_experience& known = w_.state_of(target_).experience;
  const lock_request& request = std::get<agent_machine>(places_).request();
  known.alone = request.alone;
  if (s == lock_step::moved || s == lock_step::migrates) known = found_at(known, lock_place::network);
  if (s != lock_step::held) return;
  known = found_at(known, lock_place::cpu);
  const std::int64_t took_ns = w_.ctx->around().now_ns() - since_ns_ - request.waited_ns;
  if (stays_) known = after_answer(known, took_ns, atomics_per_answer(known));
}

bool note_request(window_core& w, window_block& block, lock_kind kind, bool at_home, std::uint32_t late) noexcept {
  if (w.policy == lock_policy::priority && kind == lock_kind::shared) return false;
  if (w.lock_stays) return false;
  const bool adaptive = w.policy == lock_policy::adaptive || w.policy == lock_policy::native;
  const bool counts_all = w.alone && !w.defers_far;
  const bool well = at_home || (adaptive && !counts_all && late < excess_of_benefit);
  // Locks lost to a rank without neighbors count at once.
  const std::uint32_t weight = adaptive && w.alone && w.defers_far ? late : 1;
  migration_words& words = block.migration;
  const migration_ledger before{words.benefit.load(std::memory_order_relaxed),
                                words.migration_cost.load(std::memory_order_relaxed),
                                words.local_streak.load(std::memory_order_relaxed), false};
  const migration_ledger after =
      accounted(before, w.policy, w.policy_threshold, well, adaptive && counts_all ? 1 : migration_cost_min, weight);
  // Concurrent writers may lose a count, which is acceptable in a heuristic.
  if (after.benefit != before.benefit) words.benefit.store(after.benefit);
  if (after.migration_cost != before.migration_cost) words.migration_cost.store(after.migration_cost);
  if (after.local_streak != before.local_streak) words.local_streak.store(after.local_streak);
  return after.migrate;
}

bool mend(window_core& w, int target) noexcept {
  window_block& block = *w.block_of(target);
  std::uint64_t state = block.lock.state.load();
  if ((state & lock_away) == 0 || !w.ctx->dead(holder_of(state))) return false;
  const std::uint64_t wanted = mended(state, block.network_lock.load());
  if (wanted == state || !block.lock.state.compare_exchange(state, wanted)) return false;
  wake_all(w, target);
  return true;
}

void set_home(window_core& w, lock_home at_home) noexcept {
  window_block& mine = w.my_block();
  if (at_home == lock_home::network) {
    mine.lock.state.store(granted_tag(w.ctx->rank()));
  } else {
    mine.network_lock.store(network_away);
  }
}

status release_hybrid(window_core& w, int target, lock_kind kind) noexcept {
  // Resets the path to that of inlined locks, which do not set it.
  switch (std::exchange(w.state_of(target).path, lock_path::cpu)) {
    case lock_path::cpu: release_cpu(w, target, kind); return status::done;
    case lock_path::agent: release_by_agent(w, target); return status::done;
    case lock_path::network: break;
  }
  full_fence();  // orders the epoch's stores before the adapter's atomic
  return release_network(w, target, kind);
}

}  // namespace rma::detail
