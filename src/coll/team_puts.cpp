// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "coll/machine.hpp"
#include "coll/put_channels.hpp"
#include "coll/team_state.hpp"
#include "core/assert.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail::coll {

// --------------------------------------------------------------------------------------------------------

team_puts::team_puts(put_channels& all, team_state& team)
    : all_(all), state_(team), team_(team.team()), channels_(static_cast<std::size_t>(team.team().size)) {}

team_puts::~team_puts() {
  for (auto& each : channels_) {
    if (each != nullptr) all_.retire(std::move(each));
  }
}

put_channel& team_puts::channel(int member) {
  auto& c = channels_[static_cast<std::size_t>(member)];
  if (c == nullptr) {
    c = std::make_unique<put_channel>();
    c->all = &all_;
    c->of = this;
    c->team = team_.id;
    c->member = member;
    c->world_rank = team_.world_rank(member);
    for (std::size_t lane = 0; lane < put_lanes; ++lane) {
      for (put_channel::write& w : c->out[lane].writes) {
        w.of = c.get();
        w.lane = static_cast<std::uint8_t>(lane);
      }
    }
  }
  return *c;
}

status team_puts::send(send_operation& op, int to) noexcept {
  put_channel& c = channel(to);
  const std::size_t lane = lane_of(op.context);
  RMA_ASSERT(op.ended.load(std::memory_order_relaxed) != 0);
  op.ended.store(0, std::memory_order_relaxed);
  op.moved = op.total = 0;
  if (c.out[lane].waiting.empty()) {
    const status s = all_.advance(c, lane, op);
    if (s != status::posted) {
      op.result = s;
      op.ended.store(1, std::memory_order_relaxed);
      return s;
    }
  }
  c.out[lane].waiting.push_back(op);
  if (!c.granted && !c.asked) all_.request(c);
  return status::posted;
}

status team_puts::receive(receive_operation& op, int from) noexcept {
  put_channel& c = channel(from);
  const std::size_t lane = lane_of(op.context);
  RMA_ASSERT(op.ended.load(std::memory_order_relaxed) != 0);
  op.ended.store(0, std::memory_order_relaxed);
  op.moved = 0;
  if (c.in[lane].awaited.empty() && all_.take(c, lane, op)) {
    op.ended.store(1, std::memory_order_relaxed);
    return op.result;
  }
  c.in[lane].awaited.push_back(op);
  return status::posted;
}

void team_puts::withdraw(message_operation& op, status why) noexcept {
  RMA_ASSERT(!ok(why) && op.ended.load(std::memory_order_relaxed) == 0);
  message_operation::list::node_algorithms::unlink(message_operation::list::value_traits::to_node_ptr(op));
  op.result = why;
  op.ended.store(1, std::memory_order_relaxed);
}

bool team_puts::enter(running& r) noexcept {
  lane_list& lane = lanes_[lane_of(r.turn())];
  const bool free = lane.empty();
  lane.push_back(r);
  r.laned = true;
  return free;
}

// The next one begins with the next round of progress: many that are complete at once would nest here.
void team_puts::remove(running& r) noexcept {
  if (!std::exchange(r.laned, false)) return;
  lane_list& lane = lanes_[lane_of(r.turn())];
  const bool ran = &lane.front() == &r;
  lane.erase(lane.iterator_to(r));
  if (ran && !lane.empty()) state_.all().add_work(lane.front());
}

int team_puts::find_stray(running& r, put_head& found) const noexcept {
  const std::size_t lane = lane_of(r.turn());
  for (const auto& c : channels_) {
    if (c == nullptr || c->in_memory.at == nullptr) continue;
    const put_channel::lane_in& l = c->in[lane];
    if (!l.arrived[l.taken % put_slots]) continue;
    std::memcpy(&found, c->in_memory.at + slot_of(lane, l.taken) * c->in_memory.slot_bytes, sizeof found);
    const bool awaited = r.of().by_puts && found.signature == r.signature() && r.takes_from(c->member);
    if (found.turn == r.turn() && !awaited) return c->member;
  }
  return -1;
}

}  // namespace rma::detail::coll
