// SPDX-License-Identifier: Apache-2.0
#include "xfer/shared_copy.hpp"

#include <cstring>

#include "core/assert.hpp"
#include "core/memory_access.hpp"
#include "datatype/string_copy.hpp"
#include "rma/detail/copy.hpp"

namespace rma::detail {

bool can_share(const window_core& w, const checked_operation& o) noexcept {
  return o.contiguous && w.ctx->network_of(w.world_rank(o.args->target)).caps().copies_by_cpu;
}

std::byte* buffer_of(const checked_operation& o) noexcept {
  return static_cast<std::byte*>(o.args->kind == call::put ? const_cast<void*>(o.args->origin) : o.args->result);
}

status copy_here(window_core& w, const fabric::region_key& region, const checked_operation& o, std::uint64_t first,
                 std::uint64_t bytes) noexcept {
  operation_args args = *o.args;
  args.signal = -1;  // raised once, when all parts are complete
  if (args.kind == call::put) {
    args.origin = buffer_of(o) + first;
  } else {
    args.result = buffer_of(o) + first;
  }
  checked_operation part = o;
  part.args = &args;
  part.record = nullptr;
  part.offset += first;
  part.bytes = bytes;
  const status s = run_fabric(w, region, part, nullptr);
  if (s == status::peer_failed) w.ctx->report_lost(w.world_rank(args.target));
  return s;
}

namespace {

/// From this size on it pays to wake the target, even for one copy: a copy by the kernel alone takes twice as long as
/// one by both.
constexpr std::uint64_t waking_bytes_min = std::uint64_t{256} << 10;

}  // namespace

operation_record* ask_for_copy(window_core& w, const checked_operation& o, share_header what) noexcept {
  const int to = w.world_rank(o.args->target);
  const std::lock_guard guard(w.ctx->lock());
  const fabric::delivery_guarantee target = o.bytes >= waking_bytes_min ? w.ctx->reserve_delivery_awake(to, sizeof what)
                                                                        : w.ctx->reserve_delivery(to, sizeof what);
  if (target != fabric::delivery_guarantee::certain) return nullptr;
  context::peer& peer = w.ctx->peer_of(to);
  engine& e = *w.team->rt->ops;
  operation_record* none = nullptr;
  operation_record& op = e.message_record_of(none, peer);
  op.detached = false;
  what.ticket = id_of(op);
  ++peer.operations_sent;
  w.ctx->send_record(to, message::share, what);
  w.ctx->count(counter::operations_handler);
  e.await_acknowledgement(op, peer, nullptr);
  return &op;
}

status wait_for_copy(window_core& w, const checked_operation& o, operation_record& copy) noexcept {
  const int to = w.world_rank(o.args->target);
  const status s = w.ctx->wait({.until = [&]() noexcept { return copy.over.load() != 0; }, .peer = to});
  if (!ok(s)) w.ctx->set_last_failed(to);
  const std::lock_guard guard(w.ctx->lock());
  if (copy.over.load() == 0) {
    copy.detached = true;
    return s;
  }
  const status result = copy.result;
  w.team->rt->ops->free_operation(copy);
  return ok(s) ? result : s;
}

namespace {

/// The address of a range in the source's segment, or null if it exceeds the segment.
std::byte* slot_of(const window_core& w, int source, std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::size_t index = w.board->index_of(source);
  if (index >= w.board->size()) return nullptr;
  const std::size_t all = w.board->segment_bytes();
  return bytes > all || offset > all - bytes ? nullptr : w.board->segment(index) + offset;
}

status serve(engine& e, int source, const share_header& h) noexcept {
  const window_core* const w = e.find(h.window);
  std::byte* const target = w == nullptr ? nullptr : local_range(*w, h.offset, h.bytes);
  if (target == nullptr) return status::out_of_window;
  if (h.kind == share_kind::staged_put || h.kind == share_kind::staged_get) {
    std::byte* const stage = slot_of(*w, source, h.buffer, h.bytes);
    if (stage == nullptr) return status::out_of_window;
    const bool writes = h.kind == share_kind::staged_put;
    if (!w->writable && !(writes ? can_write(target, h.bytes) : can_read(target, h.bytes)))
      return status::transfer_failed;
    if (writes) {
      copy_bytes(target, stage, h.bytes);
    } else {
      copy_to_reader(stage, target, h.bytes);
    }
    return status::done;
  }
  const fabric::local_slice here{target, h.bytes};
  const fabric::remote_slice there{h.buffer, h.bytes};
  const fabric::region_key region{h.buffer, h.bytes, 0};
  fabric::network& network = e.ctx().network_of(source);
  return h.kind == share_kind::put ? network.read(source, {&here, 1}, region, {&there, 1}, 0)
                                   : network.write(source, {&here, 1}, region, {&there, 1}, 0);
}

}  // namespace

void serve_share(engine& e, int source, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(e.ctx().is_guarded());
  e.ctx().defer_ack(source);
  share_header h{};
  if (payload.size() != sizeof h)
    return e.reject_malformed(source, message::share, payload, malformed_reason::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  if (h.kind > share_kind::staged_get)
    return e.reject_malformed(source, message::share, payload, malformed_reason::wrong_contents);
  if (serve(e, source, h) != status::done) e.ctx().send_record(source, message::refusal, h.ticket);
  e.ctx().acknowledge();  // the origin continues with this piece while the next one is copied here
}

}  // namespace rma::detail
