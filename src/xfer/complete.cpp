// SPDX-License-Identifier: Apache-2.0
/// \file
/// Completion of the engine's pending operations.
#include "xfer/complete.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {

namespace {

/// True if no pending operation to the target uses this rank's memory any more.
bool is_back(const target_state& state) noexcept {
  return state.queued.load() == 0 && state.fabric_pending.load() == 0 &&
         (state.peer == nullptr || state.peer->operations_done.load() >= state.last_operation);
}

bool is_over(const target_state& state, const far_target* far) noexcept {
  return is_back(state) && (far == nullptr || !far->unplaced);
}

const far_target* as_far(const window_core& w, int target, const target_state& state) noexcept {
  return w.is_far(target) ? static_cast<const far_target*>(&state) : nullptr;
}

/// The first unreported failure of this target, else s.
status report(window_core& w, int target, target_state& state, status s) noexcept {
  if (s == status::done && state.fabric_failed.load() != 0) {
    const std::lock_guard guard(w.ctx->lock());
    s = static_cast<status>(-static_cast<int>(state.fabric_failed.load()));
    state.fabric_failed.store(0);
    state.failures = 0;
    ++state.reports;
  }
  if (s == status::done && state.peer != nullptr) {
    if (const std::uint32_t seen = state.peer->malformed_notices.load(); seen != state.malformed_notices) {
      state.malformed_notices = seen;
      s = status::transfer_failed;
    }
  }
  if (s == status::peer_failed && state.peer != nullptr) {  // sent messages will not be acknowledged
    const std::lock_guard guard(w.ctx->lock());
    w.team->rt->ops->end_sent(*state.peer);
  }
  if (s == status::peer_failed && state.queued.load() != 0) {
    const std::lock_guard guard(w.ctx->lock());
    w.team->rt->ops->end_waiting(state, s);
  }
  if (s == status::peer_failed || s == status::transfer_failed) w.ctx->set_last_failed(w.world_rank(target));
  return s;
}

/// Reports like `report`, and clears the target's state: nothing is pending any more, or it will never complete.
status conclude(window_core& w, int target, target_state& state, status s) noexcept {
  RMA_ASSERT(state.dirty && !w.dirty.empty());
  s = report(w, target, state, s);
  state.dirty = false;
  state.fetches = false;
  if (w.dirty.back() == target) {
    w.dirty.pop_back();
  } else {
    std::erase(w.dirty, target);
  }
  RMA_ASSERT(std::ranges::find(w.dirty, target) == w.dirty.end());  // it was in the list only once
  return s;
}

/// Waits until `over`; `go_on` tests the same, and may post operations needed for it.
template <class Over, class GoOn>
status await(window_core& w, int target, const target_state& state, Over over, GoOn go_on) noexcept {
  if (state.fabric_pending.load() != 0) {
    const std::lock_guard guard(w.ctx->lock());
    if (w.ctx->ready_soon(over)) return status::done;
  }
  return w.ctx->wait({.until = go_on, .peer = w.world_rank(target)});
}

}  // namespace

status complete_target(window_core& w, int target) noexcept {
  issue_scheduled(w, target);
  return complete_issued(w, target);
}

status complete_issued(window_core& w, int target) noexcept {
  target_state& state = w.state_of(target);
  if (!state.dirty) return status::done;
  if (w.gathered.wait_for(target)) copy_gathered(w);
  const far_target* const far = as_far(w, target, state);
  const auto over = [&]() noexcept { return is_over(state, far); };
  if (far != nullptr && far->unplaced) ask_placed(w, target);
  const status s = await(w, target, state, over, [&]() noexcept {
    ask_placed(w, target);
    return over();
  });
  return conclude(w, target, state, s);
}

bool complete_plain(window_core& w, int target) noexcept {
  if (target != w.last_fabric_target || w.last_fabric_state == nullptr || w.may_hold) return false;
  if (w.dirty.empty() || w.dirty.back() != target) return false;
  far_target& far = *w.last_fabric_state;
  if (!far.plain || far.held == 0 || far.unplaced || far.epoch != nullptr) return false;
  {
    const std::lock_guard guard(w.ctx->lock());
    if (!w.ctx->ready_soon([&far]() noexcept { return is_back(far); })) return false;
  }
  if (far.fabric_failed.load() != 0 ||
      (far.peer != nullptr && far.peer->malformed_notices.load() != far.malformed_notices))
    return false;
  far.dirty = false;
  far.fetches = false;
  w.dirty.pop_back();
  return true;
}

bool only_writes(window_core& w, int target) noexcept {
  if (w.gathered.wait_for(target)) return false;
  const target_state& state = w.state_of(target);
  if (state.queued.load() != 0 || state.scheduled.operations != 0) return false;
  const bool fetches = state.fetches && state.fabric_pending.load() != 0;
  return !fetches && (state.peer == nullptr || state.peer->operations_done.load() >= state.last_operation);
}

