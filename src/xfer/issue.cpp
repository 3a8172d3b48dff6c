// SPDX-License-Identifier: Apache-2.0
/// \file
/// The general path of every operation: check it, choose a protocol, run it, raise its signal.
#include <algorithm>
#include <cstring>

#include "datatype/layout_node.hpp"
#include "rma/detail/aggregate_ops.hpp"
#include "rma/detail/window_ops.hpp"
#include "rma/ranks.hpp"
#include "rma/request.hpp"
#include "window/attached_ranges.hpp"
#include "xfer/complete.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/protocols.hpp"
#include "xfer/remote.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

void find_target(window_core& w, int target, checked_operation& o) noexcept {
  o.peer = w.world_rank(target);
  const int slot = w.team->node_index(target);
  if (slot < 0) {
    o.far = &w.far(target);
    o.state = o.far;
  } else {
    o.state = &w.states[w.index_of(target)];
    o.block = w.block_at(slot);
  }
}

std::uint8_t held(const window_core& w, int target, const checked_operation& o) noexcept {
  return o.far != nullptr ? o.far->held : w.views[w.index_of(target)].held;
}

/// True if the open epoch admits operations to this target at once.
bool is_open(const window_core& w, int target, const checked_operation& o) noexcept {
  return w.terms.open || held(w, target, o) != 0;
}

status describe_extent(const window_core& w, const operation_args& a, checked_operation& o) noexcept {
  o.args = &a;
  o.contiguous = a.origin_layout == nullptr && a.target_layout == nullptr && a.result_layout == nullptr;
  o.bytes = o.contiguous ? a.bytes : a.target_layout->bytes();
  if (o.bytes > static_cast<std::uint64_t>(PTRDIFF_MAX)) return status::bad_size;
  if (!o.contiguous) {
    o.target = a.target_layout;
    o.origin = a.origin_layout;
    o.result = a.result_layout;
    if (o.result == nullptr && a.kind == call::get_accumulate) return status::bad_argument;
    const bool origin_counts = a.kind != call::get_accumulate || a.op != operation::no_op;
    if (origin_counts && o.origin->bytes() != o.bytes) return status::bad_size;
    if (o.result != nullptr && o.result->bytes() != o.bytes) return status::bad_size;
  }
  const bool overflows = __builtin_mul_overflow(a.displacement, w.unit, &o.offset);
  return overflows || o.offset > static_cast<std::uint64_t>(PTRDIFF_MAX) ? status::out_of_window : status::done;
}

status check_range(window_core& w, int target, const checked_operation& o) noexcept {
  if (o.far != nullptr && !o.far->known) [[unlikely]] {
    if (w.ctx->wide() == nullptr) return status::unreachable;
    far_target* found = nullptr;
    if (const status s = find_far(w, target, found); s != status::done) return s;
  }
  if (w.kind == call::create_dynamic) return status::done;  // its table of attached ranges is checked instead
  const std::uint64_t limit = o.far != nullptr ? o.far->bytes : o.block->identity.bytes;
  const std::ptrdiff_t lower = o.lower();
  const std::ptrdiff_t upper = o.upper();
  if (lower < 0 && o.offset < static_cast<std::uint64_t>(-lower)) return status::out_of_window;
  const std::uint64_t end = upper < 0 ? 0 : static_cast<std::uint64_t>(upper);
  return o.offset > limit || end > limit - o.offset ? status::out_of_window : status::done;
}

/// Checks that the operator and the element type exist and can be combined. Both may be any number in run-time typed
/// calls.
[[gnu::always_inline]] inline status check_types(const operation_args& a) noexcept {
  if (a.type <= element::u64 && a.op <= operation::no_op) [[likely]]
    return status::done;  // integers have all operators but those of pairs
  const bool swap_fits = a.type <= element::u64;
  const bool fits = a.kind == call::compare_and_swap ? swap_fits : defined_for(a.op, a.type);
  return fits ? status::done : status::bad_type;
}

/// True if the offset suits a pair whose parts are aligned, which is less than an adapter needs.
bool is_aligned_pair(const window_core& w, element type, std::uint64_t offset) noexcept {
  return is_pair(type) && rma::bytes_of(type) == 8 && w.mode != accumulate_mode::direct && offset % 4 == 0;
}

/// Checks that the range consists of whole, aligned elements.
[[gnu::always_inline]] inline status check_alignment(const window_core& w, element type, std::uint64_t offset,
                                                     std::uint64_t bytes) noexcept {
  const std::uint64_t e = rma::bytes_of(type);
  if ((bytes & (e - 1)) != 0) return status::bad_type;  // an element's size is a power of two
  if ((offset & (std::min<std::uint64_t>(e, 8) - 1)) == 0) [[likely]]
    return status::done;
  return is_aligned_pair(w, type, offset) ? status::done : status::misaligned;
}

