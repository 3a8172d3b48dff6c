// SPDX-License-Identifier: Apache-2.0
/// \file
/// Noncontiguous data, sent in lists over the bulk channel where the fabric has one, and where this costs less than
/// packing them into messages.
///
/// Each list that the receiver posts gets exactly one send, whatever has become of the message: with data, or empty. So
/// no receive is left that could take the next transfer's data (channel/bulk_order.hpp).
#include "p2p/pieces.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/assert.hpp"
#include "p2p/messenger.hpp"
#include "p2p/rendezvous/table.hpp"

namespace rma::detail {

std::size_t shortest_piece(const Layout& layout, std::size_t enough) noexcept {
  std::size_t least = layout.bytes();
  for (cursor at(layout); at.remaining() != 0 && least >= enough;) {
    least = std::min(least, at.run().bytes);
    at.advance_blocks(at.run().count);
  }
  return least;
}

// ---- the cut into parts --------------------------------------------------------------------------------------------

// `limit`: that of the other side. The number of pieces in a part exceeds the number of whole ones that fit by at most
// one.
std::size_t messenger::part_bytes(const message_operation& op, std::size_t limit) const noexcept {
  constexpr std::size_t worth_asking = 16;
  const fabric::capabilities& caps = ctx_.network_of(op.with).caps();
  const bool forced = kind_ == rendezvous_kind::sgrs && !automatic_;
  if (kind_ == rendezvous_kind::stream && !automatic_) return 0;
  if (caps.bulk_pieces_max == 0 || op.with == ctx_.rank() || op.total == 0) return 0;
  if (caps.copies_by_cpu && !forced) return 0;  // packing and unpacking at the same time is faster
  std::size_t part = std::min(limit, caps.transfer_bytes_max);
  if (op.layout != nullptr) {
    if (caps.bulk_pieces_max == 1) return 0;
    if (!forced && !are_lists_cheaper(op, part)) return 0;
    const std::size_t pieces = caps.bulk_pieces_max - 1;
    part = std::min(part, pieces * shortest_piece(*op.layout, worth_asking / pieces + 1));
  }
  return part >= worth_asking && (forced || are_lists_cheaper(op, part)) ? part : 0;
}

/// Compares with the cost of copying all data, on both sides.
bool messenger::are_lists_cheaper(const message_operation& op, std::size_t part) const noexcept {
  const fabric::transfer_costs& costs = ctx_.costs_of(op.with);
  const auto bytes = static_cast<double>(op.total);
  const double requests = static_cast<double>((op.total - 1) / part + 1);
  const double pieces = op.layout == nullptr ? 1.0 : static_cast<double>(op.layout->blocks());
  const double by_lists = std::max(requests * static_cast<double>(costs.piece_ns), bytes * costs.byte_ns) +
                          pieces * static_cast<double>(costs.list_entry_ns);
  return by_lists < bytes * costs.message_byte_ns;
}

// ---- both sides ----------------------------------------------------------------------------------------------------

piece_transfer& messenger::new_pieces(int rank, bool sends) {
  piece_transfer& t = pieces_.take();
  t.run = &messenger::on_list_over;
  t.post = sends ? &messenger::post_lists : &messenger::post_receives;
  t.posted = &messenger::on_lists_posted;
  t.owner = this;
  t.network = &ctx_.network_of(rank);
  t.peer = rank;
  t.sends = sends;
  return t;
}

void messenger::begin_pieces(message_operation& op, bool sends) noexcept {
  RMA_ASSERT(sends == op.is_send && op.step == rendezvous_state::moving);
  RMA_ASSERT(op.pieces == nullptr && op.moving == nullptr && op.part_bytes != 0);
  piece_transfer& t = new_pieces(op.with, sends);
  t.op = &op;
  t.base = static_cast<std::byte*>(op.at);
  t.layout = op.layout != nullptr ? *op.layout : Layout::contiguous<std::byte>(op.total);
  t.at.emplace(t.layout);
  t.left = op.total;
  t.part_bytes = op.part_bytes;
  op.pieces = &t;
  if (sends) return;  // joins when the receiver has posted receives
  ctx_.bulk().join_receives(t.peer, t);
  ctx_.bulk().pump(t.peer);
}

/// Drops the transfer of an operation that has ended: its rank is gone, and posted receives get no sends.
void messenger::abandon_pieces(message_operation& op) noexcept {
  piece_transfer* const t = std::exchange(op.pieces, nullptr);
  if (t == nullptr) return;
  RMA_ASSERT(t->op == &op);
  t->op = nullptr;
  bulk_order::remove(*t);
  t->is_posted = true;
  end_pieces_if_over(*t);
}

/// The transfers behind it in its queue continue.
void messenger::stop_posting(piece_transfer& t) noexcept {
  const int with = t.peer;
  bulk_order::remove(t);
  t.is_posted = true;
  end_pieces_if_over(t);
  ctx_.bulk().pump(with);
}

void messenger::on_lists_posted(bulk_turn& self) {
  auto& t = static_cast<piece_transfer&>(self);
  RMA_ASSERT(!t.is_posted && !t.in_queue.is_linked());
  t.is_posted = true;
  t.owner->end_pieces_if_over(t);
}

void messenger::on_list_over(fabric::completion& self, status result, std::uint64_t bytes) noexcept {
  auto& t = static_cast<piece_transfer&>(self);
  messenger& me = *t.owner;
  const int with = t.peer;
  RMA_ASSERT(t.under_way != 0);
  --t.under_way;
  t.arrived += bytes;
  if (result != status::done && t.result == status::done) t.result = result;
  me.end_pieces_if_over(t);
  me.ctx_.bulk().pump(with);
}

void messenger::end_pieces_if_over(piece_transfer& t) noexcept {
  if (!t.is_posted || t.under_way != 0) return;
  message_operation* const op = t.op;
  if (op == nullptr) return pieces_.give_back(t);
  RMA_ASSERT(op->pieces == &t);
  const piece_transfer::word answer = t.answer;
  if (t.sends && answer == piece_transfer::word::none && !t.is_given_up) return;
  const bool all_there = t.result == status::done && (t.sends || t.arrived == op->total);
  const bool sends = t.sends, abandoned = t.is_given_up;
  const status result = t.result;
  pieces_.give_back(t);
  op->pieces = nullptr;
  if (result == status::peer_failed && ctx_.gone(op->with)) return;  // the handling of its death ends the operation
  if (abandoned) return on_gone(*op);
  if (sends && answer == piece_transfer::word::stream) return fall_back(*op, true);
  if (sends) return sender_event(static_cast<send_operation&>(*op), rendezvous_event::finished);
  if (!all_there) return fall_back(*op, false);
  receiver_event(static_cast<receive_operation&>(*op), rendezvous_event::moved);
}

// ---- the receiver --------------------------------------------------------------------------------------------------

// Posts as many receives as there is room for, and in the same step the message that permits as many sends.
bulk_turn::progress messenger::post_receives(bulk_turn& self) {
  auto& t = static_cast<piece_transfer&>(self);
  messenger& me = *t.owner;
  std::uint32_t posted = 0;
  bool room = true;
  while (room && t.result == status::done && !t.is_all_cut()) {
    t.cut_next();
    const status made = t.network->post_bulk_receive(t.peer, t.list, fabric::token_of(t));
    room = made != status::retry_queue_full;
    if (!room) break;
    if (!ok(made)) {
      t.result = made;
      break;
    }
    t.is_cut = false;
    ++t.under_way;
    ++posted;
  }
  me.ctx_.count(counter::layout_requests, posted);
  if (posted != 0) {
    const message_operation& op = *t.op;
    me.ctx_.count(counter::rendezvous_messages);
    me.ctx_.send_record(t.peer, message::request,
                        transfer_request{op.peer_id, op.id, t.part_bytes, posted, op.total,
                                         static_cast<std::uint32_t>(rendezvous_kind::sgrs), 0});
  }
  return room ? bulk_turn::progress::over : bulk_turn::progress::no_room;
}

// ---- the sender ----------------------------------------------------------------------------------------------------

// The receiver has posted that many lists. `op`: null if it has been withdrawn.
void messenger::take_grant(int source, send_operation* op, const transfer_request& r) noexcept {
  const auto lists =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(r.key, std::numeric_limits<std::uint32_t>::max()));
  if (op == nullptr) {
    piece_transfer& nothing = new_pieces(source, true);
    nothing.granted = lists;
    ctx_.bulk().join_sends(source, nothing);
    tell(source, r.receive, 0, rendezvous_step::gone);
    return ctx_.bulk().pump(source);
  }
  const bool begins = op->step == rendezvous_state::announced && op->pieces == nullptr;
  const bool right =
      op->state == message_state::announced && r.address != 0 && lists != 0 &&
      (begins ? op->layout == nullptr || (op->kind == rendezvous_kind::sgrs && r.address <= op->part_bytes)
              : op->pieces != nullptr && r.address == op->part_bytes);
  if (!right)
    return ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::request), sizeof r,
                                 malformed_reason::wrong_contents);
  if (begins) {
    op->kind = rendezvous_kind::sgrs;
    op->reason = rendezvous_reason::in_lists;
    op->peer_id = r.receive;
    op->part_bytes = r.address;
    sender_event(*op, rendezvous_event::requested);
  }
  RMA_ASSERT(op->pieces != nullptr && op->pieces->sends);
  piece_transfer& t = *op->pieces;
  t.granted += lists;
  if (!t.in_queue.is_linked()) ctx_.bulk().join_sends(source, t);
  ctx_.bulk().pump(source);
}

bulk_turn::progress messenger::post_lists(bulk_turn& self) {
  auto& t = static_cast<piece_transfer&>(self);
  messenger& me = *t.owner;
  while (t.granted != 0 && (t.op == nullptr || !t.is_all_cut())) {
    if (t.op != nullptr) t.cut_next();
    std::span<const fabric::local_slice> list(t.list);
    if (t.op == nullptr || t.result != status::done) list = {};
    const status made = t.network->send_bulk(t.peer, list, fabric::token_of(t));
    if (made == status::retry_queue_full) return bulk_turn::progress::no_room;
    if (made == status::peer_failed) {
      t.result = made;
      return bulk_turn::progress::over;
    }
    if (!ok(made)) {  // the next iteration sends an empty list instead
      if (list.empty()) return bulk_turn::progress::over;
      t.result = status::transfer_failed;
      continue;
    }
    t.is_cut = false;
    --t.granted;
    ++t.under_way;
    me.ctx_.count(counter::layout_requests);
  }
  return (t.op == nullptr ? t.granted == 0 : t.is_all_cut()) ? bulk_turn::progress::over : bulk_turn::progress::waits;
}

}  // namespace rma::detail
