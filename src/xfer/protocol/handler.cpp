// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "handler", origin's side: the operation is sent in messages, and the target's handler carries it out.
///
///   origin: pack blocks and data into messages ----> target: carry it out, reply fetched data, acknowledge
///
/// Messages of one origin to one target are handled in order, which gives accumulates their order. The origin's
/// buffer is copied into the message: local completion is immediate except for results.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/memory_access.hpp"
#include "datatype/copy.hpp"
#include "rma/detail/window_ops.hpp"
#include "xfer/complete.hpp"
#include "xfer/copy_trial.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/message_maker.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

constexpr unsigned looks_for_room = 200;  ///< a target without room for so long is dead or was preempted
constexpr std::uint64_t sends_per_look = 64;
constexpr std::uint64_t line_bytes = 64;
constexpr std::int64_t answer_lines_max = 186;  ///< three quarters of a ring, whose room is released in quarters
constexpr std::uint64_t under_way_bytes_max = std::uint64_t{16} << 20;  ///< limit of one operation, in either direction

void send(window_core& w, int to, context::peer& peer, message_maker& made, std::uint64_t ticket) noexcept {
  ++peer.operations_sent;
  if (made.layout_bytes() != 0) [[unlikely]] {
    if (made.names_layout()) peer.last_naming = peer.operations_sent;
    w.ctx->count(counter::layout_bytes, made.layout_bytes());
  }
  w.ctx->send(to, message::operation, made.head(ticket), made.data());
}

/// Tracks a sent operation, so that flushes and its request wait for it.
void keep_track(window_core& w, int target, target_state& state, int rank, context::peer& peer, operation_record& op,
                request_node** request) noexcept {
  engine& e = *w.team->rt->ops;
  w.ctx->count(counter::operations_handler);
  mark_sent(w, target, state, peer);
  e.await_acknowledgement(op, peer, &state);
  if (request != nullptr) *request = e.new_request(w, rank, op);
}

/// Updates this rank's own part of a window that handlers own, without messages.
status run_own(window_core& w, const checked_operation& o) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  const operation_args& a = *o.args;
  std::vector<std::byte> from(a.origin != nullptr && a.kind != call::get ? o.bytes : 0);
  std::vector<std::byte> old(o.fetches() ? o.bytes : 0);
  const Layout flat = Layout::contiguous<std::byte>(o.bytes);
  const auto shape = [&](const Layout* given) -> const Layout& { return o.contiguous ? flat : *given; };
  if (!from.empty()) pack(from.data(), a.origin, shape(o.origin), 0, o.bytes);
  std::uint64_t done = 0;
  status result = status::done;
  for_each_block(shape(o.target), [&](std::ptrdiff_t at, std::size_t bytes) {
    std::byte* const element = local_range(w, o.offset + static_cast<std::uint64_t>(at), bytes);
    const bool reads = a.kind == call::get || (from.empty() && a.kind != call::put);
    if (element == nullptr) {
      result = status::out_of_window;
    } else if (!w.writable && !(reads ? can_read(element, bytes) : can_write(element, bytes))) {
      result = status::transfer_failed;
    } else if (a.kind == call::compare_and_swap) {
      swap_owned(element, a.compare, from.data(), old.data(), bytes);
    } else if (a.kind == call::put) {
      std::memcpy(element, from.data() + done, bytes);
    } else if (a.kind == call::get) {
      std::memcpy(old.data() + done, element, bytes);
    } else {
      const status s = apply_owned(element, from.empty() ? nullptr : from.data() + done,
                                   old.empty() ? nullptr : old.data() + done, bytes, a.op, a.type);
      if (s != status::done) result = s;
    }
    done += bytes;
  });
  if (!old.empty()) unpack(a.result, old.data(), shape(a.kind == call::get ? o.origin : o.result), 0, o.bytes);
  return result;
}

