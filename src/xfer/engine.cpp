// SPDX-License-Identifier: Apache-2.0
#include "xfer/engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "channel/call_scope.hpp"
#include "core/assert.hpp"
#include "datatype/copy.hpp"
#include "window/window_core.hpp"
#include "xfer/bulk_streams.hpp"
#include "xfer/complete.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/layout_exchange.hpp"
#include "xfer/operation_batch.hpp"
#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
engine::engine(context& ctx)
    : ctx_(ctx),
      waiting_max_(ctx.config().number(knob::waiting_operations)),
      layouts_(std::make_unique<layout_exchange>(ctx, *this)),
      bulk_(std::make_unique<bulk_streams>(ctx, *this)) {
  ctx.set_handler(message::operation, &engine::on_operation, this);
  ctx.set_handler(message::batch, &engine::on_batch, this);
  ctx.set_handler(message::reply, &engine::on_reply, this);
  ctx.set_handler(message::acknowledge, &engine::on_acknowledge, this);
  ctx.set_handler(message::share, &engine::on_share, this);
  ctx.set_handler(message::refusal, &engine::on_refuse, this);
  ctx.add_duty(&engine::on_duty, this);
  ctx.set_steps(&engine::advance_tasks, this);
  ctx.add_describer(&engine::describe, this);
  ctx.set_handler(message::notify, &engine::on_notify, this);
  if (ctx.config().is(knob::user_memory, "handler")) forced_ = user_memory::handler;
  if (ctx.config().is(knob::user_memory, "shared")) forced_ = user_memory::shared;
  if (ctx.config().is(knob::user_memory, "staged")) forced_ = user_memory::staged;
  if (ctx.config().is(knob::user_memory, "cma")) forced_ = user_memory::cma;
}

// Numbers are reused after 2^28 windows, some of which may still exist.
std::uint32_t engine::new_slot() noexcept {
  do {
    last_slot_ = (last_slot_ + 1) & window_slot_max;
  } while (slots_.contains(last_slot_));
  return last_slot_;
}

void engine::add(window_core& w) {
  RMA_ASSERT(!windows_.contains(w.id) && !slots_.contains(w.slot));
  windows_.emplace(w.id, &w);
  slots_.emplace(w.slot, &w);
}

void engine::remove(window_core& w) {
  RMA_ASSERT(find(w.id) == &w && find_slot(w.slot) == &w);
  windows_.erase(w.id);
  slots_.erase(w.slot);
  last_found_ = nullptr;
}

void engine::reject_malformed(int source, message kind, std::span<const std::byte> payload,
                              malformed_reason why) noexcept {
  ctx_.reject_malformed(source, static_cast<std::uint16_t>(kind), payload.size(), why);
}

void engine::on_operation(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.ctx_.size());
  serve_operation(me, source, payload);
}

void engine::on_batch(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.ctx_.size());
  serve_batch(me, source, payload);
}

void engine::take_result(std::uint64_t id, std::span<const std::byte> data) noexcept {
  operation_record* const op = find_operation(id);
  if (op == nullptr || op->into == nullptr || data.size() > op->bytes - op->arrived) return;
  if (op->shapes == nullptr) {
    std::memcpy(op->into + op->arrived, data.data(), data.size());
  } else {
    unpack(op->into, data.data(), op->shapes->result, op->arrived, data.size());
  }
  op->arrived += data.size();
  RMA_ASSERT(op->arrived <= op->bytes);
}

void engine::drop_results(target_state& state) noexcept {
  RMA_ASSERT(ctx_.lock().is_taken());
  for (operation_record& op : state.under_way) {
    RMA_ASSERT(op.state == &state && op.over.load() == 0);
    if (op.detached) {
      op.into = nullptr;
    } else {
      op.request_owns_result = true;
    }
  }
}

void engine::on_reply(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.ctx_.size());
  reply_header h{};
  if (payload.size() < sizeof h)
    return me.reject_malformed(source, message::reply, payload, malformed_reason::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  me.take_result(h.ticket, payload.subspan(sizeof h));
  me.take_acknowledgements(me.ctx_.peer_of(source), h.done);
}

void engine::on_acknowledge(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.ctx_.size());
  std::uint32_t count = 0;
  if (payload.size() != sizeof count)
    return me.reject_malformed(source, message::acknowledge, payload, malformed_reason::wrong_length);
  std::memcpy(&count, payload.data(), sizeof count);
  me.take_acknowledgements(me.ctx_.peer_of(source), count);
}

// Tests silent synchronizations again, and resumes operations that wait for room.
unsigned engine::on_duty(void* self) noexcept {
  auto& me = *static_cast<engine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  if (me.task_pause_ns_ != 0) me.ctx_.call_duty_at(me.ctx_.around().now_ns() + me.task_pause_ns_);
  const unsigned done = me.waiting_.empty() ? 0 : me.drain_some();
  me.ctx_.on_duty(&me, me.task_pause_ns_ != 0 || !me.waiting_.empty());
  return done;
}

std::string engine::describe(void* self) {
  std::string text;
  for (const auto& [id, w] : static_cast<engine*>(self)->windows_) {
    const std::string waits_in = entry_scope::place_of(*w);
    if (!waits_in.empty()) text += (text.empty() ? "" : "; ") + waits_in;
  }
  return text;
}

void engine::on_share(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.ctx_.size());
  serve_share(me, source, payload);
}

void engine::on_refuse(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.ctx_.size());
  dropped_header h{};
  std::uint64_t id = 0;
  if (payload.size() == sizeof id) {  // the refusal of the target's part of a copy
    std::memcpy(&id, payload.data(), sizeof id);
    if (operation_record* const op = me.find_operation(id)) op->result = operation_record::refused;
  } else if (payload.size() == sizeof h) {
    std::memcpy(&h, payload.data(), sizeof h);
    me.fail_dropped(source, me.ctx_.peer_of(source), h);
  } else {
    me.reject_malformed(source, message::refusal, payload, malformed_reason::wrong_length);
  }
}

// Its own request reports the failure, or the call that completes the target, whichever comes first. No other operation
// is affected.
void engine::fail_dropped(int source, context::peer& peer, const dropped_header& h) noexcept {
  if (h.done != 0) take_acknowledgements(peer, h.done - 1);
  if (peer.sent != nullptr && !peer.sent->waiting.empty()) {
    const std::uint64_t number = peer.sent->waiting.front().number;  // number of the refused message's operations
    for (operation_record& op : peer.sent->waiting) {
      if (op.number != number) break;
      op.into = nullptr;
      if (op.result == status::done) op.result = status::transfer_failed;
    }
  }
  if (window_core* const w = find(h.window)) w->dropped_by.store(source);
  if (h.done != 0) take_acknowledgements(peer, 1);
}

void engine::on_notify(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.ctx_.size());
  notify_header h{};
  if (payload.size() != sizeof h)
    return me.reject_malformed(source, message::notify, payload, malformed_reason::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  window_core* const w = me.find(h.window);
  if (w == nullptr) return;
  window_block& mine = w->my_block();
  switch (static_cast<counter_kind>(h.kind)) {
    case counter_kind::signal:
      if (h.index < w->hints.signals) w->array<word64>(mine, w->layout.signals_at)[h.index].fetch_add(1);
      break;
    case counter_kind::completion: ++w->news[source].messages.completions; break;
    case counter_kind::post: ++w->news[source].messages.posts; break;
  }
}

}  // namespace rma::detail
