// SPDX-License-Identifier: Apache-2.0
/// \file
/// Active target epochs. Fence "placed": complete pending operations, then a barrier; the other designs are in
/// fence.cpp. Post/start/complete/wait: counters in the blocks of the involved ranks, O(group), without global
/// communication.
///
///   target:  post --(its posts at each origin +1)-->  ...  wait: from each origin as many completions as posts
///   origin:  start waits for that count; operations; complete --(its completions at each target +1)-->
#include <algorithm>

#include "core/assert.hpp"
#include "core/trace.hpp"
#include "rma/detail/word_ops.hpp"
#include "sync/epochs.hpp"
#include "sync/fence.hpp"
#include "sync/group.hpp"
#include "sync/merged_ends.hpp"
#include "window/window_core.hpp"
#include "xfer/complete.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/remote.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

/// True if all its ranks share memory, so that notifications are visible without progress of the network.
bool in_one_memory(const window_core& w) noexcept { return w.team->one_node && w.intranode; }

/// Blocks until other ranks have incremented the counters that `ready` tests.
template <class Ready, class Failed>
status wait_for_count(window_core& w, Ready ready, Failed failed) noexcept {
  const auto fails = [&]() noexcept {
    const status s = w.revocation();
    return s != status::done ? s : failed();
  };
  return w.ctx->wait(
      {.until = ready, .fails_if = fails, .woken_by = in_one_memory(w) ? wakes::memory : wakes::message});
}

status barrier(window_core& w) noexcept {
  team_core& team = *w.team;
  const auto fails = [&]() noexcept {
    const status s = w.revocation();
    return s != status::done ? s : team.lost_member();
  };
  if (in_one_memory(w)) {
    if (const status s = fails(); s != status::done) return s;
    const auto failed = [&]() noexcept {
      const status s = w.revocation();
      return s != status::done ? s : team.gone_member();
    };
    return w.barrier.arrive_and_wait(
        *w.ctx, [&team]() noexcept { team.ring_waiters(); }, failed);
  }
  return w.far_barrier.run(team, w.barrier_id, fails);
}

/// The number of the target's posts that this rank has consumed.
std::uint32_t& starts_of(window_core& w, int target) noexcept {
  return w.is_far(target) ? w.far(target).starts : w.notified[w.index_of(target)].starts;
}

/// Counts a post with no_check, for which no message arrives. The next post of a mapped rank counts it, too.
void take_for_posted(window_core& w, int target) noexcept {
  if (w.block_of(target) != nullptr) return;
  const std::lock_guard guard(w.ctx->lock());
  ++w.news[w.world_rank(target)].messages.posts;
}

/// The number of notifications from a mapped rank, in one of the block's two arrays.
std::uint32_t told_by(const window_core& w, std::size_t array_at, int rank) noexcept {
  return w.array<word32>(w.my_block(), array_at)[w.index_of(rank)].load();
}

std::uint32_t posts_from(window_core& w, int target) noexcept {
  if (w.block_of(target) != nullptr) return told_by(w, w.layout.posts_at, target);
  const std::lock_guard guard(w.ctx->lock());  // the lock is needed: the notifier may ring before this rank is asleep
  return w.news[w.world_rank(target)].messages.posts;
}

/// True if this origin has completed as often as this rank has posted to it. Each origin has its own count, so that
/// missing completions of a dead one do not delay others.
bool has_completed(window_core& w, int origin) noexcept {
  if (w.block_of(origin) != nullptr)
    return told_by(w, w.layout.completions_at, origin) == w.notified[w.index_of(origin)].posts;
  const std::lock_guard guard(w.ctx->lock());
  const message_counts& counts = w.news[w.world_rank(origin)].messages;
  return counts.completions == counts.posted;
}

/// True if all origins of this rank's post have completed.
bool all_completed(window_core& w) noexcept {
  return std::ranges::all_of(w.exposure_group, [&w](int origin) noexcept { return has_completed(w, origin); });
}

/// An origin that has gone without having completed, or -1.
int lost_origin(window_core& w) noexcept {
  const auto left_early = [&w](int r) noexcept { return w.ctx->gone(w.world_rank(r)) && !has_completed(w, r); };
  const auto at = std::ranges::find_if(w.exposure_group, left_early);
  return at == w.exposure_group.end() ? -1 : *at;
}