/// Makes progress at intervals while a program only sends: replies must not fill their ring and then the target's
/// memory.
void look_for_answers(window_core& w, std::uint64_t sent) noexcept {
  if (sent % sends_per_look == 0) (void)w.ctx->progress();
}

/// Limits outstanding gets to the number whose replies fit into the ring from the target, with the next one and its
/// padding; otherwise the target would buffer and copy each reply. The target has guaranteed to reply; if it takes
/// long, it may buffer them.
void keep_pace(window_core& w, const context::peer& peer, std::uint64_t sent, std::uint64_t answer_bytes) noexcept {
  const auto lines = static_cast<std::int64_t>(1 + (sizeof(reply_header) + answer_bytes) / line_bytes);
  const auto many = [&]() noexcept {  // more operations may be complete than this thread has counted as sent
    const auto under_way = static_cast<std::int64_t>(sent - peer.operations_done.load(std::memory_order_relaxed));
    return (under_way + 2) * lines > answer_lines_max;
  };
  for (unsigned looks = 0; many() && looks < looks_for_room; ++looks) {
    if (w.ctx->progress() != 0) {
      looks = 0;
    } else {
      spin_pause();
    }
  }
}

/// Sends the rest of an operation, of which `sent_bytes` have been sent, as far as there is room: no message of this
/// rank waits, and the outstanding part of a large operation, which would fill the memory of both ends, is limited.
/// True if all of it has been sent. Uses the engine's scratch.
[[gnu::always_inline]] inline bool send_rest(window_core& w, const checked_operation& o, context::peer& peer,
                                             std::uint64_t ticket, std::uint64_t& sent_bytes) noexcept {
  const std::size_t bytes_max = message_bytes_of(o, peer.network->caps().message_bytes_max);
  RMA_ASSERT(sent_bytes == 0 || sent_bytes < o.bytes);
  const bool is_large = o.bytes > under_way_bytes_max;
  const std::uint64_t messages_max = is_large ? under_way_bytes_max / bytes_max : 0;
  engine& e = *w.team->rt->ops;
  message_maker made(w, o, bytes_max, e.scratch(bytes_max), pieces_of(o), sent_bytes);
  made.name(e.layouts());
  for (bool last = false; !last; sent_bytes = made.made_bytes()) {
    const bool full =
        is_large && peer.operations_sent - peer.operations_done.load(std::memory_order_relaxed) >= messages_max;
    if (peer.waiting_count() != 0 || full) return false;
    last = made.make();
    send(w, o.peer, peer, made, ticket);
  }
  return true;
}

status resume_handler(window_core& w, const checked_operation& o) noexcept {
  RMA_ASSERT(o.record != nullptr && o.record->by_message && o.state->peer != nullptr);
  operation_record& op = *std::exchange(o.record, nullptr);
  context::peer& peer = *o.state->peer;
  const bool all = send_rest(w, o, peer, ticket_of(o, op), op.posted);
  o.state->last_operation = peer.operations_sent;
  if (!all) return status::retry_queue_full;
  w.team->rt->ops->await_acknowledgement(op, peer, o.state);
  return status::posted;
}

/// Holds the rest of the operation until there is room.
status hold_rest(std::unique_lock<small_lock>& guard, window_core& w, const checked_operation& o, context::peer& peer,
                 operation_record& op, std::uint64_t sent_bytes, request_node** request) noexcept {
  engine& e = *w.team->rt->ops;
  mark_sent(w, o.args->target, *o.state, peer);
  e.track_message(op, *o.state);
  hold_for_room(w, o, op, sent_bytes, resume_handler);
  if (request != nullptr) *request = e.new_request(w, o.peer, op);
  w.ctx->count(counter::operations_handler);
  guard.unlock();
  // There is no copy of a long value.
  const bool is_long_value = o.args->by_value && o.bytes > copied_bytes_max;
  if (!is_long_value) return status::posted;
  const status s = await_room(w, o.args->target);
  return s == status::done || request != nullptr ? status::posted : s;
}

}  // namespace

