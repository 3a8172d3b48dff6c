// SPDX-License-Identifier: Apache-2.0
/// \file
/// Requests of receives whose messages have not been announced: the first step of putnr and put.
///
/// A receive sends a request only if no other receive can match the next message of its source with its tag: its source
/// and tag are given, it is the first of its key, and no receive with a wildcard is posted. The request contains the
/// number of the source's envelopes that have arrived, so that the sender knows which ones it has crossed: of the
/// announced messages that the receiver had not seen, the first with this tag is the one; if an eager one is first, the
/// request is void. If the sender cannot decide, it declines the request. A receive that is canceled or withdrawn ends
/// when its source has answered that the request is not used.
#include <algorithm>
#include <cstring>

#include "core/assert.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"
#include "p2p/rendezvous/table.hpp"

namespace rma::detail {
namespace {

/// Envelopes are numbered modulo 2^16, and fewer than half of that are in transit.
constexpr bool is_before(std::uint16_t a, std::uint16_t b) noexcept {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b)) < 0;
}

}  // namespace

// ---- the receiver ----------------------------------------------------------------------------------------------

void messenger::consider_asking(receive_operation* op) noexcept {
  if (op == nullptr || op->id != 0 || op->peer == any_source || op->tag == any_tag || op->layout != nullptr) return;
  if (posted_.has_wildcards()) return;
  const peer& p = peer_of(op->peer);
  if (!p.asks || op->bytes <= p.eager_max || p.gone) return;
  if (automatic_ && !p.sends_long) return;
  if (possible(p.early_kind, ctx_.network_of(op->peer).caps(), op->bytes) != p.early_kind) return;
  if (posted_.first_of(op->match_entry::key) != op || op->state != message_state::posted) return;
  op->reset(p.early_kind);
  op->reason = automatic_ ? rendezvous_reason::receiver_first : rendezvous_reason::asked_for;
  op->total = op->bytes;
  op->with = op->peer;
  op->peer_id = 0;
  if (!expose(*op)) return;
  op->has_asked = true;
  ids_.add(*op);
  const auto step = rendezvous_of(op->kind).receiver(op->step, rendezvous_event::start);
  op->step = step.next;
  RMA_ASSERT(op->step == rendezvous_state::asked && op->moving == nullptr);
  prepare_last_byte(*op);
  begin_polling(*op);
  const early_request r{{op->context, op->tag, p.seen, 0},
                        {0, op->id, op->exposed.address, op->exposed.key, op->total,
                         static_cast<std::uint32_t>(op->kind), static_cast<std::uint32_t>(op->last)}};
  report_step();
  ctx_.count(counter::rendezvous_messages);
  ctx_.send_record(op->peer, message::early_request, r);
  report_step();
}

// The sender does not use the request. A receive that waited for that, since its message is announced, requests this
// message.
void messenger::take_back_request(receive_operation& op) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(!op.is_send && op.id != 0 && op.ended.load(std::memory_order_relaxed) == 0);
  if (!op.has_asked) return;
  op.has_asked = false;
  if (op.state == message_state::posted) {
    stop_polling(op);
    conceal(op);
    const status wanted = op.withdrawn;
    ids_.remove(op);
    if (wanted == status::done && !op.is_canceled) return;
    detach(op);
    return finish(op, wanted);
  }
  if (op.state == message_state::receiving) {
    op.total = op.message_bytes;
    if (op.part_bytes != 0) op.part_bytes = part_bytes(op, op.part_bytes);
    if (op.part_bytes == 0) return fall_back(op, false);
    stop_polling(op);
    op.kind = rendezvous_kind::sgrs;
    op.reason = rendezvous_reason::in_lists;
    op.step = rendezvous_state::begin;
    receiver_event(op, rendezvous_event::announced);
  }
}

void messenger::recall_request(receive_operation& op) noexcept {
  if (op.state == message_state::posted || op.has_asked) {
    const early_request r{{op.context, op.tag, 0, 0},
                          {0, op.id, 0, 0, 0, static_cast<std::uint32_t>(rendezvous_kind::count_), 0}};
    return ctx_.send_record(op.with, message::early_request, r);
  }
  tell(op.with, op.peer_id, op.id, rendezvous_step::gone);
}

// The message has been written without an announcement.
void messenger::end_early(receive_operation& op, std::uint64_t bytes) noexcept {
  RMA_ASSERT(op.state == message_state::posted && op.id != 0 && op.has_asked);
  op.source = op.peer;
  op.message_tag = op.tag;
  op.message_bytes = bytes;
  op.path = message_path::requested;
  const status wanted = op.withdrawn;
  detach(op);
  finish(op, wanted != status::done ? wanted : status::done);
}

