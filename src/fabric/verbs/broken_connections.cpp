// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/broken_connections.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/clock.hpp"

namespace rma::verbs {
namespace {

void list(std::vector<connection*>& in, connection& c) {
  if (std::find(in.begin(), in.end(), &c) == in.end()) in.push_back(&c);
}

}  // namespace

void broken_connections::take(connection& c, fabric::sink& to) noexcept {
  RMA_ASSERT(c.of != channel::bulk);
  const connection_state state = c.state.load(std::memory_order_acquire);
  if (state == connection_state::dead && !std::exchange(c.abandoned, true)) abandon(c, status::peer_failed, to);
  if (state != connection_state::broken) return;
  abandon(c, status::transfer_failed, to);
  all_.manager().mend(c);
}

// Messages are kept: their completion is not reported, but their receivers wait for them.
void broken_connections::abandon(connection& c, status result, fabric::sink& to) noexcept {
  std::vector<completion_action> kept;
  while (c.tail != c.head) {
    const completion_action w = queues_.retire(c);
    if (result == status::peer_failed) {
      bounced_.end(w, result, to);
    } else if (w.message) {
      kept.push_back(w);
    } else if (w.silent) {
      bounced_.end(w, result, to);
    } else {
      c.unresolved.push_back(w);
    }
  }
  c.unsignalled = 0;
  c.silent = 0;
  c.resend.insert(c.resend.begin(), kept.begin(), kept.end());
  if (!c.resend.empty()) list(unsent_, c);
  bounced_.stop(c);
  queued_.end(c, result, bounced_, to);
  if (result == status::peer_failed) {
    for (const completion_action& w : std::exchange(c.resend, {})) bounced_.end(w, result, to);
    end_unresolved(c, result, to);
  } else if (!c.unresolved.empty()) {
    c.doubt_since_ns = detail::clock_ns();
    list(doubted_, c);
  }
}

void broken_connections::go_on() noexcept {
  std::erase_if(unsent_, [&](connection* c) {
    const connection_state state = c->state.load(std::memory_order_acquire);
    if (state == connection_state::dead || c->left.load(std::memory_order_relaxed)) return true;
    return state == connection_state::ready && send_again(*c) == status::done;
  });
}

void broken_connections::resolve_doubts(fabric::sink& to) noexcept {
  const std::int64_t now_ns = detail::clock_ns();
  std::erase_if(doubted_, [&](connection* c) {
    const bool dead = c->state.load(std::memory_order_acquire) == connection_state::dead;
    const bool lives = !dead && c->heard_ns.load(std::memory_order_relaxed) > c->doubt_since_ns;
    const bool late = now_ns - c->doubt_since_ns > doubt_ns;
    if (!dead && !lives && !late) return false;
    if (!dead && !lives) all_.lose(*c, to);
    end_unresolved(*c, lives ? status::transfer_failed : status::peer_failed, to);
    return true;
  });
}

void broken_connections::end_unresolved(connection& c, status result, fabric::sink& to) noexcept {
  for (const completion_action& w : std::exchange(c.unresolved, {})) bounced_.end(w, result, to);
}

status broken_connections::send_again(connection& c) noexcept {
  while (!c.resend.empty()) {
    if (!queues_.has_room(c)) return status::retry_queue_full;
    send_request o;
    o.then = c.resend.front();
    RMA_ASSERT(o.then.message && o.then.buffer >= 0);
    memory_.describe_buffer(o);
    if (post_message(queues_, c, o) != status::posted) return status::retry_queue_full;
    c.resend.erase(c.resend.begin());
  }
  return status::done;
}

status post_message(send_queues& queues, connection& c, send_request& o) noexcept {
  o.request.opcode = IBV_WR_SEND_WITH_IMM;
  o.request.imm_data = htonl(static_cast<std::uint32_t>(o.then.token));
  o.then.message = true;
  o.then.silent = true;
  if (o.then.bytes <= c.inline_max.load(std::memory_order_relaxed)) o.request.send_flags |= IBV_SEND_INLINE;
  return queues.post(c, o);
}

}  // namespace rma::verbs