status complete_followed(window_core& w, int target) noexcept {
  if (w.is_far(target)) w.far(target).unplaced = false;
  return complete_target(w, target);
}

status complete_locally(window_core& w, int target) noexcept {
  issue_scheduled(w, target);
  target_state& state = w.state_of(target);
  if (!state.dirty) return status::done;
  if (!w.is_far(target) || !w.far(target).unplaced) return complete_target(w, target);
  const auto back = [&]() noexcept { return is_back(state); };
  const status s = await(w, target, state, back, back);
  return s == status::peer_failed ? conclude(w, target, state, s) : report(w, target, state, s);
}

status try_complete_target(window_core& w, int target) noexcept {
  issue_scheduled(w, target);
  return try_complete_issued(w, target);
}

status try_complete_issued(window_core& w, int target) noexcept {
  target_state& state = w.state_of(target);
  if (!state.dirty) return status::done;
  if (w.gathered.wait_for(target)) copy_gathered(w);
  const far_target* const far = as_far(w, target, state);
  ask_placed(w, target);
  if (is_over(state, far)) return conclude(w, target, state, status::done);
  if (!w.ctx->gone(w.world_rank(target))) return status::not_yet;
  (void)w.ctx->progress();  // it may have come before the news did
  return conclude(w, target, state, is_over(state, far) ? status::done : status::peer_failed);
}

void mark_issued(window_core& w, issued_mark& mark) noexcept {
  const target_state& state = w.state_of(mark.target);
  mark.set = state.queued.load() == 0;
  mark.posted = state.posted_count;
  mark.messages = state.peer == nullptr ? 0 : state.last_operation;
}

status issued_state(window_core& w, const issued_mark& mark) noexcept {
  target_state& state = w.state_of(mark.target);
  const auto is_over = [&]() noexcept {
    if (state.peer != nullptr && state.peer->operations_done.load() < mark.messages) return false;
    if (state.fabric_pending.load() == 0) return true;
    const std::lock_guard guard(w.ctx->lock());
    const auto first = std::ranges::find_if(state.under_way, [](const operation_record& op) { return !op.by_message; });
    return first == state.under_way.end() || first->number > mark.posted;
  };
  const bool is_gone = w.ctx->gone(w.world_rank(mark.target));
  if (is_over()) return report(w, mark.target, state, status::done);
  if (!is_gone) return status::not_yet;
  (void)w.ctx->progress();  // it may have come before the news did
  return conclude(w, mark.target, state, is_over() ? status::done : status::peer_failed);
}

namespace {

/// Waits for reads from the target: the fabric writes their data here, and cannot be stopped. Their completion needs no
/// lock of the target.
void await_reads(window_core& w, int target) noexcept {
  const target_state& state = w.state_of(target);
  if (!state.fetches || state.fabric_pending.load() == 0) return;
  (void)w.ctx->wait(
      {.until = [&state]() noexcept { return state.fabric_pending.load() == 0; }, .peer = w.world_rank(target)});
}

}  // namespace

void leave_results(window_core& w, int target) noexcept {
  if (target < 0) {
    for (const int t : std::vector<int>(w.dirty)) leave_results(w, t);
    for (const int t : w.deferred) leave_results(w, t);
    return;
  }
  if (w.gathered.target == target) w.gathered.count = 0;
  {
    const std::lock_guard guard(w.ctx->lock());
    target_state& state = w.state_of(target);
    const hold_reason why = state.held.empty() ? hold_reason::none : state.held.front().held;
    if (why == hold_reason::gather || why == hold_reason::unlock) drop_held(w, state);
    if (state.epoch != nullptr) state.epoch->count = 0;
    drop_scheduled(w, state);
    w.team->rt->ops->cancel_waiting(state);
    w.team->rt->ops->drop_results(state);
  }
  await_reads(w, target);
}

status complete_promised(window_core& w, int target) noexcept {
  const target_state& state = w.state_of(target);
  if (promised_are_over(state)) return status::done;
  const int peer = w.world_rank(target);
  const status s = w.ctx->wait({.until = [&state]() noexcept { return promised_are_over(state); }, .peer = peer});
  if (s == status::peer_failed) w.ctx->set_last_failed(peer);
  return s;
}

status complete_all(window_core& w) noexcept {
  status result = status::done;
  issue_scheduled(w, -1);
  for (const int target : w.dirty) ask_placed(w, target);  // asks all targets before it waits
  while (!w.dirty.empty()) {
    const status s = complete_target(w, w.dirty.back());
    if (s != status::done) result = s;
  }
  return result;
}

}  // namespace rma::detail