[[gnu::noinline]] status run_handler(window_core& w, const checked_operation& o, request_node** request) noexcept {
  if (o.args->target == w.team->rank) return run_own(w, o);
  std::unique_lock guard(w.ctx->lock());
  context::peer& peer = w.ctx->peer_of(o.peer);
  operation_record& op = record_by_message(w, o, o.record, peer);
  std::uint64_t sent_bytes = 0;
  if (is_behind_others(o) || !send_rest(w, o, peer, ticket_of(o, op), sent_bytes))
    return hold_rest(guard, w, o, peer, op, sent_bytes, request);
  keep_track(w, o.args->target, *o.state, o.peer, peer, op, request);
  const std::uint64_t sent = peer.operations_sent;
  guard.unlock();
  look_for_answers(w, sent);
  return status::posted;
}

namespace {

/// True if the kernel's copy of so many pieces, half a microsecond each or more, takes longer than waking the target.
bool is_worth_a_wake(const checked_operation& o) noexcept {
  constexpr std::size_t pieces_min = 32;
  return !o.contiguous && std::max(o.origin->blocks(), o.target->blocks()) >= pieces_min;
}

}  // namespace

// If the target gives no further guarantee, the messages sent so far are carried out, and the caller repeats all of the
// operation by another protocol.
status run_promised(window_core& w, const checked_operation& o, request_node** request) noexcept {
  if (o.bytes > (o.contiguous ? operation_message_max : promised_bytes_max)) return status::not_supported;
  std::array<std::byte, operation_message_max> packed;
  message_maker made(w, o, operation_message_max, packed);
  bool last = made.make();
  if (!last && o.contiguous) return status::not_supported;
  const int to = w.world_rank(o.args->target);
  operation_record* op = nullptr;
  for (unsigned looks = 0; looks < looks_for_room; ++looks) {
    std::unique_lock guard(w.ctx->lock());
    context::peer& peer = w.ctx->peer_of(to);
    const fabric::delivery_guarantee target = is_worth_a_wake(o) ? w.ctx->reserve_delivery_awake(to, made.bytes())
                                                                 : w.ctx->reserve_delivery(to, made.bytes());
    if (target == fabric::delivery_guarantee::certain) {
      // Not the held record: the caller needs it again if the target gives no further guarantee.
      operation_record* none = nullptr;
      if (op == nullptr) op = &record_by_message(w, o, none, peer);
      send(w, to, peer, made, ticket_of(o, *op));
      const std::uint64_t sent = peer.operations_sent;
      if (last) {
        keep_track(w, o.args->target, *o.state, to, peer, *op, request);
      } else {
        mark_sent(w, o.args->target, *o.state, peer);
      }
      o.state->last_promised = sent;
      guard.unlock();
      look_for_answers(w, sent);
      if (o.fetches()) keep_pace(w, peer, sent, std::min<std::uint64_t>(o.bytes, operation_message_max));
      if (last) return status::posted;
      last = made.make();
      looks = 0;
      continue;
    }
    if (target != fabric::delivery_guarantee::no_room) break;
    guard.unlock();
    if (w.ctx->progress() == 0) spin_pause();
  }
  if (op != nullptr) {  // its messages will be acknowledged, but their results are discarded
    const std::lock_guard guard(w.ctx->lock());
    op->into = nullptr;
    w.team->rt->ops->await_acknowledgement(*op, w.ctx->peer_of(to), nullptr);
  }
  return status::not_supported;
}

