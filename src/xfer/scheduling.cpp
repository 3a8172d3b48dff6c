// SPDX-License-Identifier: Apache-2.0
#include "xfer/scheduling.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/names.hpp"
#include "rma/detail/aggregate_ops.hpp"
#include "xfer/complete.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/operation_batch.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

constexpr std::uint32_t scheduled_max = 4096;  ///< operations held for one target; the next one issues the first
constexpr unsigned issued_at_once = 32;        ///< limit of those that one call issues: none takes long
constexpr std::uint32_t message_bytes_max = std::uint32_t{1} << 31;  ///< limit of the operations held to be aggregated

bool is_update(const operation_record& op) noexcept { return op.kind != call::get; }

/// True if its completion or its signal is awaited: it is issued now, after the held operations.
bool is_awaited(const checked_operation& o, bool requested) noexcept {
  return requested || o.args->signal >= 0 || (o.args->by_value && o.fetches());
}

/// True if the target's handler may carry it out together with others: it is small, and has few pieces.
bool may_aggregate(const window_core& w, const checked_operation& o) noexcept {
  if (o.atomic() && is_by_adapter(w.mode)) return false;
  const std::uint64_t most = o.aggregated ? batched_bytes_max : w.schedule.aggregate_bytes;
  if (o.bytes > std::min<std::uint64_t>(most, batched_bytes_max)) return false;
  const std::size_t pieces = batched_pieces(o.far != nullptr, o.contiguous ? nullptr : o.target);
  return pieces <= batched_pieces_max &&
         batched_bytes(o.args->kind, o.bytes, pieces) <= batch_bytes_of(w, o.args->target);
}

/// True if it is posted to the adapter together with others.
bool may_chain(const window_core& w, const checked_operation& o) noexcept {
  return o.aggregated && o.atomic() && o.contiguous && o.bytes <= batched_bytes_max &&
         w.mode == accumulate_mode::direct;
}

std::uint32_t message_bytes_of(const checked_operation& o) noexcept {
  return batched_bytes(o.args->kind, o.bytes, batched_pieces(o.far != nullptr, o.contiguous ? nullptr : o.target));
}

/// Moves the operations of the target's queue for which the predicate is true to `chosen`, the rest to `others`.
template <class Predicate>
void take_all(window_core& w, target_state& state, operation_record::queue& chosen, operation_record::queue& others,
              Predicate is_chosen) {
  const std::lock_guard guard(w.ctx->lock());
  while (!state.scheduled.held.empty()) {
    operation_record& op = take_scheduled(w, state);
    (is_chosen(op) ? chosen : others).push_back(op);
  }
}

/// Puts operations back into the target's queue.
void put_back(window_core& w, target_state& state, operation_record::queue& ops) {
  const std::lock_guard guard(w.ctx->lock());
  while (!ops.empty()) {
    operation_record& op = ops.front();
    ops.pop_front();
    RMA_ASSERT(op.held == hold_reason::none && op.state == nullptr);
    op.held = hold_reason::scheduled;
    state.scheduled.held.push_back(op);
    ++w.held_count;
    ++state.scheduled.operations;
  }
}

void issue_first(window_core& w, target_state& state, operation_record::queue& ops) noexcept {
  operation_record& op = ops.front();
  ops.pop_front();
  w.schedule.more_follow = !ops.empty();
  const int target = op.target;
  const status s = issue_held(w, op);
  if (ok(s)) return;
  const std::lock_guard guard(w.ctx->lock());
  mark_dirty(w, target, state);
  state.fail(s);
}

/// Issues one of each queue in turn, then the rest.
void issue_by_turns(window_core& w, target_state& state, operation_record::queue& first,
                    operation_record::queue& second) noexcept {
  while (!first.empty() || !second.empty()) {
    if (!first.empty()) issue_first(w, state, first);
    if (!second.empty()) issue_first(w, state, second);
  }
}

