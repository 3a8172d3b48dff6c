// SPDX-License-Identifier: Apache-2.0
#include "xfer/held_operations.hpp"

#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/assert.hpp"
#include "rma/detail/window_ops.hpp"
#include "xfer/complete.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t value_bytes_max = 64;

/// True if the origin's data may be gone when the call returns, so that they must be copied. This includes atomics,
/// whose inlined form does not tell. The caller of an operation with a long value waits until it is sent.
bool is_value(const operation_args& a, hold_reason why) noexcept {
  if (a.by_value) return why != hold_reason::room || a.bytes <= copied_bytes_max;
  return a.kind != call::put && a.bytes <= value_bytes_max;
}

void keep_shapes(operation_record& op, const checked_operation& o, engine& e) {
  operation_shapes& shapes = e.shapes_of(op);
  shapes.target = *o.target;
  if (o.origin != nullptr) shapes.origin = *o.origin;
  if (o.args->kind == call::get) shapes.result = *o.origin;
  if (o.result != nullptr) shapes.result = *o.result;
}

/// Stores the operation in the record, to be carried out later.
void fill(operation_record& op, const checked_operation& o, hold_reason why, engine& e) {
  RMA_ASSERT(op.held == hold_reason::none && why != hold_reason::none);
  const operation_args& a = *o.args;
  op.held = why;
  op.origin = a.origin;
  op.into = static_cast<std::byte*>(a.result);
  op.bytes = o.bytes;
  op.arrived = 0;
  op.offset = o.offset;
  op.target = a.target;
  op.signal = a.signal;
  op.kind = a.kind;
  op.op = a.op;
  op.type = a.type;
  if (!o.contiguous) keep_shapes(op, o, e);
  if (a.origin == nullptr || !o.contiguous) return;
  if (a.kind == call::compare_and_swap) {
    std::array<std::byte, 2 * word_bytes> both;
    std::memcpy(both.data(), a.origin, a.bytes);
    std::memcpy(both.data() + a.bytes, a.compare, a.bytes);
    op.origin = op.keep(both.data(), 2 * a.bytes);
  } else if (is_value(a, why)) {
    op.origin = op.keep(a.origin, a.bytes);
  }
}

}  // namespace

operation_record& hold(window_core& w, const checked_operation& o, hold_reason why) {
  engine& e = *w.team->rt->ops;
  operation_record::queue& queue = why == hold_reason::scheduled ? o.state->scheduled.held : o.state->held;
  RMA_ASSERT(queue.empty() || queue.front().held == why);
  operation_record& op = e.new_operation();
  op.detached = true;
  fill(op, o, why, e);
  e.trace_operation(op, w, o);
  queue.push_back(op);
  ++w.held_count;
  return op;
}

void hold_for_room(window_core& w, const checked_operation& o, operation_record& op, std::uint64_t posted,
                   resume_function resume) {
  target_state& state = *o.state;
  RMA_ASSERT(op.state == &state);
  RMA_ASSERT(state.held.empty() || state.held.front().held == hold_reason::room);
  fill(op, o, hold_reason::room, *w.team->rt->ops);
  op.posted = posted;
  op.resume = resume;
  state.held.push_back(op);
  state.window = &w;
  w.team->rt->ops->add_waiting(state);
}

namespace {

status resume_signal(window_core& w, const checked_operation& o) noexcept {
  operation_record& op = *std::exchange(o.record, nullptr);
  notify_locked(w, o.args->target, counter_kind::signal, static_cast<std::uint32_t>(o.args->signal));
  w.team->rt->ops->end_piece(op, status::done);
  return status::posted;
}

}  // namespace

status hold_signal(window_core& w, const checked_operation& o, request_node** request) noexcept {
  RMA_ASSERT(o.bytes == 0 && o.args->signal >= 0);
  std::unique_lock guard(w.ctx->lock());
  engine& e = *w.team->rt->ops;
  operation_record& op = e.record_of(o.record);
  e.track(op, *o.state, true);
  e.trace_operation(op, w, o);
  mark_dirty(w, o.args->target, *o.state);
  hold_for_room(w, o, op, 0, resume_signal);
  op.kind = call::put;  // a get without a result would be taken for one whose result was dropped
  return e.leave_operation(guard, op, w, o.peer, false, request);
}

status await_room(window_core& w, int target) noexcept {
  const target_state& state = w.state_of(target);
  const int peer = w.world_rank(target);
  const status s = w.ctx->wait({.until = [&state]() noexcept { return state.queued.load() == 0; }, .peer = peer});
  if (s == status::peer_failed) w.ctx->set_last_failed(peer);
  return s;
}

checked_operation recall(window_core& w, target_state& state, operation_record& op, operation_args& args) noexcept {
  RMA_ASSERT(op.target >= 0 && op.target < w.size());
  args.kind = op.kind;
  args.op = op.op;
  args.type = op.type;
  args.target = op.target;
  args.displacement = op.offset / std::max<std::size_t>(w.unit, 1);
  args.origin = op.origin;
  args.result = op.into;
  args.bytes = op.bytes;
  args.signal = op.signal;
  if (op.kind == call::compare_and_swap) args.compare = static_cast<const std::byte*>(op.origin) + op.bytes;
  checked_operation o;
  o.args = &args;
  o.peer = w.world_rank(op.target);
  o.far = w.is_far(op.target) ? static_cast<far_target*>(&state) : nullptr;
  o.state = &state;
  o.block = w.identity_of(op.target);
  o.offset = op.offset;
  o.bytes = op.bytes;
  o.contiguous = op.shapes == nullptr;
  o.record = &op;
  if (o.contiguous) return o;
  o.origin = args.origin_layout = &op.shapes->origin;
  o.target = args.target_layout = &op.shapes->target;
  if (op.kind == call::get_accumulate) o.result = args.result_layout = &op.shapes->result;
  return o;
}

namespace {

operation_record& take_first(window_core& w, operation_record::queue& queue) noexcept {
  RMA_ASSERT(!queue.empty() && w.held_count != 0);
  operation_record& op = queue.front();
  RMA_ASSERT(op.held != hold_reason::none && op.held != hold_reason::room);
  queue.pop_front();
  op.held = hold_reason::none;
  --w.held_count;
  return op;
}

}  // namespace

operation_record& take_held(window_core& w, target_state& state) noexcept { return take_first(w, state.held); }

operation_record& take_scheduled(window_core& w, target_state& state) noexcept {
  return take_first(w, state.scheduled.held);
}

void drop_scheduled(window_core& w, target_state& state) noexcept {
  while (!state.scheduled.held.empty()) w.team->rt->ops->free_operation(take_scheduled(w, state));
  state.scheduled.operations = state.scheduled.message_bytes = 0;
}

void take_all_held(window_core& w, target_state& state, operation_record::queue& into) noexcept {
  while (!state.held.empty()) into.push_back(take_held(w, state));
}

void drop_held(window_core& w, target_state& state) noexcept {
  while (!state.held.empty()) w.team->rt->ops->free_operation(take_held(w, state));
}

}  // namespace rma::detail
