// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operations for which the network has no room wait in their targets' queues, and progress resumes them.
#include <algorithm>

#include "core/assert.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

/// The number of targets per round: each target without room costs a failed attempt.
constexpr std::size_t targets_per_round = 16;

}  // namespace

void engine::add_waiting(target_state& state) {
  RMA_ASSERT(ctx_.lock().is_taken());
  RMA_ASSERT(!state.held.empty() && state.window != nullptr);
  const std::uint64_t queued = state.queued.load(std::memory_order_relaxed);
  state.queued.store(queued + 1);
  waiting_count_.store(waiting_count_.load(std::memory_order_relaxed) + 1);
  if (queued != 0) return;
  waiting_.push_back(&state);
  ctx_.on_duty(this, true);
}

// The count is stored last: a thread that reads 0 sees the operation's changes of the target's state.
void engine::leave_waiting(target_state& state, std::uint64_t count) noexcept {
  RMA_ASSERT(count != 0 && count <= state.queued.load(std::memory_order_relaxed));
  RMA_ASSERT(count <= waiting_count_.load(std::memory_order_relaxed));
  const std::uint64_t queued = state.queued.load(std::memory_order_relaxed) - count;
  if (queued == 0) std::erase(waiting_, &state);
  waiting_count_.store(waiting_count_.load(std::memory_order_relaxed) - count);
  state.queued.store(queued);
}

operation_record& engine::take_waiting(target_state& state) noexcept {
  RMA_ASSERT(!state.held.empty());
  operation_record& op = state.held.front();
  RMA_ASSERT(op.held == hold_reason::room);
  state.held.pop_front();
  op.held = hold_reason::none;
  return op;
}

// The record may have been freed if `resume` returns anything but retry_queue_full.
unsigned engine::drain(target_state& state) noexcept {
  if (state.queued.load(std::memory_order_relaxed) == 0) return 0;
  RMA_ASSERT(ctx_.lock().is_taken());
  RMA_ASSERT(state.window != nullptr && !state.held.empty());
  window_core& w = *state.window;
  unsigned gone_on = 0;
  bool room = true;
  while (room && !state.held.empty()) {
    operation_record& op = take_waiting(state);
    operation_args args;
    const checked_operation o = recall(w, state, op, args);
    if (op.into == nullptr && op.kind == call::get) {
      end_piece(op, status::done);  // its result was dropped
    } else if (op.resume(w, o) == status::retry_queue_full) {
      op.held = hold_reason::room;
      state.held.push_front(op);
      room = false;
      continue;
    }
    ++gone_on;
  }
  if (gone_on != 0) leave_waiting(state, gone_on);
  RMA_ASSERT(state.held.empty() == (state.queued.load(std::memory_order_relaxed) == 0));
  if (!room && ctx_.gone(w.world_rank(state.held.front().target))) end_waiting(state, status::peer_failed);
  return gone_on;
}

unsigned engine::drain_some() noexcept {
  unsigned gone_on = 0;
  for (std::size_t left = std::min(waiting_.size(), targets_per_round); left != 0 && !waiting_.empty(); --left) {
    if (next_waiting_ >= waiting_.size()) next_waiting_ = 0;
    target_state& state = *waiting_[next_waiting_];
    RMA_ASSERT(state.queued.load(std::memory_order_relaxed) != 0);  // otherwise it would not be in the list
    gone_on += drain(state);
    if (state.queued.load(std::memory_order_relaxed) != 0) ++next_waiting_;
  }
  return gone_on;
}

void engine::keep_bounded() noexcept {
  const auto fits = [this]() noexcept { return waiting_count_.load() < waiting_max_; };
  if (!fits()) (void)ctx_.wait({.until = fits});
}

void engine::end_waiting(target_state& state, status why) noexcept {
  std::uint64_t ended = 0;
  const std::uint64_t queued = state.queued.load(std::memory_order_relaxed);
  for (; ended != queued; ++ended) {
    operation_record& op = take_waiting(state);
    op.into = nullptr;
    end_piece(op, why);
  }
  if (ended != 0) leave_waiting(state, ended);
}

void engine::cancel_waiting(target_state& state) noexcept {
  operation_record::queue kept;
  std::uint64_t ended = 0;
  const std::uint64_t queued = state.queued.load(std::memory_order_relaxed);
  for (std::uint64_t left = queued; left != 0; --left) {
    operation_record& op = take_waiting(state);
    if (!op.detached) {
      op.held = hold_reason::room;
      kept.push_back(op);
      continue;
    }
    end_piece(op, status::done);
    ++ended;
  }
  state.held.swap(kept);
  if (ended != 0) leave_waiting(state, ended);
}

}  // namespace rma::detail