/// Waits until all have completed; with `only`, until it is certain if this origin has.
status await_completions(window_core& w, int only = -1) noexcept {
  const window_unlock_guard out(w);
  return wait_for_count(
      w, [&w, only]() noexcept { return only < 0 ? all_completed(w) : has_completed(w, only); },
      [&w]() noexcept {
        const int dead = lost_origin(w);
        if (dead < 0) return status::done;
        w.ctx->set_last_failed(w.world_rank(dead));
        return status::peer_failed;
      });
}

/// Blocks until the target has a post that is not consumed.
status await_post(window_core& w, int target) noexcept {
  const std::uint32_t wanted = starts_of(w, target) + 1;
  const int peer = w.world_rank(target);
  const window_unlock_guard out(w);
  const status s = wait_for_count(
      w, [&]() noexcept { return static_cast<std::int32_t>(posts_from(w, target) - wanted) >= 0; },
      [&]() noexcept { return w.ctx->gone(peer) ? status::peer_failed : status::done; });
  if (s == status::peer_failed) w.ctx->set_last_failed(peer);
  return s;
}

/// The result of a test without completion: `not_yet`, or the failure that makes further waiting useless.
status not_yet(const window_core& w) noexcept {
  const status s = w.revocation();
  return s == status::done ? status::not_yet : s;
}

/// Returns `done`, `peer_failed` or `not_yet`, after a round of progress. Earlier messages of a rank that has gone may
/// be in flight for half a second at most.
status exposure_state(window_core& w) noexcept {
  if (all_completed(w)) return status::done;
  w.ctx->take_news();
  (void)w.ctx->progress();
  if (const int dead = lost_origin(w); dead >= 0) {
    if (const status s = await_completions(w, dead); s != status::done) return s;
  }
  return all_completed(w) ? status::done : not_yet(w);
}

/// Notifies the targets, each together with the small operations held for it (figure 10.5), when all other operations
/// there are complete. The next call that completes the target reports failures of these messages.
status complete_with_aggregates(window_core& w) noexcept {
  status result = status::done;
  for (const int target : w.access_group) {
    issue_all_but_aggregates(w, target);
    ask_placed(w, target);
  }
  for (const int target : w.access_group) {
    if (const status s = complete_issued(w, target); s != status::done) result = s;
  }
  std::vector<int> fetched;
  for (const int target : w.access_group) {
    if (has_results_held(w, target)) fetched.push_back(target);
    complete_with_rider(w, target);
  }
  for (const int target : fetched) {
    if (const status s = complete_issued(w, target); s != status::done) result = s;
  }
  return result;
}

void end_access(window_core& w) noexcept {
  RMA_ASSERT(w.locks_open == 0);
  w.close_all();
  set_access(w, access_epoch::none);
  w.allow_locks(true);
}

}  // namespace

void issue_all_but_aggregates(window_core& w, int target) noexcept {
  w.block_of(target) == nullptr ? issue_apart(w, target) : issue_scheduled(w, target);
}

void complete_with_rider(window_core& w, int target) noexcept {
  const notify_header header{w.id, static_cast<std::uint32_t>(counter_kind::completion), 0};
  const rider end{message::notify, std::as_bytes(std::span(&header, 1))};
  if (!issue_with_rider(w, target, end)) notify(w, target, counter_kind::completion, 0);
}

status fence(window_view& view, assertion promises) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::fence);
  if (!is_assertion(promises)) return status::bad_argument;
  if (!may_fence(w)) return status::wrong_epoch;
  if (const status s = w.revocation(); s != status::done) return s;
  if (w.fence != fence_kind::placed) {
    fence_run run(w, promises, false, false);
    return run_to_end(w, run);
  }
  // A violated assertion is reported after the fence is complete: the other ranks take part in it, too.
  const bool broken = has(promises, no_precede) && w.used_since_fence();
  w.fence_used = false;
  // A failed transfer concerns only this rank: the others wait in the barrier.
  const status completed = complete_all(w);
  RMA_ASSERT(w.dirty.empty() && w.held_count == 0);
  if (completed != status::done && completed != status::transfer_failed) return completed;
  // Without operations before and after the fence there is nothing to order.
  if (!(has(promises, no_precede) && has(promises, no_succeed))) {
    const window_unlock_guard out(w);
    if (const status s = barrier(w); s != status::done) return s;
  }
  if (has(promises, no_succeed)) {
    if (w.access == access_epoch::fence) end_access(w);
  } else if (w.access == access_epoch::none) {
    set_access(w, access_epoch::fence);
    w.allow_locks(false);
    w.open_all();
  }
  return broken ? status::wrong_epoch : completed;
}

