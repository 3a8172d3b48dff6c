// SPDX-License-Identifier: Apache-2.0
/// \file
/// Eager protocol "rdma-ring": the choice of senders that have a ring, and the order of messages in two channels.
///
/// The receiver chooses by RMA_RING_SET: RMA_RING_PEERS ranks of other nodes that send eager messages have a ring each,
/// as long as the receiver polls its memory. If it does not, or the fabric does not guarantee that the last byte of a
/// write is placed last, each write carries an immediate: this needs no polling and wakes a sleeping rank, but takes a
/// receive descriptor and a completion, so that the first RMA_RING_PEERS senders keep their rings. Each envelope has a
/// number: a message that arrives out of order on one channel waits for the other. A rank that is about to sleep closes
/// its rings, since a write does not wake it, and polls from time to time until their senders have reported how much
/// they have written. Source: Liu et al., ICS 2003, sections 3.3, 4.5 and 4.7.
#include "p2p/eager_ring.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "fabric/object_bytes.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"
#include "p2p/rendezvous/table.hpp"

namespace rma::detail {

// ---- which ranks have one -------------------------------------------------------------------------------------------

// A polled ring needs a receiver that polls its memory: oversubscribed ranks sleep.
void messenger::choose_ring(peer& p, const fabric::capabilities& caps) const noexcept {
  const bool asked = ctx_.config().is(knob::eager, "rdma-ring");
  const bool signals = ctx_.config().is(knob::eager, "rdma-ring:immediate");
  if ((!asked && !signals) || caps.transfer_bytes_max < ring_slot_bytes) return;
  const bool ends_are_polled = possible(rendezvous_kind::put, caps) == rendezvous_kind::put;
  const bool can_signal = caps.write_with_immediate && caps.one_sided && !caps.copies_by_cpu;
  p.ring_signals = signals || !ends_are_polled;
  p.rings = p.ring_signals ? can_signal : ctx_.waits_spin() || ctx_.keeps_accounts();
}

// ---- the sender --------------------------------------------------------------------------------------------------

void messenger::open_ring_to(peer& p, const credit_message& m) noexcept {
  if (p.ring_out == nullptr) {
    if (m.slots == 0 || m.slots > 1024) return;
    p.ring_out = std::make_unique<ring_out_state>(static_cast<std::uint32_t>(m.slots), *this, p.rank);
    p.ring_out->region = {m.address, m.slots * ring_slot_bytes, m.key};
  }
  p.ring_out->open = true;
  p.ring_out->signals = m.count != 0;
}

void messenger::close_ring_to(peer& p) noexcept {
  if (p.ring_out == nullptr) return;
  p.ring_out->open = false;
  credit_message m{};
  m.what = credit_word::ring_closed;
  m.count = p.ring_out->ring.filled();
  ctx_.send_record(p.rank, message::credit, m);
}

namespace {

/// Charges a simulated processor for the copy into the ring. At the receiver the adapter moves the data to memory,
/// whereas it passes those of a message to the handler: each has one copy there.
void charge_copy(const context& ctx, std::size_t bytes) noexcept {
  if (platform& around = ctx.around(); around.keeps_accounts()) around.charge(cost_kind::send, bytes);
}

}  // namespace

bool messenger::try_ring(peer& p, const envelope& e, const send_operation& op) noexcept {
  ring_out_state& out = *p.ring_out;
  if (!out.open || out.ring.full() || sizeof e + op.bytes > ring_message_max) return false;
  const std::uint32_t slot = out.ring.next_slot();
  const auto credits = static_cast<std::uint8_t>(std::min<std::uint32_t>(p.ring_freed, 255));
  (void)out.ring.fill(fabric::bytes_of(e), data_of(op, 0, op.bytes), credits);
  p.ring_freed -= credits;
  charge_copy(ctx_, sizeof e + op.bytes);
  report_step();
  out.writes[slot].slot = slot;
  if (out.unposted != 0 || !post_slot(out, slot)) {  // slots of the ring are posted in order
    ++out.unposted;
    unposted_rings_ = true;
    ctx_.on_duty(this, true);
  }
  ctx_.count(counter::ring_messages);
  return true;
}

bool messenger::post_slot(ring_out_state& out, std::uint32_t slot) noexcept {
  RMA_ASSERT(slot < out.ring.slots() && out.ring.filled() != 0);
  const std::size_t bytes = out.ring.bytes_of(slot);
  const fabric::local_slice here{out.ring.slot(slot), bytes};
  const fabric::remote_slice there{out.region.address + slot * ring_slot_bytes, bytes};
  ring_write& w = out.writes[slot];
  w.run = &messenger::on_ring_write;
  fabric::write_flags how =
      out.signals ? fabric::with_immediate(immediate_of(immediate_user::messages, 0)) : fabric::write_flags{};
  how.unsignaled = true;
  const status s = ctx_.network_of(out.peer).write(out.peer, std::span(&here, 1), out.region, std::span(&there, 1),
                                                   fabric::token_of(w), how);
  if (s == status::transfer_failed) out.resend.push_back(slot);
  return s != status::retry_queue_full;
}

// The sender's copy has the data: the slot is written again. If the first write has arrived all the same, the number of
// the message shows it.
void messenger::on_ring_write(fabric::completion& self, status result, std::uint64_t) noexcept {
  auto& w = static_cast<ring_write&>(self);
  RMA_ASSERT(w.out != nullptr && w.slot < w.out->ring.slots());
  if (result != status::transfer_failed) return;
  w.out->resend.push_back(w.slot);
  w.out->owner->unposted_rings_ = true;
  w.out->owner->ctx_.on_duty(w.out->owner, true);
}

void messenger::post_rings() noexcept {
  if (!unposted_rings_) return;
  unposted_rings_ = false;
  for (const auto& [rank, p] : peers_) {
    if (p->ring_out == nullptr || p->gone) continue;
    ring_out_state& out = *p->ring_out;
    RMA_ASSERT(out.unposted <= out.ring.slots());
    std::erase_if(out.resend, [&](std::uint32_t slot) { return post_slot(out, slot); });
    while (out.unposted != 0) {
      const auto slot = static_cast<std::uint32_t>((out.ring.filled() - out.unposted) % out.ring.slots());
      if (!post_slot(out, slot)) break;
      --out.unposted;
    }
    if (out.unposted != 0 || !out.resend.empty()) unposted_rings_ = true;
  }
}

std::size_t messenger::ring_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& [rank, p] : peers_) {
    if (p->ring_in != nullptr) bytes += p->ring_in->bytes();
    if (p->ring_out != nullptr) bytes += p->ring_out->ring.slots() * ring_slot_bytes;
  }
  return bytes;
}

