// SPDX-License-Identifier: Apache-2.0
#include "sync/fence.hpp"

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "core/assert.hpp"
#include "sync/deferred.hpp"
#include "sync/epochs.hpp"
#include "sync/fence_def.hpp"
#include "sync/fence_imm_naive.hpp"
#include "sync/fence_imm_opt.hpp"
#include "sync/fence_imm_ri.hpp"
#include "sync/fence_neighbors.hpp"
#include "sync/fence_news.hpp"
#include "sync/merged_ends.hpp"
#include "xfer/complete.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

bool writes_before_messages(const window_core& w, int target) noexcept {
  return w.ctx->network_of(w.world_rank(target)).caps().messages_after_writes;
}

/// The id of the barriers and counts of the window's fences, which blocking calls do not use.
std::uint64_t id_of_collectives(const window_core& w) noexcept {
  constexpr std::uint64_t fence_collectives = 0x66656e6365;
  return w.barrier_id ^ fence_collectives;
}

/// True if a complete write is in the target's memory, on any node.
bool completion_is_placement(const window_core& w) noexcept {
  const fabric::network* const wide = w.ctx->wide();
  return wide == nullptr || wide->caps().write_means == fabric::write_completion::placed;
}

/// True if fence imm-ri has no barrier. RMA_FENCE=imm-ri:barrier keeps it, also for windows whose hints ask for imm-ri.
bool leaves_barrier_out(const window_core& w) noexcept {
  return completion_is_placement(w) && !w.ctx->config().is(knob::fence, "imm-ri:barrier");
}

/// Notes that a message after the writes implies their placement, so that nothing else has to confirm it.
void trust_order(window_core& w, int target) noexcept {
  if (w.is_far(target)) w.far(target).unplaced = false;
}

/// True if all of `ranks` have announced that fence; else `missing` is one that has not.
bool all_heard(window_core& w, std::uint32_t target_news::*last, const std::vector<int>& ranks, std::uint32_t number,
               int& missing) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  for (const int r : ranks) {
    if (static_cast<std::int32_t>(w.news[w.world_rank(r)].*last - number) >= 0) continue;
    missing = w.world_rank(r);
    return false;
  }
  return true;
}

}  // namespace

bool may_fence(const window_core& w) noexcept {
  const bool fenced = w.access == access_epoch::fence || w.access == access_epoch::none;
  return fenced && w.locks_open == 0 && !w.exposed;
}

status run_to_end(window_core& w, fence_run& run) noexcept {
  status result = status::not_yet;
  status s = status::done;
  {
    const window_unlock_guard out(w);
    const auto over = [&]() noexcept {
      const window_guard in(w);
      return (result = run.advance(w)) != status::not_yet;
    };
    s = w.ctx->wait({.until = over, .fails_if = [&]() noexcept { return run.failed(w); }});
  }
  if (s == status::done) return run.conclude(w, result);
  run.give_up(w, s);
  return s;
}

fence_run::fence_run(window_core& w, assertion promises, bool among_neighbors, bool apart) noexcept
    : promises_(promises), among_neighbors_(among_neighbors), apart_(apart), before_(w.access) {
  RMA_ASSERT(w.locks_open == 0 && !w.exposed && is_assertion(promises));
  issue_before_finish(w);
  fence_state& f = w.fences;
  broken_ = has(promises, no_precede) && w.used_since_fence();
  w.fence_used = false;
  // A fence without any wait has no number: ranks may be any number of such fences ahead of each other.
  const bool alone = has(promises, no_precede) && has(promises, no_succeed);
  std::uint32_t& number = among_neighbors ? f.neighbor_number : f.number;
  number_ = alone ? number : ++number;
  if (!among_neighbors && !alone) {
    f.arrived.clear(number_ + 2);
    f.opened.clear(number_ + 2);
  }
  if (!apart) return;
  w.close_all();
  set_access(w, access_epoch::closing);
  w.allow_locks(false);
}

