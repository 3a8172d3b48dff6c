// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/send_queues.hpp"

namespace rma::verbs {

bool send_queues::post_list(connection& c, std::span<send_request> all) noexcept {
  RMA_ASSERT(!all.empty() && has_room(c, all.size()));
  const auto count_of_all = static_cast<std::uint32_t>(all.size());
  const bool signalled = signals_write(c, all.back().must_signal, count_of_all);
  for (std::uint32_t i = 0; i < count_of_all; ++i) {
    ibv_send_wr& request = all[i].request;
    request.wr_id = label_of(c, c.head + i);
    request.sg_list = all[i].pieces.data();
    request.next = i + 1 == count_of_all ? nullptr : &all[i + 1].request;
  }
  if (signalled) all.back().request.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  if (::ibv_post_send(c.queue_pair, &all.front().request, &refused) != 0) {
    if (refused == &all.front().request) return false;
    all_.manager().give_up(c);  // some entries are posted: `abandon` ends these and the others
  }
  for (const send_request& o : all) {
    c.at(c.head++) = o.then;
    count(o);
  }
  ++counts_.lists;
  counts_.listed += count_of_all;
  budget_.under_way += count_of_all;
  c.unsignalled = signalled ? 0 : c.unsignalled + count_of_all;
  if (!signalled) list_tail(c);
  return true;
}

void send_queues::ask_for_tails() noexcept {
  std::erase_if(tails_, [&](connection* c) {
    if (c->unsignalled != 0 && c->state.load() == connection_state::ready) {
      if (!has_room(*c)) return false;  // a full queue has signaled entries
      send_request o;
      o.request.opcode = IBV_WR_RDMA_WRITE;
      o.must_signal = true;
      if (post(*c, o) != status::posted) return false;
      ++counts_.tail_writes;
    }
    c->listed = false;
    return true;
  });
}

bool send_queues::quiet() noexcept {
  std::uint32_t unheard = 0;
  for (connection* const c : all_.all()) {
    if (budget_.under_way == 0 || c == nullptr) continue;
    if (c->left.load(std::memory_order_relaxed)) {
      unheard += c->head - c->tail;
    } else if (c->unsignalled != 0) {
      list_tail(*c);
    }
  }
  return budget_.under_way == unheard;
}

}  // namespace rma::verbs