// ---- the receiver ------------------------------------------------------------------------------------------------

void messenger::peer_of_many(int from) noexcept { peer_of(from).ring_hinted = true; }

// Counts an eager message that has arrived through the other channel.
void messenger::consider_ring(peer& p) noexcept {
  if (!p.rings || p.ring_in_open) return;
  if (ring_policy_ == ring_policy::hint && !p.ring_hinted) return;
  constexpr std::uint32_t messages_before = 4;
  ++p.ring_wishes;
  age_rings();
  if (p.ring_wishes < messages_before || !make_place(p)) return;
  p.ring_traffic = std::exchange(p.ring_wishes, 0);
  credit_message m{};
  m.what = credit_word::ring_open;
  m.count = p.ring_signals ? 1 : 0;
  if (p.ring_in == nullptr) {
    auto ring = std::make_unique<ring_sink>(ring_slots_);
    if (!ok(ctx_.network_of(p.rank).register_region(ring->memory(), ring->bytes(), p.ring_region))) {
      p.rings = false;
      return;
    }
    p.ring_in = std::move(ring);
    p.ring_signals ? static_cast<void>(++signalled_rings_) : rings_in_.push_back(&p);
    m.slots = ring_slots_;
    m.address = p.ring_region.address;
    m.key = p.ring_region.key;
  }
  p.ring_in_open = true;
  p.ring_to_come = ~std::uint64_t{0};
  p.ring_used_ns = ctx_.around().now_ns();
  ctx_.send_record(p.rank, message::credit, m);
  if (!p.ring_signals) ctx_.on_duty(this, true);
}