/// Issues in the orders of figures 10.3 and 10.4.
void issue_ordered(window_core& w, target_state& state, operation_record::queue& ops) noexcept {
  operation_record::queue gets, updates;
  const bool begins_with_get = !ops.empty() && !is_update(ops.front());
  while (!ops.empty()) {
    operation_record& op = ops.front();
    ops.pop_front();
    (is_update(op) ? updates : gets).push_back(op);
  }
  switch (w.schedule.order) {
    case schedule_order::interleave:
      begins_with_get ? issue_by_turns(w, state, gets, updates) : issue_by_turns(w, state, updates, gets);
      break;
    case schedule_order::gets_first_interleave: issue_by_turns(w, state, gets, updates); break;
    default:
      while (!gets.empty()) issue_first(w, state, gets);
      while (!updates.empty()) issue_first(w, state, updates);
      break;
  }
}

/// Issues the target's queue; operations to be aggregated only if `all`.
void issue_of(window_core& w, int target, bool all, const rider* end) noexcept {
  target_state& state = w.state_of(target);
  if (state.scheduled.held.empty()) return;
  operation_record::queue small, large;
  take_all(w, state, small, large, [](const operation_record& op) { return op.batched; });
  state.scheduled.operations = 0;
  const bool was_issuing = std::exchange(w.schedule.issuing, true);
  issue_ordered(w, state, large);
  if (all) {
    state.scheduled.message_bytes = 0;
    send_batches(w, target, state, small, end);
  } else {
    put_back(w, state, small);
  }
  w.schedule.issuing = was_issuing;
}

/// Takes operations from the front of the target's queue: as many as fill a message, and some of the others.
void take_first_few(window_core& w, int target, target_state& state, operation_record::queue& small,
                    operation_record::queue& large) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  scheduled_operations& queue = state.scheduled;
  std::uint32_t bytes = 0;
  for (unsigned apart = 0; !queue.held.empty() && apart < issued_at_once; --queue.operations) {
    const operation_record& first = queue.held.front();
    const std::uint32_t more = first.batched ? batched_bytes_of(w, first) : 0;
    if (bytes + more > batch_bytes_of(w, target)) return;
    bytes += more;
    queue.message_bytes -= more;
    if (!first.batched) ++apart;
    operation_record& op = take_scheduled(w, state);
    (op.batched ? small : large).push_back(op);
  }
}

/// Makes room in the target's queue. While many messages wait for room of the network, the queue grows instead, to the
/// limit of operations that wait: no caller waits before.
void issue_some(window_core& w, int target, target_state& state) noexcept {
  if (!has_room_for_batch(w, w.world_rank(target))) {
    const scheduled_operations& queue = state.scheduled;
    const bool fits = queue.operations < w.team->rt->ops->waiting_max() && queue.message_bytes < message_bytes_max;
    if (!fits) issue_scheduled(w, target);
    return;
  }
  operation_record::queue small, large;
  take_first_few(w, target, state, small, large);
  const bool was_issuing = std::exchange(w.schedule.issuing, true);
  issue_ordered(w, state, large);
  send_batches(w, target, state, small, nullptr);
  w.schedule.issuing = was_issuing;
}

/// The reason to hold it, or null.
const char* why_held(const window_core& w, const checked_operation& o, const char*& how) noexcept {
  if (may_aggregate(w, o)) {
    how = "aggregated";
    return o.aggregated ? "Window::aggregate" : w.schedule.why_aggregated;
  }
  if (may_chain(w, o)) {
    how = "chained";
    return "Window::aggregate";
  }
  how = name_of(w.schedule.order).data();
  return w.schedule.order == schedule_order::in_order ? nullptr : w.schedule.why_ordered;
}

}  // namespace

