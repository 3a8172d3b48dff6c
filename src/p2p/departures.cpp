// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks that die or leave the job: pending operations with them end, once nothing more can arrive from them.
#include <cstdint>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"

namespace rma::detail {

// Removes the operations from all tables before it completes them: a completion may start others, and cancel some of
// these.
void messenger::fail_all_of(peer& p) noexcept {
  RMA_ASSERT(!p.gone && starting_ == nullptr);
  p.gone = true;
  drop_requests(p.rank);
  while (!p.delayed.empty()) {
    message_pool::record& first = p.delayed.front();
    p.delayed.pop_front();
    delayed_.give_back(first);
  }
  message_operation::list failed;
  const auto fail = [&](message_operation& op) {
    detach(op);
    RMA_ASSERT(op.id == 0 && op.ended.load(std::memory_order_relaxed) == 0);
    op.state = message_state::failing;
    failed.push_back(op);
  };
  while (!p.queued.empty()) fail(p.queued.front());
  while (!p.streams.empty()) fail(p.streams.front());
  ids_.for_each([&](message_operation& op) {
    if (op.with == p.rank) fail(op);
  });
  std::vector<receive_operation*> posted;  // a completion may request another of them
  posted_.for_each([&](receive_operation& op) {
    if (op.peer == p.rank) posted.push_back(&op);
  });
  for (receive_operation* const op : posted) fail(*op);
  unexpected_.for_each([&](unexpected_message& m) {
    if (m.key.source != p.rank || m.send == 0) return;
    unexpected_.remove(m);
    RMA_ASSERT(p.held >= m.units);
    p.held -= m.units;
    unexpected_.free(m);
  });
  note_room(p);
  while (!failed.empty()) {
    message_operation& op = failed.front();
    failed.pop_front();
    op.state = message_state::idle;
    finish(op, status::peer_failed);
  }
  RMA_ASSERT(p.queued.empty() && p.streams.empty() && p.delayed.empty());
}

unsigned messenger::look_at_peers() noexcept {
  std::vector<peer*> gone;
  bool may_say_more = false;
  for (const auto& [rank, p] : peers_) {
    if (p->gone || !ctx_.gone(rank)) continue;
    if (ctx_.dead(rank) || has_said_all(*p)) {
      gone.push_back(p.get());
    } else {
      may_say_more = true;
    }
  }
  for (peer* const p : gone) fail_all_of(*p);
  if (may_say_more) await_last_words();
  return static_cast<unsigned>(gone.size());
}

/// Messages that a rank sent before it left may still be in this node's rings, which are read until the next round, or
/// in a network, even if nothing has arrived from it yet that a goodbye could follow.
bool messenger::has_said_all(peer& p) noexcept {
  constexpr std::int64_t patience_ns = 300'000'000;
  const std::int64_t now_ns = ctx_.around().now_ns();
  fabric::network* const wide = ctx_.wide();
  const bool far = wide != nullptr && &ctx_.network_of(p.rank) == wide;
  if (p.left_ns == 0) {
    p.left_ns = now_ns;
    return false;
  }
  return !far || (!wide->as_liveness().expects_goodbye(p.rank) && now_ns - p.left_ns >= patience_ns);
}

void messenger::await_last_words() noexcept {
  is_awaiting_ = true;
  ctx_.on_duty(this, true);
}

void messenger::on_news(void* self) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  (void)me.look_at_peers();
  RMA_ASSERT(me.crowded_ <= me.peers_.size());
}

}  // namespace rma::detail