/// Small operations to neighbors are sent with the message that announces the fence to them. Other fences have no such
/// message for operations by handlers: acknowledgements confirm these.
void fence_run::issue_before_finish(window_core& w) noexcept {
  if (!among_neighbors_ || has(promises_, no_precede)) return issue_scheduled(w, -1);
  const std::vector<int>& notified = w.fences.neighbor_targets;
  for (const int target : std::vector<int>(w.dirty)) {
    const bool is_notified = std::find(notified.begin(), notified.end(), target) != notified.end();
    is_notified ? issue_all_but_aggregates(w, target) : issue_scheduled(w, target);
  }
}

fence_phase fence_run::next(const window_core& w) const noexcept {
  const auto of_design = [&]() noexcept {
    if (among_neighbors_) return after_neighbors(phase_, promises_);
    switch (w.fence) {
      case fence_kind::def: return after_def(phase_, promises_);
      case fence_kind::imm_naive: return after_imm_naive(phase_, promises_);
      case fence_kind::imm_opt: return after_imm_opt(phase_, promises_);
      case fence_kind::imm_ri: return after_imm_ri(phase_, promises_, leaves_barrier_out(w));
      default: return after_placed(phase_, promises_);
    }
  };
  RMA_ASSERT(phase_ != fence_phase::over);
  const fence_phase then = of_design();
  RMA_ASSERT(then != fence_phase::begin && then != phase_);
  return then;
}

/// Notes a failure. Failed transfers concern only this rank, and do not end the fence, which the others take part in.
/// Other failures end it.
void fence_run::take(status s) noexcept {
  RMA_ASSERT(s != status::not_yet && s != status::posted);
  if (s != status::done && result_ == status::done) result_ = s;
}

status fence_run::advance(window_core& w) noexcept {
  RMA_ASSERT(phase_ != fence_phase::over);
  for (;;) {
    const status s = step(w);
    if (s == status::not_yet) return s;
    take(s);
    if (s != status::done && s != status::transfer_failed) return s;
    RMA_ASSERT(due_.empty() || phase_ == fence_phase::count);  // all announcements have been sent
    phase_ = next(w);
    if (phase_ == fence_phase::over) break;
    enter(w);
  }
  return broken_ ? status::wrong_epoch : result_;
}

status fence_run::conclude(window_core& w, status s) noexcept {
  if (phase_ == fence_phase::over) {
    end(w);
  } else {
    give_up(w, s);
  }
  return s;
}

void fence_run::enter(window_core& w) noexcept {
  switch (phase_) {
    case fence_phase::finish: enter_finish(w); break;
    case fence_phase::complete: enter_complete(w); break;
    case fence_phase::count:
      enter_count(w);
      w.fences.counts->start(number_);
      break;
    case fence_phase::issue: enter_issue(w); break;
    case fence_phase::barrier: w.fences.barrier.start(*w.team, id_of_collectives(w)); break;
    case fence_phase::flags: enter_flags(w); break;
    default: break;
  }
}

status fence_run::step(window_core& w) noexcept {
  RMA_ASSERT(phase_ != fence_phase::over);
  RMA_ASSERT(due_.empty() || phase_ == fence_phase::finish || phase_ == fence_phase::count ||
             phase_ == fence_phase::issue);
  RMA_ASSERT(phase_ != fence_phase::count || w.fences.counts != nullptr);
  switch (phase_) {
    case fence_phase::finish:
    case fence_phase::issue: return announce(w);
    case fence_phase::complete: return complete_dirty(w);
    case fence_phase::count:
      if (const status s = w.fences.counts->state(); s != status::done) return s;
      expected_ = w.fences.counts->values()[0];
      if (w.fence != fence_kind::def && w.fences.no_put_promised && expected_ != 0) broken_ = true;
      return status::done;
    case fence_phase::arrive:
      if (!arrived(w)) return status::not_yet;
      return among_neighbors_ ? complete_dirty(w) : status::done;  // operations sent with the finish messages
    case fence_phase::barrier: return w.fences.barrier.state();
    case fence_phase::flags: return opened(w) ? status::done : status::not_yet;
    default: return status::done;
  }
}