// Finds room in the polling set, or takes that of a peer that sends much less. A ring is never freed for another rank,
// so that at most twice the set's memory is used.
bool messenger::make_place(const peer& p) noexcept {
  constexpr std::uint32_t hysteresis = 2;
  if (p.ring_signals) return signalled_rings_ < ring_peers_max_;
  const bool by_traffic = ring_policy_ == ring_policy::traffic;
  if (p.ring_in == nullptr && rings_in_.size() >= (by_traffic ? 2 * ring_peers_max_ : ring_peers_max_)) return false;
  std::uint64_t open = 0;
  peer* least = nullptr;
  for (peer* const each : rings_in_) {
    if (!each->ring_in_open) continue;
    ++open;
    if (least == nullptr || each->ring_traffic < least->ring_traffic) least = each;
  }
  if (open < ring_peers_max_) return true;
  if (!by_traffic || least == nullptr || p.ring_wishes <= hysteresis * least->ring_traffic) return false;
  withdraw_ring(*least);
  return true;
}

// The ring is polled until its sender has reported how much it has written.
void messenger::withdraw_ring(peer& p) noexcept {
  RMA_ASSERT(p.ring_in != nullptr && p.ring_in_open);
  p.ring_in_open = false;
  p.ring_wishes = 0;
  credit_message m{};
  m.what = credit_word::ring_close;
  ctx_.send_record(p.rank, message::credit, m);
}

// Recent traffic counts more.
void messenger::age_rings() noexcept {
  constexpr std::uint32_t messages_of_late = 1024;
  if (++ring_age_ < messages_of_late) return;
  ring_age_ = 0;
  for (const auto& [rank, p] : peers_) {
    p->ring_traffic /= 2;
    p->ring_wishes /= 2;
  }
}

// Polls open rings, and those whose last messages are still to arrive.
unsigned messenger::poll_rings() noexcept {
  unsigned found = 0;
  const std::size_t first = ring_order_ == ring_order::circular ? ring_turn_ : 0;
  for (std::size_t i = 0; i < rings_in_.size(); ++i) {
    std::size_t at = first + i;
    if (at >= rings_in_.size()) at -= rings_in_.size();
    peer& p = *rings_in_[at];
    const unsigned arrivals = poll_ring(p);
    found += arrivals;
    if (arrivals == 0 || ring_order_ != ring_order::priority || at == 0) continue;
    if (p.ring_traffic > rings_in_[at - 1]->ring_traffic) std::swap(rings_in_[at], rings_in_[at - 1]);
  }
  if (++ring_turn_ >= rings_in_.size()) ring_turn_ = 0;
  return found;
}

unsigned messenger::poll_ring(peer& p) noexcept {
  RMA_ASSERT(p.ring_in != nullptr);
  constexpr unsigned per_turn = 16;
  unsigned found = 0;
  while (found < per_turn && !p.gone && p.ring_in->ready()) {
    envelope e;
    const auto message = p.ring_in->message();
    std::memcpy(&e, message.data(), sizeof e);
    const auto ahead = static_cast<std::int16_t>(static_cast<std::uint16_t>(e.sequence - p.seen));
    if (ahead > 0) break;  // earlier ones arrive first, as messages
    if (ahead < 0) {
      p.ring_in->clear();
      continue;
    }
    ++found;
    ++p.ring_traffic;
    age_rings();
    if (const std::uint8_t credits = p.ring_in->credits(); credits != 0 && p.ring_out != nullptr)
      p.ring_out->ring.give_back(credits);
    take_eager(p, message);
    report_step();
    p.ring_in->release();
    if (++p.ring_freed >= ring_slots_ / 2) tell_ring_credits(p);
    take_delayed(p);
  }
  if (found != 0) p.ring_used_ns = 0;
  return found;
}

