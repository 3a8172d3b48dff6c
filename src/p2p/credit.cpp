// SPDX-License-Identifier: Apache-2.0
/// \file
/// Memory for unexpected messages: each sender has a share of it (RMA_EAGER_MEMORY), counts what its messages take, and
/// gets credit for what is free again.
#include <algorithm>

#include "core/assert.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"

namespace rma::detail {

// Memory of an unexpected message is free; its sender gets the credit with the next envelope, or by a message of its
// own.
void messenger::give_back(peer& p, std::uint32_t units) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  const std::uint32_t repaid = std::min(units, p.lent);
  p.lent -= repaid;
  p.freed += units - repaid;
  if (p.gone) return;
  if (p.freed >= credit_units_) {
    credit_message c{};
    c.count = p.freed;
    report_step();
    ctx_.send_record(p.rank, message::credit, c);
    p.freed = 0;
  }
  note_room(p);
  if (p.is_crowded && awaits(p.rank)) [[unlikely]]
    lend(p);
}

void messenger::give_back_held(peer& p, std::uint32_t units) noexcept {
  RMA_ASSERT(units != 0 && p.held >= units);
  p.held -= units;
  give_back(p, units);
  if (p.gone) note_room(p);
}

// Charges an unexpected message.
void messenger::hold_units(peer& p, std::uint32_t units) noexcept {
  RMA_ASSERT(units != 0 && !p.gone);
  p.held += units;
  note_room(p);
  if (p.is_crowded && awaits(p.rank)) lend(p);
}

void messenger::note_room(peer& p) noexcept {
  const std::uint32_t taken = p.held + p.freed, share = units_max_ + p.lent;
  const bool over_share = taken + unexpected_messages::units_of(0) > share;
  if (over_share == p.is_crowded) return;
  RMA_ASSERT(over_share || crowded_ != 0);
  p.is_crowded = over_share;
  crowded_ += over_share ? 1U : ~0U;
  RMA_ASSERT(crowded_ <= peers_.size());
}

// ---- receives that wait for messages behind a full share
// --------------------------------------------------------------

// The message that a receive waits for may be behind others, which are not received before it: its sender gets more
// memory, as much as it takes to find the message. A rank that waits for nothing lends nothing.
void messenger::lend(peer& p) noexcept {
  if (p.gone || !p.is_crowded) return;
  credit_message c{};
  c.count = p.freed;
  p.freed = 0;
  note_room(p);
  if (p.is_crowded) {
    c.count += credit_units_;
    p.lent += credit_units_;
  }
  note_room(p);
  ctx_.send_record(p.rank, message::credit, c);
}

void messenger::lend_to(int source) noexcept {
  if (source != any_source) return lend(peer_of(source));
  for (const auto& [rank, p] : peers_) lend(*p);
}

/// True if a receive is posted that a message of this rank may match.
bool messenger::awaits(int source) noexcept {
  bool found = false;
  posted_.for_each([&](const receive_operation& op) { found = found || op.peer == source || op.peer == any_source; });
  return found;
}

}  // namespace rma::detail