/// Checks that layouts select whole elements, and that those of the target are aligned.
status check_layouts(const window_core& w, const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  const layout_grain there = layout_internals::grain(*o.target);
  const std::uint64_t first = o.offset + static_cast<std::uint64_t>(there.first);
  if (const status s = check_alignment(w, a.type, first | there.distances, o.bytes); s != status::done) return s;
  const std::size_t here = a.origin == nullptr ? 0 : layout_internals::grain(*o.origin).lengths;
  return ((there.lengths | here) & (rma::bytes_of(a.type) - 1)) != 0 ? status::bad_type : status::done;
}

status check(window_core& w, const operation_args& a, checked_operation& o) noexcept {
  if (w.blocked_by.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (const status s = usable(w); s != status::done) return s;
  }
  if (a.target < 0 || a.target >= w.size()) return status::bad_rank;
  find_target(w, a.target, o);
  const bool open = is_open(w, a.target, o);
  if (!open && !w.epochs->permits(w, a.target)) return status::wrong_epoch;
  o.admitted = open && !w.terms.asks && o.state->epoch == nullptr;
  if (const status s = describe_extent(w, a, o); s != status::done) return s;
  if (a.signal >= 0 && static_cast<unsigned>(a.signal) >= w.hints.signals) return status::bad_argument;
  if (o.atomic()) {  // also without data, so that invalid numbers of operators or types are never looked up
    if (const status s = check_types(a); s != status::done) return s;
  }
  if (o.bytes == 0) return status::done;
  if (const status s = check_range(w, a.target, o); s != status::done) return s;
  if (!o.atomic()) return status::done;
  return o.contiguous ? check_alignment(w, a.type, o.offset, o.bytes) : check_layouts(w, o);
}

/// Reads a word that its owner may be changing; the caller checks afterwards if it did.
std::uint64_t shared_value(const std::uint64_t& word) noexcept {
  return load_value<std::uint64_t>(reinterpret_cast<const std::byte*>(&word));
}

/// Does find_range for a rank of this node, in its table.
attachment find_near_attached(const window_core& w, int target, std::uint64_t first, std::uint64_t bytes) noexcept {
  const window_block* const block = w.identity_of(target);
  const std::byte* const segment = w.board->segment(static_cast<std::size_t>(w.team->node_index(target)));
  for (;;) {
    const std::uint64_t version = block->table.version.load();
    if ((version & 1) != 0) continue;
    const auto* const table = reinterpret_cast<const attachment*>(segment + shared_value(block->table.offset));
    const std::uint64_t count = shared_value(block->table.count);
    const auto range_at = [table](std::uint64_t i) noexcept {
      return attachment{shared_value(table[i].address), shared_value(table[i].bytes), {}};
    };
    const attachment found = find_range(count, range_at, first, bytes);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (block->table.version.load() == version) return found;
  }
}

/// Does the same for a rank of another node; the region is empty if only the target's handler can access it.
status find_far_attached(window_core& w, int target, std::uint64_t first, std::uint64_t bytes,
                         fabric::region_key& region) noexcept {
  far_target& far = w.far(target);
  if (const status s = find_far_table(w, target, far); s != status::done) return s;
  const auto range_at = [&far](std::uint64_t i) noexcept { return far.table[i]; };
  const attachment found = find_range(far.table.size(), range_at, first, bytes);
  if (found.bytes == 0) return status::out_of_window;
  region = found.wide;
  return status::done;
}

/// Finds the region of an operation on a dynamic window in the target's table.
status find_attached(window_core& w, int target, const checked_operation& o, fabric::region_key& region) noexcept {
  const std::uint64_t first = o.offset + static_cast<std::uint64_t>(o.lower());
  const std::uint64_t bytes = static_cast<std::uint64_t>(o.upper() - o.lower());
  if (w.is_far(target)) return find_far_attached(w, target, first, bytes, region);
  const attachment range = find_near_attached(w, target, first, bytes);
  if (range.bytes == 0) return status::out_of_window;
  region = {range.address, range.bytes, 0};
  return status::done;
}

status locate(window_core& w, const checked_operation& o, placement& at) noexcept {
  at.region = &at.attached;
  const int target = o.args->target;
  if (w.kind == call::create_dynamic) {
    const int slot = w.team->node_index(target);
    at.mapped =
        target == w.team->rank || (w.intranode && slot >= 0 && w.board->same_process(static_cast<std::size_t>(slot)));
    const status s = find_attached(w, target, o, at.attached);  // base stays 0: offsets are addresses
    at.registered = at.attached.bytes != 0;
    return s;
  }
  if (o.far != nullptr) {
    at.registered = o.far->reachable;
    at.region = &o.far->region;
    return status::done;
  }
  const target_view* const t = w.view_at(target);
  at.base = t != nullptr ? t->base : nullptr;
  at.mapped = at.base != nullptr;
  at.region = o.atomic() && is_by_adapter(w.mode) ? &o.block->identity.wide : &o.block->region;
  return status::done;
}