// ---- the sender ------------------------------------------------------------------------------------------------

messenger::early_entry* messenger::find_request(int source, const envelope& of, std::uint64_t receive) noexcept {
  match_entry* const first = requests_.find({of.context, source, of.tag});
  for (match_entry* e = first; e != nullptr; e = e->next == first ? nullptr : e->next) {
    auto& entry = static_cast<early_entry&>(*e);
    if (receive == 0 || entry.where.receive == receive) return &entry;
  }
  return nullptr;
}

// The data are sent with the first message of this tag, or the request is void.
bool messenger::use_request(peer& p, send_operation& op) noexcept {
  early_entry* const found = find_request(p.rank, {op.context, op.tag, 0, 0}, 0);
  if (found == nullptr) return false;
  RMA_ASSERT(op.ended.load(std::memory_order_relaxed) == 0);
  const transfer_request where = found->where;
  const bool wants_word = found->wants_word;
  requests_.remove(*found);
  p.has_requests = !requests_.empty();
  const bool fits = op.layout == nullptr && op.bytes > p.eager_max && op.bytes <= where.room;
  op.is_void = !fits;
  if (!fits) op.peer_id = where.receive;
  if (op.id != 0) {  // the send was about to be announced
    conceal(op);
    ids_.remove(op);
  }
  if (!fits) {
    found->next_free = std::exchange(free_requests_, found);
    return false;
  }
  forget_use({op.context, p.rank, op.tag});
  used_.add(*found);
  p.has_used = true;
  op.reset(static_cast<rendezvous_kind>(where.kind));
  op.solicited = true;
  op.path = message_path::requested;
  op.reason = automatic_ ? rendezvous_reason::receiver_first : rendezvous_reason::asked_for;
  ids_.add(op);
  op.state = message_state::announced;
  op.match_entry::key = {op.context, op.peer, op.tag};
  announced_.add(op);
  write_as_asked(op, where, wants_word);
  return true;
}

void messenger::forget_use(const match_key& key) noexcept {
  auto* const known = static_cast<early_entry*>(used_.find(key));
  if (known == nullptr) return;
  used_.remove(*known);
  known->next_free = std::exchange(free_requests_, known);
}

// Called before an envelope is sent: its receiver may not have noticed that an earlier message with its tag has been
// written.
bool messenger::tell_use(peer& p, const send_operation& op) noexcept {
  const match_key key{op.context, p.rank, op.tag};
  const auto* const known = static_cast<const early_entry*>(used_.find(key));
  if (known == nullptr) return false;
  tell(p.rank, known->where.receive, 0, rendezvous_step::used);
  forget_use(key);
  p.has_used = !used_.empty();
  return true;
}

// The receive cannot match another message any more.
void messenger::on_used(receive_operation& op) noexcept {
  if (op.state != message_state::posted) return;
  RMA_ASSERT(!op.is_send && op.id != 0);
  unpost(op);
  op.state = message_state::receiving;
  op.source = op.peer;
  op.message_tag = op.tag;
  op.message_bytes = op.total;
}

void messenger::write_as_asked(send_operation& op, const transfer_request& where, bool wants_word) noexcept {
  op.kind = static_cast<rendezvous_kind>(where.kind);
  op.peer_id = where.receive;
  op.peer_room = where.room;
  op.last = static_cast<std::byte>(where.last);
  op.remote = {where.address, where.room, where.key};
  op.wants_word = op.wants_word || wants_word;
  sender_event(op, rendezvous_event::requested);
}

void messenger::drop_requests(int source) noexcept {
  for (match_table* const table : {&requests_, &used_}) {
    table->for_each([&](match_entry& e) {
      if (e.key.source != source) return;
      auto& entry = static_cast<early_entry&>(e);
      table->remove(entry);
      entry.next_free = std::exchange(free_requests_, &entry);
    });
  }
}