void fence_run::say_finished(window_core& w, int target) noexcept {
  const fence_news news = among_neighbors_ ? fence_news::neighbor_finish : fence_news::finish;
  const fence_header header{w.id, static_cast<std::uint32_t>(news), number_};
  if (issue_with_rider(w, target, {message::fence, std::as_bytes(std::span(&header, 1))})) return;
  const std::lock_guard guard(w.ctx->lock());
  send_fence_news(w, target, news, number_);
}

void fence_run::enter_finish(window_core& w) noexcept {
  RMA_ASSERT(due_.empty());
  if (among_neighbors_) {
    due_ = w.fences.neighbor_targets;
    return;
  }
  for (const int target : w.fences.channels) {
    target_state& state = w.state_of(target);
    if (!std::exchange(state.finish_due, false)) {
      trust_order(w, target);  // the immediates imply it
      continue;
    }
    ++state.immediates;  // counted like an immediate
    if (writes_before_messages(w, target) && state.queued.load() == 0) {
      trust_order(w, target);
      say_finished(w, target);
    } else {
      ask_placed(w, target);
      due_.push_back(target);
    }
  }
}

/// Notifies the targets that are due, when all operations to them are complete.
status fence_run::announce(window_core& w) noexcept {
  status worst = status::done;
  while (!due_.empty()) {
    const int target = due_.back();
    const status s = try_complete_issued(w, target);
    if (s == status::not_yet) {
      take(worst);
      return s;
    }
    if (s != status::done) worst = s;
    if (s != status::done && s != status::transfer_failed) break;
    due_.pop_back();
    say_finished(w, target);
  }
  return worst;
}

void fence_run::enter_complete(window_core& w) noexcept {
  if (has(promises_, no_precede) && w.held_count != 0) {
    const access_epoch was = w.access;
    set_access(w, access_epoch::fence);
    take(issue_deferred(w, -1, nullptr));
    set_access(w, was);
  }
  for (const int target : w.dirty) {
    if (among_neighbors_ && writes_before_messages(w, target)) trust_order(w, target);
    ask_placed(w, target);  // asks all before it waits
  }
}

status fence_run::complete_dirty(window_core& w) noexcept {
  status worst = status::done;
  for (std::size_t i = w.dirty.size(); i-- > 0;) {  // complete targets leave the list
    const status s = try_complete_issued(w, w.dirty[i]);
    if (s != status::done && s != status::not_yet) worst = s;
  }
  if (worst != status::done && worst != status::transfer_failed) return worst;
  if (!w.dirty.empty()) {
    take(worst);
    return status::not_yet;
  }
  if (has(promises_, no_precede)) {  // operations that violate the assertion are not counted
    for (const int target : std::exchange(w.fences.channels, {})) {
      target_state& state = w.state_of(target);
      state.channel = state.finish_due = false;
      state.immediates = 0;
    }
  }
  return worst;
}

void fence_run::enter_count(window_core& w) noexcept {
  RMA_ASSERT(!among_neighbors_ && due_.empty());
  fence_state& f = w.fences;
  const auto size = static_cast<std::size_t>(w.size());
  if (f.counts == nullptr) f.counts = std::make_unique<reduce_scatter>(*w.team, id_of_collectives(w));
  const std::span<std::uint32_t> counts = f.counts->values();
  std::ranges::fill(counts, 0U);
  const auto count_for = [&](int target) -> std::uint32_t& {
    return counts[(static_cast<std::size_t>(target) + size - static_cast<std::size_t>(w.team->rank)) % size];
  };
  for (const int target : std::exchange(f.channels, {})) {
    target_state& state = w.state_of(target);
    state.channel = false;
    const std::uint32_t notified = std::exchange(state.immediates, 0);
    if (w.fence != fence_kind::def) count_for(target) += notified;
  }
  if (w.fence != fence_kind::def) return;
  for (const int target : w.dirty) {  // this includes targets of held operations
    if (target == w.team->rank) continue;
    due_.push_back(target);
    count_for(target) = 1;
  }
}