namespace {

/// True if an open epoch admits operations to this target at once, and nothing else prevents the fast path.
bool is_plain(const window_core& w, const operation_args& a) noexcept {
  if (a.target_layout != nullptr || a.origin_layout != nullptr || a.signal >= 0 || w.ctx->deaths() != 0) return false;
  if (w.blocked_by.load(std::memory_order_relaxed) != 0 || w.last_handler_target.state->epoch != nullptr) return false;
  if (w.last_handler_target.state->queued.load(std::memory_order_relaxed) != 0) return false;
  return !w.terms.asks && (w.terms.open || w.last_handler_target.view->held != 0);
}

/// A message of one piece.
struct plain_message {
  operation_header head;
  target_rows piece;
};
static_assert(sizeof(plain_message) == sizeof(operation_header) + sizeof(target_rows));

/// True if the operation fits one message.
bool is_short(const operation_args& a) noexcept {
  return a.bytes != 0 && a.bytes <= (a.kind == call::compare_and_swap ? word_bytes : one_message_max);
}

/// The data after the message's head; `both` is room for the two operands of a swap.
std::span<const std::byte> data_of(const operation_args& a, std::span<std::byte, 2 * word_bytes> both) noexcept {
  if (a.kind == call::get || a.origin == nullptr) return {};
  if (a.kind != call::compare_and_swap) return {static_cast<const std::byte*>(a.origin), a.bytes};
  std::memcpy(both.data(), a.compare, a.bytes);
  std::memcpy(both.data() + a.bytes, a.origin, a.bytes);
  return both.first(2 * a.bytes);
}

/// Copies by the kernel, after the messages of this origin are complete. With `alone` it copies now, and does not
/// gather the copy with later ones. So does the first copy since the last flush, since no other may follow.
[[gnu::noinline]] status copy_plain(window_core& w, const operation_args& a, std::uint64_t offset,
                                    bool alone) noexcept {
  w.ctx->poll_occasionally();
  const near_target& near = w.last_handler_target;
  alone = alone || !has_stored(*near.view);
  if (!promised_are_over(*near.state)) {
    if (const status s = complete_promised(w, a.target); s != status::done) return s;
  }
  const bool write = a.kind == call::put;
  const gathered_copies& others = w.gathered;
  if (others.count != 0 && (alone || others.write != write)) copy_gathered(w);
  const fabric::local_slice here{write ? const_cast<void*>(a.origin) : a.result, a.bytes};
  const fabric::remote_slice there{near.region->address + offset, a.bytes};
  status s = status::posted;
  if (!alone) {
    gather_copy(w, near, a, offset);
    mark_dirty(w, a.target, *near.state);
    if (others.count == gathered_copies::count_max) copy_gathered(w);
  } else {
    const std::lock_guard guard(w.ctx->lock());
    s = write ? near.network->write(near.peer, {&here, 1}, *near.region, {&there, 1}, 0)
              : near.network->read(near.peer, {&here, 1}, *near.region, {&there, 1}, 0);
    if (s != status::done) return status::not_supported;  // the general path finds the reason
  }
  w.ctx->count(counter::operations_fabric);
  near.state->epoch_bytes += a.bytes;
  mark_stored(*near.view);
  return s;
}

}  // namespace

