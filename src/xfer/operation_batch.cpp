// SPDX-License-Identifier: Apache-2.0
#include "xfer/operation_batch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "core/assert.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/message_maker.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t batch_pieces_max = target_rows_max;
constexpr std::size_t unsent_max = 64;  ///< limit of messages to one target that wait for room

/// Collects operations; consecutive similar ones share a header.
class batch_maker {
 public:
  batch_maker(window_core& w, int peer) noexcept : w_(w), peer_(peer), bytes_max_(operation_message_max_to(w, peer)) {
    used_ = sizeof(batch_header);
  }

  [[nodiscard]] bool has_room(const operation_record& op) const noexcept {
    return used_ + group_bytes() + group_overhead + batched_bytes_of(w_, op) + rider_bytes_max <= bytes_max_;
  }
  [[nodiscard]] bool empty() const noexcept { return used_ == sizeof(batch_header) && rows_ == 0; }

  /// Adds an operation with a record of an operation by message.
  void add(const checked_operation& o, const operation_record& op) noexcept {
    const operation_args& a = *o.args;
    if (!o.contiguous) return add_pieces(o, op);
    const operation_header head{w_.id, ticket_of(o, op), -1, 0, a.kind, a.op, a.type};
    const bool alike = rows_ != 0 && rows_ < batch_pieces_max && head.ticket == 0 && head_.ticket == 0 &&
                       head.kind == head_.kind && head.op == head_.op && head.type == head_.type;
    if (!alike) end_group();
    head_ = head;
    RMA_ASSERT(rows_ < pieces_.size());
    pieces_[rows_++] = {o.offset, 0, static_cast<std::uint32_t>(o.bytes), 1};
    if (a.kind == call::compare_and_swap) append_data(a.compare, o.bytes);
    if (a.kind != call::get && a.origin != nullptr) append_data(a.origin, o.bytes);
  }

  /// Returns the message; `end` may be null.
  std::span<const std::byte> finish(const rider* end) noexcept {
    end_group();
    batch_header h{w_.id, 0, 0, 0};
    if (end != nullptr) {
      h.rider = static_cast<std::uint16_t>(end->kind);
      h.rider_bytes = static_cast<std::uint32_t>(end->payload.size());
      append(end->payload.data(), end->payload.size());
    }
    std::memcpy(room_.data(), &h, sizeof h);
    return std::span(room_).first(used_);
  }
  void clear() noexcept { used_ = sizeof(batch_header); }
  [[nodiscard]] int peer() const noexcept { return peer_; }

 private:
  void add_pieces(const checked_operation& o, const operation_record& op) noexcept {
    end_group();
    engine& e = *w_.team->rt->ops;
    message_maker made(w_, o, bytes_max_, e.scratch(bytes_max_), pieces_of(o));
    made.name(e.layouts());
    context::peer& peer = w_.ctx->peer_of(peer_);
    if (made.names_layout()) peer.last_naming = peer.operations_sent + 1;
    (void)made.make();  // makes all of it, since it is short
    w_.ctx->count(counter::layout_bytes, made.layout_bytes());
    const std::span<const std::byte> head = made.head(ticket_of(o, op)), data = made.data();
    const auto bytes = static_cast<std::uint32_t>(head.size() + data.size());
    append(&bytes, sizeof bytes);
    append(head.data(), head.size());
    append(data.data(), data.size());
  }
  static constexpr std::size_t group_overhead = sizeof(std::uint32_t) + sizeof(operation_header);

  [[nodiscard]] std::size_t group_bytes() const noexcept {
    return rows_ == 0 ? 0 : group_overhead + rows_ * sizeof(target_rows) + data_bytes_;
  }
  void append(const void* from, std::size_t bytes) noexcept {
    RMA_ASSERT(bytes <= bytes_max_ - used_);
    if (bytes == 0) return;  // `from` may be null
    std::memcpy(room_.data() + used_, from, bytes);
    used_ += bytes;
  }
  void append_data(const void* from, std::size_t bytes) noexcept {
    RMA_ASSERT(bytes <= data_.size() - data_bytes_);
    if (bytes == 0) return;
    std::memcpy(data_.data() + data_bytes_, from, bytes);
    data_bytes_ += bytes;
  }
  void end_group() noexcept {
    if (rows_ == 0) return;
    const auto bytes = static_cast<std::uint32_t>(sizeof head_ + rows_ * sizeof(target_rows) + data_bytes_);
    head_.pieces = static_cast<std::uint8_t>(rows_);
    append(&bytes, sizeof bytes);
    append(&head_, sizeof head_);
    append(pieces_.data(), rows_ * sizeof(target_rows));
    append(data_.data(), data_bytes_);
    rows_ = data_bytes_ = 0;
  }

  window_core& w_;
  int peer_;
  std::size_t bytes_max_;
  operation_header head_{};
  std::size_t used_ = 0, rows_ = 0, data_bytes_ = 0;
  std::array<target_rows, batch_pieces_max> pieces_;
  std::array<std::byte, operation_message_max> data_;
  std::array<std::byte, operation_message_max> room_;
};