/// True if run_plain may be able to carry it out.
bool is_last_fabric_target(const window_core& w, const operation_args& a) noexcept {
  return w.last_fabric_state != nullptr && a.target == w.last_fabric_target && !w.may_hold &&
         w.last_fabric_state->epoch == nullptr;
}

}  // namespace

attachment attached_at(const window_core& w, int target, std::uint64_t address) noexcept {
  if (!w.is_far(target)) return find_near_attached(w, target, address, 1);
  const auto far = w.far_targets.find(target);
  if (far == w.far_targets.end()) return {};
  for (const attachment& each : far->second->table) {
    if (lies_in(each, address, 1)) return each;
  }
  return {};
}

fabric::region_key known_region(const window_core& w, const checked_operation& o) noexcept {
  const int target = o.args->target;
  if (w.kind == call::create_dynamic) {
    const attachment range = attached_at(w, target, o.offset + static_cast<std::uint64_t>(o.lower()));
    return o.far != nullptr ? range.wide : fabric::region_key{range.address, range.bytes, 0};
  }
  if (o.far != nullptr) return o.far->region;
  return o.atomic() && is_by_adapter(w.mode) ? o.block->identity.wide : o.block->region;
}

status check_atomic(const window_core& w, const operation_args& a, std::uint64_t offset, std::uint64_t bytes) noexcept {
  const status s = check_types(a);
  return s != status::done ? s : check_alignment(w, a.type, offset, bytes);
}

namespace {

/// Holds the operation until its epoch admits it.
[[gnu::cold]] status put_off(window_core& w, checked_operation& o, const admission& answer) noexcept {
  o.choose("deferred", answer.why);
  const std::lock_guard guard(w.ctx->lock());
  hold(w, o, answer.reason);
  return status::posted;
}

/// Raises the signal of an operation that is complete. Not inlined: few operations have one.
[[gnu::noinline, gnu::cold]] status raise_signal(window_core& w, const checked_operation& o,
                                                 request_node** request) noexcept {
  issue_scheduled(w, o.args->target);
  if (is_behind_others(o)) return hold_signal(w, o, request);
  notify(w, o.args->target, counter_kind::signal, static_cast<std::uint32_t>(o.args->signal));
  return status::done;
}

/// Carries out a checked operation: asks its epoch for admission if necessary, chooses a protocol, starts it, and
/// raises its signal if the protocol does not. `counted`: it counts in the bytes of the epoch.
status carry_out(window_core& w, checked_operation& o, request_node** request, bool counted) noexcept {
  const operation_args& a = *o.args;
  placement at;
  if (o.bytes != 0) {
    if (const status s = locate(w, o, at); s != status::done) {
      w.epochs->refused(w, a.target);
      return s;
    }
  }
  if (!o.admitted) [[unlikely]] {
    const admission answer = w.epochs->admit(w, o, request != nullptr);
    if (answer.refusal != status::done) return answer.refusal;
    if (!counted) o.state->epoch_bytes += o.bytes;
    if (answer.reason != hold_reason::none) return put_off(w, o, answer);
    if (w.schedule.on() && o.bytes != 0) {
      if (const status s = schedule(w, at, o, request != nullptr); s != status::not_supported) return s;
    }
  } else if (!counted) {
    o.state->epoch_bytes += o.bytes;
  }
  if (o.bytes != 0) {
    const bool behind = is_behind_others(o);
    if (behind) [[unlikely]]
      (void)w.ctx->progress();  // lets waiting operations proceed, so that a stream of them does not fill memory
    const status s = run_protocol(w, at, o, request);
    if (o.far == nullptr) mark_stored(w.views[w.index_of(a.target)]);
    if (s != status::done) {  // if it is posted, the last message carries the signal
      if (behind) [[unlikely]]
        w.team->rt->ops->keep_bounded();
      return s;
    }
  }
  return a.signal < 0 ? status::done : raise_signal(w, o, request);
}

/// The general path. `counted`: it counts in the bytes of the epoch.
[[gnu::noinline]] status issue_any(window_core& w, const operation_args& a, request_node** request, bool counted,
                                   bool aggregated = false) noexcept {
  if (a.target == no_rank) [[unlikely]]
    return usable(w);
  checked_operation o;
  o.aggregated = aggregated;
  const entry_scope in(w, a, o);
  if (w.needs_entry_scope && is_last_fabric_target(w, a)) {
    counted = true;
    w.last_fabric_state->epoch_bytes += a.bytes;
    o.args = &a;
    o.bytes = a.bytes;
    o.choose(o.atomic() ? "device" : "fabric", "a plain operation on another node");
    if (has_plain_form(a.kind)) {
      if (const status s = run_plain(w, a, request != nullptr); s != status::not_supported) return s;
    }
    o.choose("none", "refused");
  }
  status may = check(w, a, o);
  if (may == status::done && w.ctx->deaths() != 0 && w.ctx->dead(o.peer)) {
    w.ctx->set_last_failed(o.peer);
    may = status::peer_failed;
  }
  if (may != status::done) {
    w.refused_op = a.op;
    w.refused_type = a.type;
    w.epochs->refused(w, a.target);
    return may;
  }
  if (o.bytes == 0) o.choose("none", "no data");
  return carry_out(w, o, request, counted);
}

}  // namespace

