// SPDX-License-Identifier: Apache-2.0
/// \file
/// The handlers of the messages that other messengers send.
#include <cstring>

#include "core/assert.hpp"
#include "datatype/copy.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"
#include "p2p/pieces.hpp"
#include "p2p/rendezvous/table.hpp"

namespace rma::detail {
namespace {

/// Reads the header at the front; returns false if it is not complete.
template <class Header>
bool read_header(std::span<const std::byte> payload, Header& h) noexcept {
  if (payload.size() < sizeof h) return false;
  std::memcpy(&h, payload.data(), sizeof h);
  return true;
}

}  // namespace

void messenger::on_eager(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  envelope e;
  if (!read_header(payload, e) || e.tag < 0)
    return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::eager), payload.size(),
                                    malformed_reason::wrong_contents);
  peer& p = me.peer_of(source);
  RMA_ASSERT(p.rank == source);
  if (p.gone || me.delay(p, message::eager, e.sequence, payload)) return;
  me.report_step();
  me.take_eager(p, payload);
  if (p.rings) [[unlikely]]
    me.consider_ring(p);
  me.take_next(p);
}

void messenger::take_eager(peer& p, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(!p.gone);
  envelope e;
  std::memcpy(&e, payload.data(), sizeof e);
  const bool more_room = e.freed != 0;
  p.used -= e.freed;
  arrive(p);
  p.sends_long = false;
  const auto data = payload.subspan(sizeof e);
  const match_key key{e.context, p.rank, e.tag};
  const std::uint32_t units = unexpected_messages::units_of(data.size());
  if (receive_operation* const op = posted_.find(key)) {
    unpost(*op);
    give_back(p, units);
    if (op->id != 0) [[unlikely]]
      detach(*op);
    const auto over = op->over;
    (void)accept_data(*op, key, data);
    if (over != nullptr) over(*op);
  } else {
    ctx_.count(counter::unexpected_messages);
    unexpected_message& m = unexpected_.make(data.size());
    m.key = key;
    m.bytes = data.size();
    m.send = 0;
    m.units = units;
    if (!data.empty()) std::memcpy(m.data(), data.data(), data.size());
    keep(m, p);
  }
  if (more_room && !p.queued.empty()) send_queued(p);
}

void messenger::keep(unexpected_message& m, peer& p) noexcept {
  unexpected_.add(m);
  hold_units(p, m.units);
  if (!program_ended_ || user_of(m.key.context) != message_user::program) return;
  hold(m);
  discard(m);
}

void messenger::on_announce(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  announcement a;
  if (!read_header(payload, a) || a.of.tag < 0 || a.send == 0 ||
      a.kind >= static_cast<std::uint16_t>(rendezvous_kind::count_) ||
      (a.kind == static_cast<std::uint16_t>(rendezvous_kind::sgrs) && a.address == 0))
    return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::announce), payload.size(),
                                    malformed_reason::wrong_contents);
  peer& p = me.peer_of(source);
  RMA_ASSERT(p.rank == source);
  if (p.gone || me.delay(p, message::announce, a.of.sequence, payload)) return;
  me.report_step();
  me.take_announcement(p, payload);
  me.take_next(p);
}

void messenger::take_announcement(peer& p, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(!p.gone);
  announcement a;
  std::memcpy(&a, payload.data(), sizeof a);
  p.used -= a.of.freed;
  arrive(p);
  p.sends_long = true;
  const match_key key{a.of.context, p.rank, a.of.tag};
  const std::uint32_t units = unexpected_messages::units_of(0);
  const announced_message what{a.bytes, a.send, a.address, a.key, a.kind, a.last, a.void_request, a.writable, a.lists};
  if (receive_operation* const op = posted_.find(key)) {
    unpost(*op);
    give_back(p, units);
    const auto over = op->over;
    const status s = accept_announced(*op, key, what);
    if (s != status::posted && over != nullptr) over(*op);
  } else {
    ctx_.count(counter::unexpected_messages);
    unexpected_message& m = unexpected_.make(0);
    static_cast<announced_message&>(m) = what;
    m.key = key;
    m.units = units;
    keep(m, p);
  }
  if (!p.queued.empty()) send_queued(p);
}

void messenger::on_request(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  transfer_request r;
  const auto kind = static_cast<std::uint16_t>(message::request);
  if (!read_header(payload, r) || r.kind >= static_cast<std::uint32_t>(rendezvous_kind::count_))
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  message_operation* const op = me.ids_.find(r.send, source);
  RMA_ASSERT(op == nullptr || op->ended.load(std::memory_order_relaxed) == 0);  // a complete operation has no id
  if (r.kind == static_cast<std::uint32_t>(rendezvous_kind::sgrs))
    return me.take_grant(source, static_cast<send_operation*>(op), r);
  if (op == nullptr) return me.tell(source, r.receive, 0, rendezvous_step::gone);
  const bool streams = r.kind == static_cast<std::uint32_t>(rendezvous_kind::stream);
  if (streams && op->pieces != nullptr &&
      op->state == message_state::announced) {  // the lists have not carried all of it
    op->pieces->answer = piece_transfer::word::stream;
    return me.stop_posting(*op->pieces);
  }
  const rendezvous_protocol& protocol = rendezvous_of(static_cast<rendezvous_kind>(r.kind));
  if (op->state != message_state::announced || op->step != rendezvous_state::announced || protocol.reads ||
      (protocol.writes && (r.room < op->total || op->layout != nullptr)))
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  if (op->kind == rendezvous_kind::stream && protocol.writes) op->reason = rendezvous_reason::mapped_receive;
  me.write_as_asked(static_cast<send_operation&>(*op), r, false);
}

