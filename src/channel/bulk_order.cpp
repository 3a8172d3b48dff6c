// SPDX-License-Identifier: Apache-2.0
#include "channel/bulk_order.hpp"

#include <utility>

#include "channel/context.hpp"

namespace rma::detail {

bulk_order::bulk_order(context& ctx) : ctx_(ctx) { ctx.add_duty(&bulk_order::on_duty, this); }

bulk_order::peer_queues& bulk_order::queues_of(int peer) {
  auto& found = peers_[peer];
  if (found == nullptr) found = std::make_unique<peer_queues>();
  return *found;
}

// True if the first transfer has posted everything, so that the next may post.
bool bulk_order::post_first(peer_queues& of, queue& q) {
  if (q.empty()) return false;
  bulk_turn& first = q.front();
  const bulk_turn::progress made = first.post(first);
  if (made == bulk_turn::progress::no_room && !std::exchange(of.blocked, true)) {
    blocked_.push_back(&of);
    ctx_.on_duty(this, true);
  }
  if (made != bulk_turn::progress::over) return false;
  RMA_ASSERT(!q.empty() && &q.front() == &first);  // only the first in a queue posts
  first.in_queue.unlink();
  first.posted(first);
  return true;
}

void bulk_order::pump(peer_queues& of) {
  while (post_first(of, of.receives)) continue;
  while (post_first(of, of.sends)) continue;
}

unsigned bulk_order::on_duty(void* self) noexcept {
  auto& me = *static_cast<bulk_order*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(me.asked_.empty());
  me.ctx_.on_duty(self, false);
  std::swap(me.asked_, me.blocked_);
  for (peer_queues* const of : me.asked_) {
    RMA_ASSERT(of->blocked);
    of->blocked = false;
    me.pump(*of);
  }
  me.asked_.clear();
  return 0;
}

}  // namespace rma::detail