status run_plain_promised(window_core& w, const operation_args& a, request_node** request) noexcept {
  const near_target& near = w.last_handler_target;
  std::uint64_t offset = 0;
  if (!is_plain(w, a) || !is_short(a) || !lies_within(near.bytes, w.unit, a, offset)) return status::not_supported;
  const bool atomic = a.kind != call::put && a.kind != call::get;
  if (atomic && (w.mode != accumulate_mode::handler || check_atomic(w, a, offset, a.bytes) != status::done))
    return status::not_supported;
  if (!atomic && a.bytes > always_message_max) {
    const plain_way way = next_plain_way(w, a);
    if (way == plain_way::kernel) return copy_plain(w, a, offset, request != nullptr || a.by_value);
    if (way != plain_way::message) return status::not_supported;
  }
  if (w.gathered.wait_for(a.target)) copy_gathered(w);

  std::array<std::byte, 2 * word_bytes> both;
  const std::span<const std::byte> data = data_of(a, both);
  plain_message made{{w.id, 0, -1, 1, a.kind, a.op, a.type}, {offset, 0, static_cast<std::uint32_t>(a.bytes), 1}};
  std::unique_lock guard(w.ctx->lock());
  if (w.ctx->reserve_delivery(near.peer, sizeof made + data.size()) != fabric::delivery_guarantee::certain)
    return status::not_supported;
  context::peer& peer = w.ctx->peer_of(near.peer);
  engine& e = *w.team->rt->ops;
  operation_record* none = nullptr;
  operation_record& op = e.message_record_of(none, peer);
  if (a.kind != call::put && a.kind != call::accumulate) {
    e.expect_result(op, a.result, a.bytes, nullptr);
    made.head.ticket = id_of(op);
  }
  ++peer.operations_sent;
  w.ctx->send(near.peer, message::operation, std::as_bytes(std::span(&made, 1)), data);
  keep_track(w, a.target, *near.state, near.peer, peer, op, request);
  near.state->last_promised = near.state->last_operation;
  near.state->epoch_bytes += a.bytes;
  const std::uint64_t sent = peer.operations_sent;
  guard.unlock();
  look_for_answers(w, sent);
  if (a.kind == call::get) keep_pace(w, peer, sent, a.bytes);
  return status::posted;
}

namespace {

struct handler_row {
  static const char* refuses(const window_core&, const placement&, const checked_operation&) noexcept {
    return nullptr;
  }
  /// More than that of any other protocol.
  static std::int64_t estimate_ns(const window_core&, const checked_operation&) noexcept { return INT64_MAX - 1; }
  static status start(window_core& w, const placement&, const checked_operation& o, request_node** request) noexcept {
    return run_handler(w, o, request);
  }
  static const char* why(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    const char* const reason = only_by_handler(w, at, o);
    return reason != nullptr ? reason : "the fabric refused";
  }
};

const char* only_by_far_handler(const window_core& w, const placement& at, const checked_operation& o) noexcept {
  const fabric::capabilities& caps = w.ctx->wide()->caps();
  if (w.team->rt->ops->forced() == user_memory::handler) return "RMA_USER_MEMORY=handler";
  if (!at.registered) return "the target's memory is not registered";
  if (o.put_off && ends_epoch_by_message(o.contiguous, o.bytes, caps.message_bytes_max))
    return "data and synchronization in one message";
  const std::size_t most = o.contiguous  ? caps.handler_bytes_max
                           : o.fetches() ? caps.handler_pieces_bytes_max
                                         : std::max(caps.handler_pieces_bytes_max, caps.message_bytes_max);
  const bool scheme_is_asked_for = !o.contiguous && w.scheme_of_layouts != layout_scheme::automatic;
  return !caps.one_sided && o.bytes <= most && !scheme_is_asked_for ? "the fabric's writes need the target" : nullptr;
}

}  // namespace

const char* only_by_handler(const window_core& w, const placement& at, const checked_operation& o) noexcept {
  if (o.atomic()) return "the handlers own atomicity";
  if (o.far != nullptr) return only_by_far_handler(w, at, o);
  if (o.args->target == w.team->rank) return "this rank's own memory";
  if (is_behind_others(o)) return "behind others that wait for room";
  const fabric::capabilities& caps = w.ctx->network_of(o.peer).caps();
  const bool has_ways = caps.one_sided || caps.copies_by_cpu;  // if the kernel refuses, other protocols remain
  if (!has_ways) return "the fabric's writes need the target";
  return w.team->rt->ops->forced() == user_memory::handler ? "RMA_USER_MEMORY=handler" : nullptr;
}

const protocol handler_protocol{
    layout_scheme::automatic, "handler",       true, handler_row::refuses, handler_row::estimate_ns,
    handler_row::start,       handler_row::why};

}  // namespace rma::detail
