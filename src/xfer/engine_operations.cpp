// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operation records: their pool, the lists of pending records, and their end.
#include "xfer/engine.hpp"

#include <mutex>
#include <utility>

#include "core/assert.hpp"
#include "core/names.hpp"
#include "window/window_core.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {

operation_record& engine::one_more_operation() {
  operation_record& op = operations_.emplace_back();
  op.run = &engine::on_posted;
  op.owner = this;
  op.index = static_cast<std::uint32_t>(operations_.size() - 1);
  free_operations_.push_front(op);
  return op;
}

operation_record* engine::find_operation(std::uint64_t id) noexcept {
  const auto slot = static_cast<std::uint32_t>(id);
  if (slot == 0 || slot > operations_.size()) return nullptr;
  operation_record& op = operations_[slot - 1];
  return op.generation == id >> 32 ? &op : nullptr;
}

void engine::free_operation(operation_record& op) noexcept {
  RMA_ASSERT(ctx_.lock().is_taken());
  RMA_ASSERT(op.owner == this && op.held == hold_reason::none);
  RMA_ASSERT(op.state == nullptr || op.over.load() != 0);
  if (op.note != nullptr) [[unlikely]]
    end_note(op);
  ++op.generation;
  op.into = nullptr;
  if (operation_shapes* const shapes = std::exchange(op.shapes, nullptr); shapes != nullptr) {
    shapes->origin = shapes->result = shapes->target = Layout();
    shapes->next_free = free_shapes_;
    free_shapes_ = shapes;
  }
  op.state = nullptr;
  free_operations_.push_front(op);
}

void engine::track(operation_record& op, target_state& state, bool write) noexcept {
  RMA_ASSERT(op.state == nullptr && op.over.load() == 0);
  RMA_ASSERT(!op.by_message);
  op.state = &state;
  op.number = ++state.posted_count;
  state.under_way.push_back(op);
  state.begin_posted(write);
}

void engine::track_message(operation_record& op, target_state& state) noexcept {
  RMA_ASSERT(op.state == nullptr && op.over.load() == 0);
  RMA_ASSERT(op.by_message);
  op.state = &state;
  state.under_way.push_back(op);
}

operation_record& engine::message_record_of(operation_record*& held, const context::peer& peer) {
  operation_record& op = record_of(held);
  op.by_message = true;
  op.detached = true;
  op.malformed_notices = peer.malformed_notices.load(std::memory_order_relaxed);
  return op;
}

void engine::trace_operation(operation_record& op, const window_core& w, const checked_operation& o) {
  if (w.trace == nullptr || op.note != nullptr) return;  // a held operation has its note already
  if (free_notes_ == nullptr) free_notes_ = &notes_.emplace_back();
  operation_note& note = *std::exchange(free_notes_, free_notes_->next_free);
  note.into = w.trace;
  note.window = w.hints.name;
  note.peer = o.peer;
  note.event = {name_of(o.args->kind), {}, o.args->target, o.bytes, o.protocol, o.why, ctx_.around().now_ns(), 0};
  op.note = &note;
}

void engine::end_note(operation_record& op) noexcept {
  operation_note& note = *std::exchange(op.note, nullptr);
  note.event.window = note.window;
  note.event.end_ns = ctx_.around().now_ns();
  note.into->add_operation(note.event, note.peer);
  note.next_free = free_notes_;
  free_notes_ = &note;
}

void engine::expect_result(operation_record& op, void* into, std::uint64_t bytes, const Layout* shape) {
  op.into = static_cast<std::byte*>(into);
  op.bytes = bytes;
  op.arrived = 0;
  if (shape != nullptr) shapes_of(op).result = *shape;
}

operation_shapes& engine::shapes_of(operation_record& op) {
  if (op.shapes != nullptr) return *op.shapes;
  if (free_shapes_ == nullptr) free_shapes_ = &shapes_.emplace_back();
  op.shapes = std::exchange(free_shapes_, free_shapes_->next_free);
  return *op.shapes;
}

void engine::await_acknowledgement(operation_record& op, context::peer& peer, target_state* state) noexcept {
  RMA_ASSERT(op.by_message && op.over.load() == 0);
  RMA_ASSERT(state == nullptr || op.state == nullptr || op.state == state);
  op.number = peer.operations_sent;
  if (peer.sent == nullptr) peer.sent = &sent_[&peer];
  peer.sent->waiting.push_back(op);
  if (state != nullptr && op.state == nullptr)
    track_message(op, *state);  // an operation that has waited for room is in the list
}

