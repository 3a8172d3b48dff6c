// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/connections.hpp"

#include <bit>
#include <utility>

#include "core/assert.hpp"
#include "fabric/verbs/open.hpp"

namespace rma::verbs {

connections::connections(adapter& device, int rank, std::string key, const queue_plan& plan)
    : entries_(plan.entries), manager_(device, rank, std::move(key), plan) {}

// Returns `retry_queue_full` until the handshake is complete.
status connections::reach_another(int peer, connection*& c) noexcept {
  if (const auto at = by_peer_.find(peer); at != by_peer_.end()) {
    last_ = c = at->second;
  } else if (const status s = look_for(peer, channel::control, c); s != status::done) {
    return s;
  } else {
    by_peer_[peer] = c;
  }
  switch (c->state.load(std::memory_order_acquire)) {
    case connection_state::ready:
      if (c->mask == 0) [[unlikely]]
        make_ring(*c);
      return status::done;
    case connection_state::dead: return status::peer_failed;
    case connection_state::broken:  // until `poll` has ended its entries
    case connection_state::asking:
    case connection_state::answering: break;
  }
  return status::retry_queue_full;
}

void connections::make_ring(connection& c) noexcept {
  RMA_ASSERT(c.ring.empty() && c.head == c.tail);
  c.ring.resize(std::bit_ceil(entries_ + 1));
  c.mask = static_cast<std::uint32_t>(c.ring.size()) - 1;
  list(c);
}

void connections::list(connection& c) noexcept {
  if (by_index_.size() <= c.index) by_index_.resize(c.index + 1);
  by_index_[c.index] = &c;
}

status connections::look_for(int peer, channel of, connection*& c) noexcept {
  c = manager_.find(peer, of);
  if (c == nullptr) {
    std::string text;
    manager_address theirs;
    if (const status s = directory_->look_up(peer, address_key(peer), text); !ok(s)) return s;
    if (!parse(text, theirs)) return status::unreachable;
    c = manager_.connect(peer, theirs, of);
  }
  return status::done;
}

connection* connections::source_of(std::uint32_t queue_pair) noexcept {
  connection*& known = by_queue_pair_[queue_pair];
  if (known == nullptr) known = manager_.find_queue_pair(queue_pair);
  return known;
}

void connections::lose(const connection& c, fabric::sink& to) noexcept {
  manager_.forget(c.peer);
  to.on_broken(c.peer);
}

}  // namespace rma::verbs
