// SPDX-License-Identifier: Apache-2.0
#include "xfer/gathered_copies.hpp"

#include <array>
#include <mutex>
#include <span>
#include <utility>

#include "core/assert.hpp"
#include "rma/detail/window_ops.hpp"
#include "window/window_core.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

/// Copies one operation by the kernel again, or by the target's handler if the kernel refuses.
status copy_alone(window_core& w, operation_record& op) noexcept {
  const fabric::region_key& region = w.identity_of(op.target)->region;
  operation_args args;
  const checked_operation o = recall(w, w.state_of(op.target), op, args);
  status s = run_fabric(w, region, o, nullptr);
  if (s == status::peer_failed) w.ctx->report_lost(o.peer);
  if (s == status::not_supported) s = run_handler(w, o, nullptr);
  const std::lock_guard guard(w.ctx->lock());
  if (o.record != nullptr) w.team->rt->ops->free_operation(op);
  return s;
}

}  // namespace

void gather_copy(window_core& w, const near_target& near, const operation_args& a, std::uint64_t offset) {
  gathered_copies& all = w.gathered;
  RMA_ASSERT(all.count < gathered_copies::count_max);
  RMA_ASSERT(all.count == 0 || (all.target == a.target && all.write == (a.kind == call::put)));
  all.target = a.target;
  all.write = a.kind == call::put;
  ++all.count;
  const std::lock_guard guard(w.ctx->lock());
  operation_record& op = w.team->rt->ops->new_operation();
  op.detached = true;
  op.origin = a.origin;
  op.into = static_cast<std::byte*>(a.result);
  op.bytes = a.bytes;
  op.offset = offset;
  op.target = a.target;
  op.signal = -1;
  op.kind = a.kind;
  op.held = hold_reason::gather;
  RMA_ASSERT(near.state->held.empty() || near.state->held.front().held == hold_reason::gather);
  near.state->held.push_back(op);
  ++w.held_count;
}

void copy_gathered(window_core& w) noexcept {
  gathered_copies& all = w.gathered;
  const std::uint32_t count = std::exchange(all.count, 0);
  RMA_ASSERT(count != 0 && count <= gathered_copies::count_max && all.target >= 0);
  target_state& state = w.state_of(all.target);
  const fabric::region_key& region = w.identity_of(all.target)->region;
  std::array<operation_record*, gathered_copies::count_max> taken;
  std::array<fabric::local_slice, gathered_copies::count_max> here;
  std::array<fabric::remote_slice, gathered_copies::count_max> there;
  {
    const std::lock_guard guard(w.ctx->lock());
    for (std::uint32_t i = 0; i < count; ++i) {
      operation_record& op = take_held(w, state);
      taken[i] = &op;
      here[i] = {all.write ? const_cast<void*>(op.origin) : op.into, op.bytes};
      there[i] = {region.address + op.offset, op.bytes};
    }
    const int peer = w.world_rank(all.target);
    fabric::network& network = w.ctx->network_of(peer);
    const std::span local(here.data(), count);
    const std::span remote(there.data(), count);
    const status s =
        all.write ? network.write(peer, local, region, remote, 0) : network.read(peer, local, region, remote, 0);
    if (s == status::done) {
      for (std::uint32_t i = 0; i < count; ++i) w.team->rt->ops->free_operation(*taken[i]);
      return;
    }
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const status s = copy_alone(w, *taken[i]);
    if (ok(s)) continue;
    const std::lock_guard guard(w.ctx->lock());
    w.state_of(all.target).fail(s);
  }
}

}  // namespace rma::detail