// A failure is counted at the target until its own user, or a call that completes the target, has reported it.
void engine::end_piece(operation_record& op, status result) noexcept {
  RMA_ASSERT(ctx_.lock().is_taken());
  RMA_ASSERT(op.owner == this && op.pieces != 0 && op.over.load() == 0);  // each piece ends only once
  RMA_ASSERT(op.held == hold_reason::none || (op.held == hold_reason::room && op.pieces > 1));
  if (result != status::done) op.result = result;
  if (--op.pieces != 0) return;
  if (op.state != nullptr) {
    target_state& state = *op.state;
    state.under_way.erase(state.under_way.iterator_to(op));
    if (op.result == status::done) {
      op.state = nullptr;
    } else {
      state.fail(op.result);
      RMA_ASSERT(!op.immediate || state.immediates != 0);
      if (op.immediate) --state.immediates;  // it is not waited for
      op.reports = state.reports;
    }
    if (!op.by_message) state.end_posted();
  }
  if (op.note != nullptr) [[unlikely]]
    end_note(op);
  op.over.store(1);
  if (op.detached) free_operation(op);
}

void engine::on_posted(fabric::completion& over, status result, std::uint64_t /*bytes*/) noexcept {
  auto& op = static_cast<operation_record&>(over);
  RMA_ASSERT(op.owner != nullptr && result != status::posted);
  op.owner->end_piece(op, result);
}

void engine::end_message_operation(context::peer& peer, operation_record& op) noexcept {
  const bool refused = peer.malformed_notices.load(std::memory_order_relaxed) != op.malformed_notices;
  // Flushes see every malformed notice themselves: it is not counted as a failure of this target.
  if (refused && op.result == status::done && op.state != nullptr) {
    op.state->under_way.erase(op.state->under_way.iterator_to(op));
    op.state = nullptr;
  }
  end_piece(op, refused ? status::transfer_failed : status::done);
}

void engine::take_acknowledgements(context::peer& peer, std::uint64_t count) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  const std::uint64_t done = peer.operations_done.load(std::memory_order_relaxed) + count;
  if (peer.sent != nullptr) {
    operation_record::queue& waiting = peer.sent->waiting;
    while (!waiting.empty() && waiting.front().number <= done) {
      operation_record& op = waiting.front();
      RMA_ASSERT(op.by_message && op.over.load() == 0);
      waiting.pop_front();
      end_message_operation(peer, op);
    }
    RMA_ASSERT(waiting.empty() || waiting.front().number > done);
  }
  peer.operations_done.store(done);
}

void engine::end_sent(context::peer& peer) noexcept {
  if (peer.sent == nullptr) return;
  operation_record::queue& waiting = peer.sent->waiting;
  while (!waiting.empty()) {
    operation_record& op = waiting.front();
    waiting.pop_front();
    if (op.state != nullptr) op.state->under_way.erase(op.state->under_way.iterator_to(op));
    op.state = nullptr;
    end_piece(op, status::peer_failed);
  }
}

// Failures that a flush has reported meanwhile are not counted any more.
void engine::mark_failure_reported(const operation_record& op) noexcept {
  if (op.state == nullptr || op.result == status::done || op.reports != op.state->reports) return;
  RMA_ASSERT(op.over.load() != 0 && op.state->failures != 0);
  if (--op.state->failures == 0) op.state->fabric_failed.store(0);
}

void engine::forget(target_state& state) noexcept {
  end_waiting(state, status::window_freed);
  for (operation_record::queue* const queue : {&state.held, &state.scheduled.held}) {
    while (!queue->empty()) {
      operation_record& op = queue->front();
      queue->pop_front();
      op.held = hold_reason::none;
      free_operation(op);
    }
  }
  while (!state.under_way.empty()) {
    state.under_way.front().state = nullptr;
    state.under_way.pop_front();
  }
  RMA_ASSERT(state.held.empty() && state.queued.load() == 0);
  if (state.failures == 0 && state.reports == 0) return;
  for (const request_node& node : *requests_) {  // a failed one that was not tested
    if (node.operation != nullptr && node.operation->state == &state) node.operation->state = nullptr;
  }
}

status engine::wait_posted(std::unique_lock<small_lock>& guard, operation_record& op, int world_rank) noexcept {
  RMA_ASSERT(guard.owns_lock() && !op.detached);
  const auto over = [&op]() noexcept { return op.over.load() != 0; };
  if (ctx_.ready_soon(over)) return op.result;
  guard.unlock();
  const status s = ctx_.wait({.until = over, .replies = world_rank});
  guard.lock();
  return s == status::done ? op.result : s;
}

status engine::leave_operation(std::unique_lock<small_lock>& guard, operation_record& op, const window_core& w,
                               int world_rank, bool now, request_node** request) noexcept {
  RMA_ASSERT(guard.owns_lock() && !op.detached);
  status s = status::posted;
  if (now) {
    s = wait_posted(guard, op, world_rank);
    if (!ok(s)) ctx_.set_last_failed(world_rank);
  }
  if (!now && request != nullptr) {
    *request = new_request(w, world_rank, op);
  } else if (op.over.load() == 0) {
    op.detached = true;
  } else {
    if (now) mark_failure_reported(op);
    free_operation(op);
  }
  return s;
}

status engine::finish_posting(std::unique_lock<small_lock>& guard, operation_record& op, const window_core& w,
                              int world_rank, bool now, request_node** request) noexcept {
  end_piece(op, status::done);  // the piece that stands for the posting
  return leave_operation(guard, op, w, world_rank, now, request);
}

}  // namespace rma::detail