status post(window_view& view, const int* group, std::size_t count, assertion promises) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::post);
  w.refused_rank = -1;
  if (!is_assertion(promises)) return status::bad_argument;
  if (w.exposed || w.access == access_epoch::lock_all || w.locks_open != 0) return status::wrong_epoch;
  if (const status s = check_group(w, group, count); s != status::done) return s;
  if (w.access == access_epoch::fence) {  // an empty fence epoch ends here, as at a lock
    if (w.used_since_fence()) return status::wrong_epoch;
    end_access(w);
  }
  w.exposed = true;
  w.exposure_group.assign(group, group + count);
  for (const int origin : w.exposure_group) {
    const bool by_message = w.block_of(origin) == nullptr;
    if (by_message) {
      const std::lock_guard guard(w.ctx->lock());
      ++w.news[w.world_rank(origin)].messages.posted;
    }
    if (!has(promises, assertion::no_check)) {
      notify(w, origin, counter_kind::post, 0);
    } else if (!by_message) {
      ++w.notified[w.index_of(origin)].posts;  // the next post announces the number
    }
  }
  return status::done;
}

status start(window_view& view, const int* group, std::size_t count, assertion promises) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::start);
  w.refused_rank = -1;
  if (!is_assertion(promises)) return status::bad_argument;
  if (w.access == access_epoch::fence && !w.used_since_fence()) end_access(w);
  if (w.access != access_epoch::none || w.locks_open != 0) return status::wrong_epoch;
  if (const status s = check_group(w, group, count); s != status::done) return s;
  set_access(w, access_epoch::opening);
  w.allow_locks(false);
  const bool checked = !has(promises, assertion::no_check);
  for (std::size_t i = 0; checked && i < count; ++i) {
    if (const status s = await_post(w, group[i]); s != status::done) {
      end_access(w);
      return s;
    }
  }
  // Posts are consumed only now: a start that fails leaves those of the living to the next one.
  for (std::size_t i = 0; i < count; ++i) {
    ++starts_of(w, group[i]);
    if (!checked) take_for_posted(w, group[i]);
  }
  set_access(w, access_epoch::start);
  w.access_group.assign(group, group + count);
  for (const int target : w.access_group) {
    if (target_view* const t = w.view_at(target)) window_core::open(*t);
  }
  return status::done;
}

status complete(window_view& view) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::complete);
  if (w.access != access_epoch::start) return status::wrong_epoch;
  const bool aggregates = w.schedule.aggregate_bytes != 0;
  const status s = aggregates ? complete_with_aggregates(w) : complete_all(w);
  RMA_ASSERT(aggregates || (w.dirty.empty() && w.held_count == 0));
  for (const int target : w.access_group) {
    if (target_view* const t = w.view_at(target)) window_core::close(*t);
    if (!aggregates) notify(w, target, counter_kind::completion, 0);
  }
  w.access_group.clear();
  set_access(w, access_epoch::none);
  w.allow_locks(true);
  return s;
}

status wait(window_view& view) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::wait);
  if (!w.exposed) return status::wrong_epoch;
  const status s = await_completions(w);
  if (s == status::done || s == status::peer_failed || s == status::revoked) w.exposed = false;
  return s;
}

status test(window_view& view) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::test);
  if (!w.exposed) return status::wrong_epoch;
  const status s = exposure_state(w);
  if (s != status::not_yet) w.exposed = false;
  return s;
}

// ---- signals -------------------------------------------------------------------------------------------------------

