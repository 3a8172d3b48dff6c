// SPDX-License-Identifier: Apache-2.0
/// \file
/// The bulk channel: the data of a send are sent when the peer has posted its receive, so that a send without a receive
/// does not block other messages. The kernel gathers data from the pieces of the send, and scatters arriving data into
/// those of the receive.
#include <cstring>

#include "core/assert.hpp"
#include "fabric/tcp/tcp_fabric.hpp"

namespace rma::tcp {
namespace {

void fill(bulk_entry& entry, std::span<const fabric::local_slice> list, std::uint64_t token) noexcept {
  entry.count = entry.bytes = 0;
  entry.token = token;
  for (const fabric::local_slice& each : list) {
    if (each.bytes == 0) continue;
    entry.pieces[entry.count++] = each;
    entry.bytes += each.bytes;
  }
}

void copy_pieces(const bulk_entry& to, const bulk_entry& from) noexcept {
  RMA_ASSERT(from.bytes <= to.bytes);
  std::size_t into = 0, used = 0;
  for (const fabric::local_slice& each : from.list()) {
    for (std::size_t done = 0; done != each.bytes;) {
      if (used == to.pieces[into].bytes) {
        ++into;
        used = 0;
      }
      const std::size_t part = std::min(each.bytes - done, to.pieces[into].bytes - used);
      std::memmove(static_cast<std::byte*>(to.pieces[into].at) + used, static_cast<std::byte*>(each.at) + done, part);
      used += part;
      done += part;
    }
  }
}

}  // namespace

status tcp_fabric::bulk_with(int peer, slices list, connection*& c) noexcept {
  if (list.size() > bulk_pieces_max || messaged::bytes_in(list) > transfer_bytes) return status::bad_argument;
  if (peer == how_.rank) {
    c = &met_or_new(peer);
  } else {
    messaged::peer* p = nullptr;
    if (const status s = reach(peer, p); s != status::done) return s;
    c = &connection_of(*p);
  }
  if (c->bulk == nullptr) c->bulk = std::make_unique<bulk_channel>();
  return status::done;
}

status tcp_fabric::send_bulk(int peer, slices from, std::uint64_t token) noexcept {
  connection* c = nullptr;
  if (const status s = bulk_with(peer, from, c); s != status::done) return s;
  if (c->bulk->sends.full() || (peer != how_.rank && !has_room(*c))) return status::retry_queue_full;
  fill(c->bulk->sends.add(), from, token);
  ++under_way_;
  if (peer == how_.rank) {
    match_own_bulk(*c);
  } else {
    send_granted(*c);
  }
  return status::posted;
}

status tcp_fabric::post_bulk_receive(int peer, slices to, std::uint64_t token) noexcept {
  connection* c = nullptr;
  if (const status s = bulk_with(peer, to, c); s != status::done) return s;
  if (c->bulk->receives.full()) return status::retry_queue_full;
  bulk_entry& entry = c->bulk->receives.add();
  fill(entry, to, token);
  if (peer == how_.rank) {
    match_own_bulk(*c);
  } else {
    const std::uint64_t bytes = entry.bytes;
    transmit(*c, static_cast<std::uint16_t>(bulk_kind::ready), bytes_of(bytes), {}, departure::now);
  }
  return status::posted;
}

// Sends the data of all sends that have a receive.
void tcp_fabric::send_granted(connection& c) noexcept {
  RMA_ASSERT(c.bulk != nullptr);
  bulk_channel& b = *c.bulk;
  RMA_ASSERT(b.left <= b.sends.size());
  while (b.left != b.sends.size() && b.granted.size() != 0) {
    const bulk_entry& next = b.sends[b.left++];
    const bool fits = next.bytes <= b.granted[0];
    b.granted.drop_first();
    const bulk_head head{static_cast<std::int64_t>(fits ? status::done : status::message_too_long)};
    transmit_data(c, static_cast<std::uint16_t>(bulk_kind::data), bytes_of(head), fits ? next.list() : slices{},
                  departure::now);
  }
}

// Matches the sends and receives of a rank with itself.
void tcp_fabric::match_own_bulk(connection& c) noexcept {
  RMA_ASSERT(c.bulk != nullptr && c.rank == how_.rank);
  bulk_channel& b = *c.bulk;
  while (b.sends.size() != 0 && b.receives.size() != 0) {
    const bulk_entry& from = b.sends[0];
    const bulk_entry& to = b.receives[0];
    const bool fits = from.bytes <= to.bytes;
    if (fits) copy_pieces(to, from);
    end(from.token, fits ? status::done : status::message_too_long);
    end(to.token, fits ? status::done : status::message_too_long, fits ? from.bytes : 0);
    b.sends.drop_first();
    b.receives.drop_first();
    RMA_ASSERT(under_way_ != 0);
    --under_way_;
  }
}

// Returns false if the peer violates the protocol.
bool tcp_fabric::place_bulk(connection& c, std::size_t bytes) noexcept {
  bulk_head head;
  std::memcpy(&head, c.in.data() + sizeof(front), sizeof head);
  if (c.bulk == nullptr || c.bulk->receives.size() == 0 || bytes > c.bulk->receives[0].bytes) {
    lose(c);
    return false;
  }
  c.landing.clear();
  c.landed = 0;
  c.answers = false;
  c.landing_key = 0;
  if (static_cast<status>(head.result) != status::done) {
    c.dropping = bytes;
    end_bulk_receive(c, status::message_too_long, 0);
    return true;
  }
  c.lands_bulk = true;
  c.bulk_bytes = bytes;
  for (const fabric::local_slice& each : c.bulk->receives[0].list()) {
    const std::size_t part = std::min(bytes, each.bytes);
    if (part != 0) c.landing.push_back({each.at, part});
    bytes -= part;
  }
  return true;
}

void tcp_fabric::end_bulk_receive(connection& c, status result, std::uint64_t bytes) noexcept {
  RMA_ASSERT(!c.lands());
  end(c.bulk->receives[0].token, result, bytes);
  c.bulk->receives.drop_first();
  const auto said = static_cast<std::int64_t>(result);
  transmit(c, static_cast<std::uint16_t>(bulk_kind::over), bytes_of(said), {}, departure::soon);
}

void tcp_fabric::take_line_message(messaged::peer& p, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  connection& c = connection_of(p);
  RMA_ASSERT(c.line && kind < static_cast<std::uint16_t>(bulk_kind::count_));
  std::uint64_t said = 0;
  if (payload.size() != sizeof said) return lose(c);
  std::memcpy(&said, payload.data(), sizeof said);
  if (c.bulk == nullptr) c.bulk = std::make_unique<bulk_channel>();
  bulk_channel& b = *c.bulk;
  if (kind == static_cast<std::uint16_t>(bulk_kind::ready)) {
    if (b.granted.full()) return lose(c);
    b.granted.add() = said;
    return send_granted(c);
  }
  if (b.left == 0) return lose(c);
  RMA_ASSERT(b.left <= b.sends.size() && under_way_ != 0);
  end(b.sends[0].token, static_cast<status>(static_cast<std::int64_t>(said)));
  b.sends.drop_first();
  --b.left;
  --under_way_;
}

void tcp_fabric::abandon_bulk(connection& c) noexcept {
  c.lands_bulk = false;
  if (c.bulk == nullptr) return;
  bulk_channel& b = *c.bulk;
  for (; b.sends.size() != 0; b.sends.drop_first()) {
    end(b.sends[0].token, status::peer_failed);
    --under_way_;
  }
  for (; b.receives.size() != 0; b.receives.drop_first()) end(b.receives[0].token, status::peer_failed);
  c.bulk.reset();
}

}  // namespace rma::tcp