void fence_run::enter_issue(window_core& w) noexcept {
  const access_epoch was = w.access;
  set_access(w, access_epoch::fence);
  std::vector<int> flagged;
  take(issue_deferred(w, -1, &flagged));
  set_access(w, was);
  std::erase_if(due_, [&](int t) { return std::find(flagged.begin(), flagged.end(), t) != flagged.end(); });
  for (const int target : std::exchange(w.fences.channels, {})) {
    target_state& state = w.state_of(target);
    state.channel = state.finish_due = false;
  }
  for (const int target : due_) ask_placed(w, target);
}

bool fence_run::arrived(window_core& w) noexcept {
  int missing = 0;
  if (!among_neighbors_) return w.fences.arrived.at(number_) >= expected_;
  return all_heard(w, &target_news::neighbor_finished, w.fences.neighbor_origins, number_, missing);
}

void fence_run::enter_flags(window_core& w) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  if (among_neighbors_) {
    for (const int origin : w.fences.neighbor_origins) send_fence_news(w, origin, fence_news::neighbor_open, number_);
    return;
  }
  for (int i = 1; i < w.size(); ++i) send_fence_news(w, (w.team->rank + i) % w.size(), fence_news::open, number_);
}

bool fence_run::opened(window_core& w) noexcept {
  int missing = 0;
  if (!among_neighbors_) return w.fences.opened.at(number_) + 1 >= static_cast<std::uint32_t>(w.size());
  return all_heard(w, &target_news::neighbor_opened, w.fences.neighbor_targets, number_, missing);
}

status fence_run::failed(window_core& w) noexcept {
  if (const status s = w.revocation(); s != status::done) return s;
  int missing = -1;
  if (among_neighbors_) {
    const fence_state& f = w.fences;
    if (phase_ == fence_phase::arrive)
      (void)all_heard(w, &target_news::neighbor_finished, f.neighbor_origins, number_, missing);
    if (phase_ == fence_phase::flags)
      (void)all_heard(w, &target_news::neighbor_opened, f.neighbor_targets, number_, missing);
  } else {
    if (const status s = w.team->lost_member(); s != status::done) return s;
    if (phase_ == fence_phase::barrier) missing = w.fences.barrier.awaited();
  }
  if (missing < 0 || !w.ctx->gone(missing)) return status::done;
  w.ctx->set_last_failed(missing);
  return status::peer_failed;
}

void fence_run::give_up(window_core& w, status why) noexcept {
  if (phase_ == fence_phase::count) w.fences.counts->give_up(why);
  if (phase_ == fence_phase::barrier) w.fences.barrier.give_up(why);
  if (!apart_) return;
  set_access(w, before_);
  w.allow_locks(before_ == access_epoch::none);
}

/// Opens the next epoch, if there is one.
void fence_run::end(window_core& w) noexcept {
  RMA_ASSERT(phase_ == fence_phase::over && due_.empty() && w.dirty.empty());
  full_fence();
  w.fences.no_put_promised = has(promises_, no_put);
  if (!among_neighbors_ && w.fence == fence_kind::def) fence_is_over(w, number_);
  w.close_all();
  w.access_group.clear();
  if (has(promises_, no_succeed)) {
    set_access(w, access_epoch::none);
    w.allow_locks(true);
    return;
  }
  w.allow_locks(false);
  if (among_neighbors_) {
    set_access(w, access_epoch::neighbors);
    w.access_group = w.fences.neighbor_targets;
    for (const int target : w.access_group) {
      if (target_view* const t = w.view_at(target)) window_core::open(*t);
    }
    return;
  }
  set_access(w, access_epoch::fence);
  if (w.fence != fence_kind::def) w.open_all();  // operations to be held must not be inlined
}

}  // namespace rma::detail