namespace {

word64& signal_word(window_core& w, unsigned signal) noexcept {
  return w.array<word64>(w.my_block(), w.layout.signals_at)[signal];
}

bool take_signals(word64& signal, std::uint64_t count) noexcept {
  std::uint64_t found = signal.load();
  while (found >= count) {
    if (signal.compare_exchange(found, found - count)) return true;
  }
  return false;
}

/// Finds the first of them that has been raised so often; `which` is its position.
bool take_any(window_core& w, std::span<const unsigned> signals, std::uint64_t count, std::size_t& which) noexcept {
  for (std::size_t i = 0; i < signals.size(); ++i) {
    if (!take_signals(signal_word(w, signals[i]), count)) continue;
    which = i;
    return true;
  }
  return false;
}

/// The position of the first that the window does not have.
std::size_t first_unknown(const window_core& w, std::span<const unsigned> signals) noexcept {
  const auto unknown = [&w](unsigned signal) { return signal >= w.hints.signals; };
  return static_cast<std::size_t>(std::find_if(signals.begin(), signals.end(), unknown) - signals.begin());
}

/// The end of a signal's arrow; a signal does not say whose it is, the wait may.
[[gnu::cold]] void trace_take(const window_core& w, unsigned signal, std::uint64_t count, int from) noexcept {
  if (from < 0) return;
  w.trace->add_take({w.id, w.world_rank(from), w.ctx->rank(), signal}, count, w.ctx->around().now_ns());
}

/// Waits until `taken` is true; `from` is that of wait_signal.
template <class Taken>
status await_signals(window_core& w, int from, Taken taken) noexcept {
  const window_unlock_guard out(w);
  return wait_for_count(w, taken, [&]() noexcept {
    if (from < 0) return w.team->nobody_left();
    if (!w.ctx->gone(w.world_rank(from))) return status::done;
    w.ctx->set_last_failed(w.world_rank(from));
    return status::peer_failed;
  });
}

}  // namespace

status wait_signal(window_view& view, unsigned signal, std::uint64_t count, int from) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::wait_signal, from);
  if (signal >= w.hints.signals) return status::bad_argument;
  if (!is_rank_or_any(w, from)) return status::bad_rank;
  word64& counter = signal_word(w, signal);
  const status s = await_signals(w, from, [&]() noexcept { return take_signals(counter, count); });
  if (w.trace != nullptr && s == status::done) [[unlikely]]
    trace_take(w, signal, count, from);
  return s;
}

status test_signal(window_view& view, unsigned signal, std::uint64_t count) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::test_signal);
  if (signal >= w.hints.signals) return status::bad_argument;
  word64& counter = signal_word(w, signal);
  if (take_signals(counter, count)) return status::done;
  w.ctx->progress();
  return take_signals(counter, count) ? status::done : not_yet(w);
}

status wait_any_signal(window_view& view, std::span<const unsigned> signals, std::uint64_t count, int from,
                       std::size_t& which) noexcept {
  which = 0;
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::wait_signal, from);
  which = first_unknown(w, signals);
  if (which != signals.size()) return status::bad_argument;
  if (!is_rank_or_any(w, from)) return status::bad_rank;
  if (signals.empty()) return status::done;
  const status s = await_signals(w, from, [&]() noexcept { return take_any(w, signals, count, which); });
  if (w.trace != nullptr && s == status::done) [[unlikely]]
    trace_take(w, signals[which], count, from);
  return s;
}

status test_any_signal(window_view& view, std::span<const unsigned> signals, std::uint64_t count,
                       std::size_t& which) noexcept {
  which = 0;
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::test_signal);
  which = first_unknown(w, signals);
  if (which != signals.size()) return status::bad_argument;
  if (take_any(w, signals, count, which)) return status::done;
  w.ctx->progress();
  return take_any(w, signals, count, which) ? status::done : not_yet(w);
}

status wait_signal_until(window_view& view, unsigned signal, int from, const element_test& ready) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::wait_signal, from);
  if (signal >= w.hints.signals) return status::bad_argument;
  if (!is_rank_or_any(w, from)) return status::bad_rank;
  const word64& counter = signal_word(w, signal);
  return await_signals(w, from, [&]() noexcept {
    std::uint64_t found = counter.load();
    return ready(reinterpret_cast<const std::byte*>(&found));
  });
}

status set_signal(window_view& view, unsigned signal, std::uint64_t value, std::uint64_t& before) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::set_signal);
  if (signal >= w.hints.signals) return status::bad_argument;
  before = signal_word(w, signal).exchange(value);
  w.ring_waiters(w.team->rank);  // another thread of this rank may sleep for it
  return status::done;
}

std::uint64_t signal_value(const window_view& view, unsigned signal) noexcept {
  if (is_freed(view)) return 0;
  const window_core& w = core_of(view);
  return signal < w.hints.signals ? w.array<word64>(w.my_block(), w.layout.signals_at)[signal].load() : 0;
}

}  // namespace rma::detail