// It is separate from the general path, whose registers and stack would cost the most frequent operations a tenth of
// their instructions.
status issue(window_view& view, const operation_args& a, request_node** request) noexcept {
  if (is_freed(view)) return status::window_freed;
  window_core& w = core_of(view);
  if (a.target_layout != nullptr && run_plain_layouts(w, a)) return status::done;
  if (a.target == w.last_handler_target.target && a.target >= 0) {
    if (const status s = run_plain_promised(w, a, request); s != status::not_supported) return s;
  }
  if (w.gathered.count != 0) copy_gathered(w);
  const bool counted = !w.needs_entry_scope && is_last_fabric_target(w, a);
  if (counted) {
    w.last_fabric_state->epoch_bytes += a.bytes;
    if (has_plain_form(a.kind)) {
      if (const status s = run_plain(w, a, request != nullptr); s != status::not_supported) return s;
    }
  }
  return issue_any(w, a, request, counted);
}

status issue_aggregated(window_view& view, const operation_args& a) noexcept {
  if (is_freed(view)) return status::window_freed;
  window_core& w = core_of(view);
  if (w.gathered.count != 0) copy_gathered(w);
  return issue_any(w, a, nullptr, false, true);
}

status issue_held(window_core& w, operation_record& op) noexcept {
  operation_args args;
  checked_operation o = recall(w, w.state_of(op.target), op, args);
  status s = status::peer_failed;
  {
    const entry_scope in(w, args, o);
    if (w.ctx->deaths() != 0 && w.ctx->dead(o.peer)) {
      w.ctx->set_last_failed(o.peer);
    } else {
      o.admitted = o.put_off = true;
      s = carry_out(w, o, nullptr, true);
    }
  }
  const std::lock_guard guard(w.ctx->lock());
  if (o.record != nullptr) w.team->rt->ops->free_operation(op);
  return s;
}

status issue_and_wait(window_view& view, operation_args&& a) noexcept {
  a.by_value = true;
  // Data of puts are in messages, in a copy, or at the target; fetched data may need a wait.
  request_node* node = nullptr;
  const status s = issue(view, a, a.kind == call::put ? nullptr : &node);
  if (node == nullptr) return s == status::posted ? status::done : s;
  const status over = wait_request(node);
  if (node != nullptr) end_failed(node, over);
  return over;
}

namespace {

/// Increments a counter in memory that is mapped here.
void notify_mapped(window_core& w, window_block& there, int target, counter_kind kind, std::uint32_t index) noexcept {
  if (kind == counter_kind::signal) {
    w.array<word64>(there, w.layout.signals_at)[index].fetch_add(1);
  } else {
    epoch_counts& notified = w.notified[w.index_of(target)];
    const bool is_post = kind == counter_kind::post;
    const std::size_t at = is_post ? w.layout.posts_at : w.layout.completions_at;
    w.array<word32>(there, at)[w.index_of(w.team->rank)].publish(is_post ? ++notified.posts : ++notified.completions);
  }
  w.ring_waiters(target);
}

}  // namespace

void notify_locked(window_core& w, int target, counter_kind kind, std::uint32_t index) noexcept {
  RMA_ASSERT(w.ctx->lock().is_taken());
  if (window_block* const there = w.block_of(target); there != nullptr)
    return notify_mapped(w, *there, target, kind, index);
  w.ctx->send_record(w.world_rank(target), message::notify,
                     notify_header{w.id, static_cast<std::uint32_t>(kind), index});
}

void notify(window_core& w, int target, counter_kind kind, std::uint32_t index) noexcept {
  if (window_block* const there = w.block_of(target); there != nullptr)
    return notify_mapped(w, *there, target, kind, index);
  const std::lock_guard guard(w.ctx->lock());
  notify_locked(w, target, kind, index);
}

}  // namespace rma::detail