void messenger::on_ring_immediate(void* self, int source, std::uint32_t) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  peer& p = me.peer_of(source);
  RMA_ASSERT(p.rank == source);
  if (p.ring_signals && p.ring_in != nullptr) me.drain_ring(p);
}

void messenger::drain_ring(peer& p) noexcept {
  while (poll_ring(p) != 0) {}
}

// Called after a message of the other channel: messages that arrived out of order may be next, and a ring whose writes
// have immediates is not polled.
void messenger::take_next(peer& p) noexcept {
  if (!p.delayed.empty()) take_delayed(p);
  if (p.ring_signals && p.ring_in != nullptr) drain_ring(p);
}

void messenger::tell_ring_credits(peer& p) noexcept {
  credit_message m{};
  m.what = credit_word::ring_credits;
  m.count = std::exchange(p.ring_freed, 0);
  report_step();
  ctx_.send_record(p.rank, message::credit, m);
  report_step();
}

// Returns true if the message has to wait until those before it have arrived through the ring.
bool messenger::delay(peer& p, message kind, std::uint16_t sequence, std::span<const std::byte> payload) noexcept {
  if (p.ring_in == nullptr || sequence == p.seen) return false;
  p.delayed.push_back(delayed_.take(static_cast<std::uint16_t>(kind), payload, {}));
  return true;
}

void messenger::take_delayed(peer& p) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  while (!p.delayed.empty()) {
    message_pool::record& first = p.delayed.front();
    envelope e;
    std::memcpy(&e, first.bytes().data(), sizeof e);
    if (e.sequence != p.seen) return;
    RMA_ASSERT(static_cast<message>(first.kind()) == message::eager ||
               static_cast<message>(first.kind()) == message::announce);
    p.delayed.pop_front();
    if (static_cast<message>(first.kind()) == message::eager) {
      take_eager(p, first.bytes());
    } else {
      take_announcement(p, first.bytes());
    }
    delayed_.give_back(first);
  }
  for (std::size_t i = polled_.size(); i-- > 0;) {  // those whose end was reported meanwhile
    if (i >= polled_.size()) continue;
    receive_operation& op = *polled_[i];
    if (op.with == p.rank && op.told_bytes != 0 && op.state == message_state::posted) end_early(op, op.told_bytes);
  }
}

// A write to its memory does not wake this rank: messages use the other channel from now on.
void messenger::close_rings_before_sleep(std::int64_t now_ns) noexcept {
  constexpr std::int64_t look_again_ns = 500, looks_for_ns = 100'000, look_for_last_ns = 200'000;
  for (peer* const p : rings_in_) {
    if (p->gone) continue;
    if (p->ring_in_open) {
      if (p->ring_used_ns == 0) p->ring_used_ns = now_ns;
      if (ctx_.keeps_accounts() && now_ns - p->ring_used_ns < looks_for_ns) {
        look_again(now_ns + look_again_ns);
        continue;
      }
      withdraw_ring(*p);
    }
    if (p->ring_to_come == ~std::uint64_t{0} || p->ring_in->taken() < p->ring_to_come)
      look_again(now_ns + look_for_last_ns);
  }
}

void messenger::on_credit(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  credit_message c;
  if (payload.size() != sizeof c)
    return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::credit), payload.size(),
                                    malformed_reason::wrong_length);
  std::memcpy(&c, payload.data(), sizeof c);
  peer& p = me.peer_of(source);
  RMA_ASSERT(p.rank == source);
  if (p.gone) return;
  switch (c.what) {
    case credit_word::memory: p.used -= static_cast<std::uint32_t>(c.count); break;
    case credit_word::ring_open: return me.open_ring_to(p, c);
    case credit_word::ring_close: return me.close_ring_to(p);
    case credit_word::ring_closed: p.ring_to_come = c.count; return;
    case credit_word::ring_credits:
      if (p.ring_out != nullptr) p.ring_out->ring.give_back(static_cast<std::uint32_t>(c.count));
      return;
    default:
      return me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::credit), payload.size(),
                                      malformed_reason::wrong_contents);
  }
  if (!p.queued.empty()) me.send_queued(p);
}

}  // namespace rma::detail