void messenger::on_early_request(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  early_request r;
  if (payload.size() != sizeof r)
    return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::early_request), payload.size(),
                                    malformed_reason::wrong_length);
  std::memcpy(&r, payload.data(), sizeof r);
  peer& p = me.peer_of(source);
  RMA_ASSERT(p.rank == source);
  if (p.gone) return;
  if (r.where.kind == static_cast<std::uint32_t>(rendezvous_kind::count_)) {  // withdrawn
    early_entry* const found = me.find_request(source, r.of, r.where.receive);
    if (found == nullptr) return;  // it is used, declined or void
    me.requests_.remove(*found);
    found->next_free = std::exchange(me.free_requests_, found);
    return me.tell(source, r.where.receive, 0, rendezvous_step::gone);
  }
  if (r.where.kind > static_cast<std::uint32_t>(rendezvous_kind::count_) ||
      !rendezvous_of(static_cast<rendezvous_kind>(r.where.kind)).writes)
    return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::early_request), payload.size(),
                                    malformed_reason::wrong_contents);
  const std::uint16_t seen = r.of.sequence;
  const match_key key{r.of.context, source, r.of.tag};
  me.forget_use(key);  // a receiver that sends a new request has noticed the use
  // The first send with this tag that the receiver had not seen matches the receive.
  send_operation* crossed = nullptr;
  match_entry* const first = me.announced_.find(key);
  for (match_entry* e = first; e != nullptr && crossed == nullptr; e = e->next == first ? nullptr : e->next) {
    auto& op = static_cast<send_operation&>(*e);
    if (op.step == rendezvous_state::announced && !is_before(static_cast<std::uint16_t>(op.number), seen))
      crossed = &op;
  }
  if (p.eager_sent != nullptr && p.eager_count > p.eager_sent->size()) {
    const envelope& oldest = (*p.eager_sent)[p.eager_next];
    if (!is_before(oldest.sequence, seen)) return me.tell(source, r.where.receive, 0, rendezvous_step::declined);
  }
  const std::size_t kept = p.eager_sent == nullptr ? 0 : std::min<std::size_t>(p.eager_count, p.eager_sent->size());
  for (std::size_t i = 0; i < kept; ++i) {
    const envelope& e = (*p.eager_sent)[i];
    const bool same = e.context == r.of.context && e.tag == r.of.tag && !is_before(e.sequence, seen);
    if (same && (crossed == nullptr || is_before(e.sequence, static_cast<std::uint16_t>(crossed->number))))
      return;  // void
  }
  if (crossed != nullptr) {
    // The data could arrive before their announcement, which would then be taken for that of the next message.
    const bool overtakes = !me.ctx_.network_of(source).caps().messages_after_writes;
    const bool fits = crossed->layout == nullptr && crossed->total <= r.where.room && !overtakes;
    if (!fits && crossed->total > r.where.room) return;  // the receive is complete
    if (!fits) return me.tell(source, r.where.receive, 0, rendezvous_step::declined);
    crossed->solicited = true;  // the receiver may not have handled the announcement
    return me.write_as_asked(*crossed, r.where, false);
  }
  if (me.free_requests_ == nullptr) {
    me.request_memory_.push_back(std::make_unique<early_entry>());
    me.free_requests_ = me.request_memory_.back().get();
  }
  early_entry& entry = *std::exchange(me.free_requests_, me.free_requests_->next_free);
  entry.key = key;
  entry.where = r.where;
  entry.wants_word = false;
  entry.next_free = nullptr;
  me.requests_.add(entry);
  p.has_requests = true;
  RMA_ASSERT(!me.requests_.empty());
}

// ---- receivers that stop polling -------------------------------------------------------------------------------

// A write does not wake a sleeping rank. It polls for as long as a wait spins, then requests a message.
void messenger::before_sleep(void* self) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  if (me.polled_.empty() && me.rings_in_.empty()) return;
  constexpr std::int64_t look_again_ns = 500, looks_for_ns = 100'000;
  const std::int64_t now_ns = me.ctx_.around().now_ns();
  me.close_rings_before_sleep(now_ns);
  for (receive_operation* const op : me.polled_) {
    RMA_ASSERT(op->polls && op->id != 0);
    if (op->wants_word || op->kind == rendezvous_kind::get) continue;  // a read has a completion
    if (me.ctx_.keeps_accounts() && now_ns - op->polls_since_ns < looks_for_ns) {
      me.look_again(now_ns + look_again_ns);
      continue;
    }
    op->wants_word = true;
    me.tell(op->with, op->peer_id, op->id, rendezvous_step::tell_end);
  }
}

// The receiver of `from` does not poll for the end of a write any more; its request is pending, or its send has just
// ended.
void messenger::on_unknown(int source, const rendezvous_message& m) noexcept {
  RMA_ASSERT(ctx_.is_guarded() && m.step < rendezvous_step::count_);
  if (m.step != rendezvous_step::tell_end) return;  // withdrawn, or complete
  bool notified = false;
  ids_.for_each([&](message_operation& op) {
    if (op.peer_id != m.from || op.with != source || op.moving == nullptr) return;
    op.wants_word = notified = true;
  });
  requests_.for_each([&](match_entry& e) {
    auto& entry = static_cast<early_entry&>(e);
    if (e.key.source != source || entry.where.receive != m.from) return;
    entry.wants_word = notified = true;
  });
  // Its message may be on its way through the ring, which the reply cannot overtake: the receiver will see what
  // arrives.
  if (!notified) tell(source, m.from, 0, rendezvous_step::look);
}

}  // namespace rma::detail
