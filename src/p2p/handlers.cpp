// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a messenger does with the messages of others.
#include <cstring>

#include "datatype/copy.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"

namespace rma::detail {
namespace {

/// The header in front, if it is all there.
template <class Header>
bool read_header(std::span<const std::byte> payload, Header& h) noexcept {
  if (payload.size() < sizeof h) return false;
  std::memcpy(&h, payload.data(), sizeof h);
  return true;
}

}  // namespace

void messenger::on_eager(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  envelope e;
  if (!read_header(payload, e) || e.tag < 0)
    return me.ctx_.refuse(source, static_cast<std::uint16_t>(message::eager), payload.size(), nonsense::wrong_contents);
  peer& p = me.peer_of(source);
  if (p.gone) return;
  const bool more_room = e.freed != 0;
  p.used -= e.freed;
  const auto data = payload.subspan(sizeof e);
  const match_key key{e.context, source, e.tag};
  const std::uint32_t units = unexpected_messages::units_of(data.size());
  if (receive_operation* const op = me.find_posted(key)) {
    me.unpost(*op);
    me.give_back(p, units);
    const auto over = op->over;
    (void)me.accept_data(*op, key, data);
    if (over != nullptr) over(*op);
  } else {
    unexpected_message& m = me.unexpected_.make(data.size());
    m.key = key;
    m.bytes = data.size();
    m.send = 0;
    m.units = units;
    if (!data.empty()) std::memcpy(m.data(), data.data(), data.size());
    me.unexpected_.add(m);
  }
  if (more_room && !p.queued.empty()) me.send_queued(p);
}

void messenger::on_announce(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  announcement a;
  if (!read_header(payload, a) || a.of.tag < 0 || a.send == 0)
    return me.ctx_.refuse(source, static_cast<std::uint16_t>(message::announce), payload.size(),
                          nonsense::wrong_contents);
  peer& p = me.peer_of(source);
  if (p.gone) return;
  p.used -= a.of.freed;
  const match_key key{a.of.context, source, a.of.tag};
  const std::uint32_t units = unexpected_messages::units_of(0);
  if (receive_operation* const op = me.find_posted(key)) {
    me.unpost(*op);
    me.give_back(p, units);
    const auto over = op->over;
    const status s = me.accept_announced(*op, key, a.bytes, a.send);
    if (s != status::posted && over != nullptr) over(*op);
  } else {
    unexpected_message& m = me.unexpected_.make(0);
    m.key = key;
    m.bytes = a.bytes;
    m.send = a.send;
    m.flags = a.flags;
    m.units = units;
    me.unexpected_.add(m);
  }
  if (!p.queued.empty()) me.send_queued(p);
}

void messenger::on_clear_to_send(messenger& me, int source, const rendezvous_message& m) noexcept {
  message_operation* const op = me.ids_.find(m.to, source);
  if (op == nullptr || op->state != message_state::announced) return me.tell(source, m.from, 0, rendezvous_step::gone);
  peer& p = me.peer_of(source);
  op->state = message_state::streaming;
  op->peer_id = m.from;
  p.streams.push_back(*op);
  me.busy(p);
  me.stream(p);
}

void messenger::on_rendezvous(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  rendezvous_message m;
  if (!read_header(payload, m) || m.step >= rendezvous_step::count_)
    return me.ctx_.refuse(source, static_cast<std::uint16_t>(message::rendezvous), payload.size(),
                          nonsense::wrong_contents);
  if (m.step == rendezvous_step::clear_to_send) return on_clear_to_send(me, source, m);
  message_operation* const op = me.ids_.find(m.to, source);
  if (op == nullptr) return;  // withdrawn, or over
  me.detach(*op);
  me.finish(*op, m.step == rendezvous_step::finished ? status::done : status::transfer_failed);
}

void messenger::on_stream(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  stream_piece h;
  const bool whole = read_header(payload, h);
  message_operation* const op = whole ? me.ids_.find(h.receive, source) : nullptr;
  if (whole && op == nullptr) return;  // withdrawn
  const auto data = payload.subspan(whole ? sizeof h : 0);
  if (!whole || op->state != message_state::receiving || data.size() > op->total - op->moved)
    return me.ctx_.refuse(source, static_cast<std::uint16_t>(message::stream), payload.size(),
                          nonsense::wrong_contents);
  if (op->layout != nullptr) {
    unpack(op->at, data.data(), *op->layout, op->moved, data.size());
  } else {
    std::memcpy(static_cast<std::byte*>(op->at) + op->moved, data.data(), data.size());
  }
  op->moved += data.size();
  if (op->moved == op->total) me.finish(*op, status::done);
}

void messenger::on_credit(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  credit_message c;
  if (!read_header(payload, c))
    return me.ctx_.refuse(source, static_cast<std::uint16_t>(message::credit), payload.size(), nonsense::wrong_length);
  peer& p = me.peer_of(source);
  p.used -= static_cast<std::uint32_t>(c.freed);
  if (!p.queued.empty()) me.send_queued(p);
}

}  // namespace rma::detail
