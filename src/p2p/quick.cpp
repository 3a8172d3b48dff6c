// SPDX-License-Identifier: Apache-2.0
#include "p2p/quick.hpp"

#include "core/assert.hpp"

namespace rma::detail {

// Sets up the lines of a new peer.
void messenger::find_lines(peer& p) noexcept {
  fabric::network& network = ctx_.network_of(p.rank);
  if (!quick_ || &network != &ctx_.node() || p.asks) return;
  fabric::reservations* const bound = network.as_reservations();
  if (bound != nullptr) p.lines = bound->lines_with(p.rank);
  if (p.lines == nullptr) return;
  p.lines->user = &p;
  p.before_lines = &ctx_.peer_of(p.rank);
}

shm::line_pair* messenger::lines_with(int rank) noexcept {
  const std::lock_guard guard(ctx_.lock());
  return peer_of(rank).lines;
}

void messenger::ring(const peer& p) noexcept { ctx_.around().ring(p.rank); }

void messenger::tell_sent(const shm::line_pair& to) noexcept { ring(*static_cast<const peer*>(to.user)); }

void messenger::tell_received(const shm::line_pair& from) noexcept { took(*static_cast<peer*>(from.user)); }

// The peer may sleep while it waits for room in its ring, or for credit.
void messenger::took(peer& p) noexcept {
  full_fence();
  ring(p);
  give_back(p, 0);
  if (!p.queued.empty()) send_queued(p);
}

// Takes arrived messages of this rank that need nothing but a receive.
void messenger::take_near(shm::line_pair& l) noexcept {
  constexpr unsigned per_turn = 16;
  RMA_ASSERT(ctx_.is_guarded() && l.user != nullptr);
  peer& p = *static_cast<peer*>(l.user);
  RMA_ASSERT(p.lines == &l);
  for (unsigned left = per_turn; left > 0; --left) {
    const shm::message_header* const h = l.in->front();
    if (h == nullptr || h->kind != static_cast<std::uint16_t>(message::eager) || h->lines != 1) return;
    const std::span message(reinterpret_cast<const std::byte*>(h + 1), h->stamp.load() - std::size_t{1});
    envelope e;
    if (message.size() < sizeof e) return;
    std::memcpy(&e, message.data(), sizeof e);
    if (e.tag < 0) return;  // the handler of all messages rejects it
    ctx_.count(counter::messages_received);
    take_eager(p, message);
    if (l.in->take_line()) {
      full_fence();
      ring(p);
    }
  }
}

// Returns true if the operation is complete, since its message has arrived soon. Otherwise the wait goes on, for all
// messages.
bool messenger::spin_near(message_operation& op) noexcept {
  if (op.is_send || op.peer < 0 || !quick_ || (op.bytes > short_message_max && last_was_long())) return false;
  for (unsigned left = ctx_.first_spins(); left > 0; --left) {
    {
      const quick_turn turn(ctx_);
      shm::line_pair* const l = peer_of(op.peer).lines;
      if (l == nullptr || !l->in || l->forgotten) return false;
      take_near(*l);
    }
    if (op.ended.load(std::memory_order_acquire) != 0) return true;
    spin_pause();
  }
  return false;
}

}  // namespace rma::detail