void choose_schedule(window_core& w) noexcept {
  scheduling& s = w.schedule;
  const settings& config = w.ctx->config();
  s.order = w.hints.schedule;
  if (s.order != schedule_order::automatic) {
    s.why_ordered = "Hints::schedule";
  } else {
    s.order = schedule_order::in_order;
    for (const schedule_order each :
         {schedule_order::interleave, schedule_order::gets_first, schedule_order::gets_first_interleave}) {
      if (config.is(knob::schedule, name_of(each))) s.order = each;
    }
  }
  s.aggregate_bytes = config.number(knob::aggregate);
  if (w.hints.aggregate != Hints::aggregate_by_setting) {
    s.aggregate_bytes = w.hints.aggregate;
    s.why_aggregated = "Hints::aggregate";
  }
  w.may_hold = w.terms.asks = s.on();
}

void begin_aggregate(window_view& view) noexcept {
  if (is_freed(view)) return;
  window_core& w = core_of(view);
  const window_guard in(w);
  w.schedule.handles = w.may_hold = w.terms.asks = true;
  w.last_handler_target.target = -1;
}

status end_aggregate(window_view& view, bool wait) noexcept {
  if (is_freed(view)) return status::window_freed;
  window_core& w = core_of(view);
  const entry_scope in(w, call::flush_local_all);
  issue_scheduled(w, -1);
  status result = status::done;
  if (!wait) return result;
  for (const int target : std::vector<int>(w.dirty)) {
    if (const status s = complete_locally(w, target); s != status::done) result = s;
  }
  return result;
}

status schedule(window_core& w, const placement& at, const checked_operation& o, bool requested) noexcept {
  if (w.schedule.issuing || at.mapped || o.args->target == w.team->rank) return status::not_supported;
  const char* how = "";
  const char* const why = why_held(w, o, how);
  target_state& state = *o.state;
  if (why == nullptr || is_awaited(o, requested) || state.queued.load() != 0) {
    // Puts and gets of one epoch are unordered, and their requests are not for held ones; atomic updates are ordered,
    // a signal comes after what was issued before, and while a call waits for a value, held operations go on.
    const bool comes_after = o.atomic() || o.args->signal >= 0 || (o.args->by_value && o.fetches());
    if (comes_after) issue_scheduled(w, o.args->target);
    return status::not_supported;
  }
  const bool aggregated = may_aggregate(w, o);
  const std::uint32_t bytes = aggregated ? message_bytes_of(o) : 0;
  const bool is_full = aggregated && state.scheduled.message_bytes + bytes > batch_bytes_of(w, o.args->target);
  // An update in a message of its own would overtake those that are held for aggregation.
  const bool would_overtake = o.atomic() && !aggregated && state.scheduled.message_bytes != 0;
  if (would_overtake) issue_scheduled(w, o.args->target);
  if (is_full || state.scheduled.operations >= scheduled_max) issue_some(w, o.args->target, state);
  const std::lock_guard guard(w.ctx->lock());
  checked_operation held = o;
  held.choose(how, why);
  hold(w, held, hold_reason::scheduled).batched = aggregated;
  mark_dirty(w, o.args->target, state);
  ++state.scheduled.operations;
  state.scheduled.message_bytes += bytes;
  return status::posted;
}

void issue_scheduled(window_core& w, int target) noexcept {
  if (!w.schedule.on() || w.schedule.issuing) return;
  if (target >= 0) return issue_of(w, target, true, nullptr);
  for (const int each : std::vector<int>(w.dirty)) issue_of(w, each, true, nullptr);
}

void issue_apart(window_core& w, int target) noexcept {
  if (w.schedule.on() && !w.schedule.issuing) issue_of(w, target, false, nullptr);
}

bool has_aggregates(window_core& w, int target) noexcept {
  return w.schedule.on() && w.state_of(target).scheduled.message_bytes != 0;
}

bool has_results_held(window_core& w, int target) noexcept {
  const target_state& state = w.state_of(target);
  return std::ranges::any_of(state.scheduled.held, [](const operation_record& op) { return op.into != nullptr; });
}

bool issue_with_rider(window_core& w, int target, const rider& end) noexcept {
  if (!has_aggregates(w, target)) return false;
  issue_of(w, target, true, &end);
  return true;
}

}  // namespace rma::detail
