// SPDX-License-Identifier: Apache-2.0
#include "xfer/held_operations.hpp"

#include "rma/detail/window_ops.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t value_bytes_max = 64;

/// The origin's data are gone when the call returns. An accumulate's may be: its inlined form does not say.
bool is_value(const operation_args& a) noexcept {
  return a.by_value || (a.kind == call::accumulate && a.bytes <= value_bytes_max);
}

void keep_shapes(operation_record& op, const checked_operation& o, engine& e) {
  operation_shapes& shapes = e.shapes_of(op);
  shapes.target = *o.target;
  if (o.origin != nullptr) shapes.origin = *o.origin;
  if (o.args->kind == call::get) shapes.result = *o.origin;
  if (o.result != nullptr) shapes.result = *o.result;
}

}  // namespace

operation_record& hold(window_core& w, const checked_operation& o, hold_reason why) {
  const operation_args& a = *o.args;
  engine& e = *w.team->rt->ops;
  operation_record& op = e.new_operation();
  op.detached = true;
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
  op.held = why;
  if (!o.contiguous) keep_shapes(op, o, e);
  if (a.origin != nullptr && o.contiguous && is_value(a)) {
    const auto* const from = static_cast<const std::byte*>(a.origin);
    op.copy.assign(from, from + a.bytes);
    op.origin = op.copy.data();
  }
  e.trace_operation(op, w, o);
  o.state->held.push_back(op);
  ++w.held_count;
  return op;
}

checked_operation recall(window_core& w, operation_record& op, operation_args& args) noexcept {
  args.kind = op.kind;
  args.op = op.op;
  args.type = op.type;
  args.target = op.target;
  args.displacement = op.offset / std::max<std::size_t>(w.unit, 1);
  args.origin = op.origin;
  args.result = op.into;
  args.bytes = op.bytes;
  args.signal = op.signal;
  checked_operation o;
  o.args = &args;
  o.peer = w.world_rank(op.target);
  o.far = w.is_far(op.target) ? &w.far(op.target) : nullptr;
  o.state = &w.state_of(op.target);
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

operation_record& take_held(window_core& w, target_state& state) noexcept {
  operation_record& op = state.held.front();
  state.held.pop_front();
  op.held = hold_reason::none;
  --w.held_count;
  return op;
}

void drop_held(window_core& w, target_state& state) noexcept {
  while (!state.held.empty()) w.team->rt->ops->free_operation(take_held(w, state));
}

}  // namespace rma::detail
