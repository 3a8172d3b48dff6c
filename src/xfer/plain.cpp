// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocols "fabric" and "device" for the most frequent operations between nodes: contiguous, without a signal, to the
/// last target used, in an epoch that admits them; a put or get that only a flush completes (the fabric has to read a
/// put's value at once), or a fetched value that is waited for. It takes one check of all conditions, one lock, and one
/// call of the fabric. All other operations, and those without room, use the general path (issue.cpp).
#include <cstring>
#include <mutex>

#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

std::uint64_t word_at(const void* from) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, word_bytes);
  return word;
}

[[gnu::cold]] void trace_plain(engine& e, operation_record& op, const window_core& w, const operation_args& a) {
  checked_operation o;
  o.args = &a;
  o.peer = w.world_rank(a.target);
  o.bytes = a.bytes;
  o.choose("fabric", "a plain operation on another node");
  e.trace_operation(op, w, o);
}

/// Posts a put or get that only a flush completes.
status post_one(window_core& w, far_target& far, std::uint64_t offset, const operation_args& a) noexcept {
  context& ctx = *w.ctx;
  engine& e = *w.team->rt->ops;
  fabric::network& network = *ctx.wide();
  const fabric::capabilities& caps = network.caps();
  const bool write = a.kind == call::put;
  if (a.bytes > (a.by_value ? caps.inline_bytes_max : caps.transfer_bytes_max)) return status::not_supported;
  const fabric::local_slice local{write ? const_cast<void*>(a.origin) : a.result, a.bytes};
  const fabric::remote_slice remote{far.region.address + offset, a.bytes};
  const int peer = w.world_rank(a.target);
  const std::lock_guard guard(ctx.lock());
  operation_record& op = e.new_operation();
  status s = status::retry_queue_full;  // the result for a stream of puts when it has filled the queue
  (void)ctx.ready_soon([&]() noexcept {
    s = write ? network.write(peer, {&local, 1}, far.region, {&remote, 1}, token_of(op))
              : network.read(peer, {&local, 1}, far.region, {&remote, 1}, token_of(op));
    return s != status::retry_queue_full;
  });
  if (s != status::posted) {
    e.free_operation(op);
    return s == status::done ? s : status::not_supported;
  }
  op.detached = true;
  e.track(op, far, write);
  if (w.trace != nullptr) [[unlikely]]
    trace_plain(e, op, w, a);
  if (write && caps.write_means != fabric::write_completion::placed) far.unplaced = true;
  mark_dirty(w, a.target, far);
  ctx.count(counter::operations_fabric);
  return s;
}

/// Fetches a value, with an operation posted by `post(peer, operation)`.
template <class Post>
status fetch(window_core& w, int target, Post&& post) noexcept {
  context& ctx = *w.ctx;
  engine& e = *w.team->rt->ops;
  const int peer = w.world_rank(target);
  std::unique_lock guard(ctx.lock());
  operation_record& op = e.new_operation();
  const status posted = post(peer, op);
  if (posted != status::posted) {
    e.free_operation(op);
    return posted == status::done ? posted : status::not_supported;
  }
  ctx.count(counter::operations_fabric);
  const status s = e.wait_posted(guard, op, peer);
  if (!ok(s)) ctx.set_last_failed(peer);
  if (op.over.load() != 0) {
    e.free_operation(op);
  } else {
    op.detached = true;  // the job was aborted
  }
  return s;
}

status get_value(window_core& w, const far_target& far, std::uint64_t offset, const operation_args& a) noexcept {
  const fabric::local_slice local{a.result, a.bytes};
  const fabric::remote_slice remote{far.region.address + offset, a.bytes};
  if (a.bytes > w.ctx->wide()->caps().transfer_bytes_max) return status::not_supported;
  return fetch(w, a.target, [&](int peer, operation_record& op) noexcept {
    return w.ctx->wide()->read(peer, {&local, 1}, far.region, {&remote, 1}, token_of(op));
  });
}

bool is_device_word(const window_core& w, std::uint64_t offset, const operation_args& a) noexcept {
  return w.mode == accumulate_mode::direct && a.bytes == word_bytes && offset % word_bytes == 0 &&
         (a.type == element::u64 || a.type == element::i64);
}

status fetch_and_add(window_core& w, const far_target& far, std::uint64_t offset, const operation_args& a) noexcept {
  if (!is_device_word(w, offset, a) || (a.op != operation::sum && a.op != operation::no_op))
    return status::not_supported;
  const std::uint64_t operand = a.op == operation::sum ? word_at(a.origin) : 0;
  return fetch(w, a.target, [&](int peer, operation_record& op) noexcept {
    return w.ctx->wide()->fetch_add(peer, far.region, far.region.address + offset, operand,
                                    *static_cast<std::uint64_t*>(a.result), token_of(op));
  });
}

status swap_word(window_core& w, const far_target& far, std::uint64_t offset, const operation_args& a) noexcept {
  if (!is_device_word(w, offset, a)) return status::not_supported;
  return fetch(w, a.target, [&](int peer, operation_record& op) noexcept {
    return w.ctx->wide()->compare_swap(peer, far.region, far.region.address + offset, word_at(a.compare),
                                       word_at(a.origin), *static_cast<std::uint64_t*>(a.result), token_of(op));
  });
}

}  // namespace

status run_plain(window_core& w, const operation_args& a, bool requested) noexcept {
  if (a.target_layout != nullptr || a.origin_layout != nullptr) return status::not_supported;
  far_target& far = *w.last_fabric_state;
  if (w.blocked_by.load(std::memory_order_relaxed) != 0) return status::not_supported;
  if (far.queued.load(std::memory_order_relaxed) != 0) return status::not_supported;
  if (!far.plain || far.held == 0 || a.signal >= 0 || w.ctx->deaths() != 0) return status::not_supported;
  std::uint64_t offset = 0;
  if (a.bytes == 0 || !lies_within(far.bytes, w.unit, a, offset)) return status::not_supported;
  switch (a.kind) {
    case call::put: return requested ? status::not_supported : post_one(w, far, offset, a);
    case call::get:
      if (a.by_value) return get_value(w, far, offset, a);
      return requested ? status::not_supported : post_one(w, far, offset, a);
    case call::fetch_and_op: return a.by_value ? fetch_and_add(w, far, offset, a) : status::not_supported;
    case call::compare_and_swap: return a.by_value ? swap_word(w, far, offset, a) : status::not_supported;
    default: return status::not_supported;
  }
}

}  // namespace rma::detail