/// Sends the message; its records then await the peer's acknowledgement. The caller holds the progress lock.
void send_one(window_core& w, int target, target_state& state, batch_maker& made, operation_record::queue& sent,
              const rider* end) noexcept {
  engine& e = *w.team->rt->ops;
  context::peer& peer = w.ctx->peer_of(made.peer());
  ++peer.operations_sent;
  w.ctx->send(made.peer(), message::batch, {}, made.finish(end));
  made.clear();
  mark_sent(w, target, state, peer);
  while (!sent.empty()) {
    operation_record& op = sent.front();
    sent.pop_front();
    e.await_acknowledgement(op, peer, &state);
  }
}

/// Waits until few messages wait for room, to bound their memory. True unless the peer has died.
bool await_unsent(window_core& w, int rank) noexcept {
  const auto few = [&w, rank]() noexcept { return has_room_for_batch(w, rank); };
  return few() || w.ctx->wait({.until = few, .peer = rank}) == status::done;
}

}  // namespace

bool has_room_for_batch(window_core& w, int rank) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  return w.ctx->peer_of(rank).waiting_count() < unsent_max;
}

std::uint32_t batched_bytes_of(const window_core& w, const operation_record& op) noexcept {
  const Layout* const layout = op.shapes == nullptr ? nullptr : &op.shapes->target;
  return batched_bytes(op.kind, op.bytes, batched_pieces(w.is_far(op.target), layout));
}

std::uint32_t batch_bytes_of(const window_core& w, int target) noexcept {
  constexpr std::size_t fixed =
      sizeof(batch_header) + rider_bytes_max + sizeof(std::uint32_t) + sizeof(operation_header);
  static_assert(fixed < fabric::message_bytes_min);
  return static_cast<std::uint32_t>(operation_message_max_to(w, w.world_rank(target)) - fixed);
}

void send_batches(window_core& w, int target, target_state& state, operation_record::queue& ops,
                  const rider* end) noexcept {
  if (ops.empty()) return;
  const int rank = w.world_rank(target);
  bool alive = await_unsent(w, rank);
  batch_maker made(w, rank);
  operation_record::queue sent;
  std::unique_lock guard(w.ctx->lock());
  context::peer& peer = w.ctx->peer_of(rank);
  while (!ops.empty()) {
    operation_record& op = ops.front();
    RMA_ASSERT(op.held == hold_reason::none);
    if (!made.has_room(op)) {
      send_one(w, target, state, made, sent, nullptr);
      if (alive && peer.waiting_count() >= unsent_max) {
        guard.unlock();
        alive = await_unsent(w, rank);
        guard.lock();
      }
    }
    ops.pop_front();
    operation_args args;
    const checked_operation o = recall(w, state, op, args);
    made.add(o, record_by_message(w, o, o.record, peer));
    w.ctx->count(counter::operations_handler);
    sent.push_back(op);
  }
  send_one(w, target, state, made, sent, end);
}

namespace {

/// Takes the next operation of a batch; false if there is none, or it is cut off.
bool take_operation(std::span<const std::byte>& left, std::span<const std::byte>& operation) noexcept {
  std::uint32_t bytes = 0;
  if (left.size() <= sizeof bytes) return false;
  std::memcpy(&bytes, left.data(), sizeof bytes);
  if (bytes > left.size() - sizeof bytes) return false;
  operation = left.subspan(sizeof bytes, bytes);
  left = left.subspan(sizeof bytes + bytes);
  return true;
}

/// True if all layouts that the batch names are known. Asks for all others.
bool knows_layouts(engine& e, int source, std::span<const std::byte> left) {
  bool all = true;
  for (std::span<const std::byte> operation; take_operation(left, operation);)
    all &= knows_layout(e, source, operation);
  return all;
}

}  // namespace

void serve_batch(engine& e, int source, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(e.ctx().is_guarded());
  batch_header h{};
  const bool is_whole = payload.size() >= sizeof h;
  if (is_whole) std::memcpy(&h, payload.data(), sizeof h);
  if (!is_whole || h.rider_bytes > payload.size() - sizeof h) {
    e.ctx().defer_ack(source);
    return e.reject_malformed(source, message::batch, payload, malformed_reason::wrong_length);
  }
  const std::span<const std::byte> end = payload.last(h.rider_bytes);
  std::span<const std::byte> left = payload.subspan(sizeof h, payload.size() - sizeof h - h.rider_bytes);
  if (e.find(h.window) == nullptr) {
    e.ctx().defer_ack(source);
    return e.ctx().send_record(source, message::refusal,
                               dropped_header{h.window, 0, e.ctx().take_pending_acks(source)});
  }
  if (!knows_layouts(e, source, left)) return e.ctx().hold_message(source, message::batch, payload);
  bool owes = false;
  for (std::span<const std::byte> operation; take_operation(left, operation);) {
    // Only the reply of the last operation may acknowledge the message.
    owes = left.empty();
    if (owes) e.ctx().defer_ack(source);
    run_operation(e, source, operation);
  }
  if (!owes) e.ctx().defer_ack(source);
  if (!left.empty()) e.reject_malformed(source, message::batch, payload, malformed_reason::wrong_length);
  const auto kind = static_cast<message>(h.rider);
  if (kind == message::notify || kind == message::lock || kind == message::fence) {
    e.ctx().run_handler(source, kind, end);
  } else if (h.rider != 0) {
    e.reject_malformed(source, message::batch, payload, malformed_reason::wrong_contents);
  }
}

}  // namespace rma::detail