void messenger::on_rendezvous(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  rendezvous_message m;
  if (!read_header(payload, m) || m.step >= rendezvous_step::count_)
    return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::rendezvous), payload.size(),
                                    malformed_reason::wrong_contents);
  message_operation* const op = m.to == 0 ? nullptr : me.ids_.find(m.to, source);
  if (op == nullptr) return me.on_unknown(source, m);
  RMA_ASSERT(op->ended.load(std::memory_order_relaxed) == 0);  // a complete operation has no id
  if (op->is_send && (m.step == rendezvous_step::declined || m.step == rendezvous_step::used))
    return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::rendezvous), payload.size(),
                                    malformed_reason::wrong_contents);
  switch (m.step) {
    case rendezvous_step::finished: return me.on_finished(*op, m.bytes);
    case rendezvous_step::gone: return me.on_gone(*op);
    case rendezvous_step::declined: return me.take_back_request(static_cast<receive_operation&>(*op));
    case rendezvous_step::used: return me.on_used(static_cast<receive_operation&>(*op));
    case rendezvous_step::tell_end: op->wants_word = true; return;
    case rendezvous_step::look:
      op->wants_word = false;
      op->polls_since_ns = me.ctx_.around().now_ns();
      return;
    default: return;
  }
}

// The other side has completed its part: a send is complete whatever was planned; a receive that has sent a request has
// its message.
void messenger::on_finished(message_operation& op, std::uint64_t bytes) noexcept {
  RMA_ASSERT(op.id != 0 && op.ended.load(std::memory_order_relaxed) == 0);
  if (op.state == message_state::posted) {
    // The announcement of the written message may still wait for messages of the ring.
    if (!peer_of(op.with).delayed.empty()) return void(op.told_bytes = bytes);
    return end_early(static_cast<receive_operation&>(op), bytes);
  }
  if (op.state == message_state::receiving) {
    auto& r = static_cast<receive_operation&>(op);
    if (r.has_asked && bytes != 0) r.message_bytes = bytes;
    if (r.step == rendezvous_state::asked) receiver_event(r, rendezvous_event::finished);
  } else if (op.pieces != nullptr) {
    op.pieces->answer = piece_transfer::word::finished;
    stop_posting(*op.pieces);
  } else if (op.moving == nullptr) {
    sender_event(static_cast<send_operation&>(op), rendezvous_event::finished);
  }
}

// A pending write to the other side completes first, and reports it.
void messenger::on_gone(message_operation& op) noexcept {
  RMA_ASSERT(op.id != 0 && op.ended.load(std::memory_order_relaxed) == 0);
  if (op.moving != nullptr) return;
  if (op.pieces != nullptr) {
    op.pieces->is_given_up = true;
    return stop_posting(*op.pieces);
  }
  if (op.state == message_state::announced || op.state == message_state::streaming)
    tell(op.with, op.peer_id, 0, rendezvous_step::gone);
  const bool canceled = op.state == message_state::posted && op.is_canceled;
  const status wanted = op.withdrawn != status::done || canceled ? op.withdrawn : status::transfer_failed;
  detach(op);
  finish(op, wanted);
}

void messenger::on_stream(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  stream_piece h;
  const bool whole = read_header(payload, h);
  message_operation* const op = whole ? me.ids_.find(h.receive, source) : nullptr;
  if (whole && op == nullptr) return;  // withdrawn
  const auto data = payload.subspan(whole ? sizeof h : 0);
  if (!whole || op->state != message_state::receiving || op->step != rendezvous_state::asked ||
      data.size() > op->total - op->moved)
    return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::stream), payload.size(),
                                    malformed_reason::wrong_contents);
  if (op->moved == 0) {  // the requested write has failed
    me.stop_polling(*op);
    op->total = static_cast<receive_operation*>(op)->message_bytes;
  }
  if (op->layout != nullptr) {
    unpack(op->at, data.data(), *op->layout, op->moved, data.size());
  } else {
    std::memcpy(static_cast<std::byte*>(op->at) + op->moved, data.data(), data.size());
  }
  op->moved += data.size();
  RMA_ASSERT(op->moved <= op->total);
  if (op->moved == op->total) me.receiver_event(static_cast<receive_operation&>(*op), rendezvous_event::finished);
}

}  // namespace rma::detail
