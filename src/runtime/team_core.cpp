// SPDX-License-Identifier: Apache-2.0
#include "runtime/team_core.hpp"

#include <algorithm>

#include "coll/team_state.hpp"
#include "p2p/messenger.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t nowhere = ~std::size_t{0};
constexpr std::int32_t taken_meanwhile = -1000;  ///< below every status

}  // namespace

team_core::team_core(std::shared_ptr<runtime_core> runtime, std::uint64_t team_id, const std::vector<int>& world_ranks,
                     int my_rank, int team_size)
    : rt(std::move(runtime)), id(team_id), rank(my_rank), size(team_size) {
  if (!world_ranks.empty()) {
    const std::shared_ptr<int[]> list(new int[world_ranks.size()]);
    std::copy(world_ranks.begin(), world_ranks.end(), list.get());
    members = list;
  }
  std::vector<std::pair<int, int>> here;  // (rank in team, index on node)
  const auto& node = rt->board->members();
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (!rt->near(node[i])) continue;
    if (members == nullptr) {
      here.emplace_back(node[i], static_cast<int>(i));
      continue;
    }
    const auto at = std::find(world_ranks.begin(), world_ranks.end(), node[i]);
    if (at != world_ranks.end()) here.emplace_back(static_cast<int>(at - world_ranks.begin()), static_cast<int>(i));
  }
  std::sort(here.begin(), here.end());
  first = here.front().first;
  mapped = here.back().first - first + 1;
  places.assign(static_cast<std::size_t>(mapped), -1);
  for (const auto& [r, index] : here) places[static_cast<std::size_t>(r - first)] = index;
  one_node = static_cast<int>(here.size()) == size;
  messages = rt->messages.get();
  user_context = message_context(id, message_user::program);
  if (messages != nullptr && messages->is_quick())
    message_lines.reset(new std::atomic<shm::line_pair*>[static_cast<std::size_t>(mapped)]());
  rt->revoked->add(*this);
}

std::vector<int> team_core::nodes_of_members() const {
  if (one_node) return {};
  const fabric::node_map& on = rt->where.nodes;
  std::vector<int> lowest(static_cast<std::size_t>(on.ranks()),
                          -1);  // by number of the node, which is less than that of ranks
  std::vector<int> names(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) {
    int& name = lowest[static_cast<std::size_t>(on.node_of(world_rank(r)))];
    if (name < 0 || !rt->intranode) name = r;
    names[static_cast<std::size_t>(r)] = name;
  }
  return names;
}

// A window's fence and a collective of the team may be the first one at the same time, in different threads.
coll::team_state& team_core::make_collectives() noexcept {
  std::call_once(collectives_once_, [this] { collectives_.store(new coll::team_state(*rt->collectives, *this, id)); });
  return *collectives_.load();
}

// The others may still be looking at this rank's lines.
team_core::~team_core() {
  if (rt->forked()) return;
  rt->messages->forget_team(id);
  far_barrier.drop();
  delete collectives_.load();
  rt->revoked->remove(*this);
  if (has_lines) drop(id, {{{lines_offset, sizeof(barrier_lines) + memory_lines::all_bytes(size)}, {}}});
}

void team_core::drop(std::uint64_t object_id, const std::array<segment_part, 2>& parts) const {
  rt->dropped->drop({object_id, members, size, rank, parts});
}

void team_core::make_lines(const std::source_location& where) {
  if (!one_node || size == 1) return;
  rt->reap_dropped();
  const std::size_t bytes = sizeof(barrier_lines) + memory_lines::all_bytes(size);
  const placement at = allocate(bytes, bytes, bytes, 4096);
  if (at.result == status::out_of_memory)
    throw Error(at.result, "no room in the segments for a team's barrier; raise RMA_SEGMENT_BYTES", -1, where);
  if (!ok(at.result)) raise_team(*this, "the making of a team", at.result, where);
  lines_offset = at.offset;
  has_lines = true;
  const auto lines = [&](int r) {
    return reinterpret_cast<barrier_lines*>(rt->board->segment(static_cast<std::size_t>(node_index(r))) + lines_offset);
  };
  fast.attach(lines(rank), lines(0), lines(size == 2 ? 1 - rank : 0), static_cast<std::uint32_t>(size));
}

status team_core::lost_member() noexcept {
  if (const status s = revocation(); s != status::done) return s;
  if (rt->ctx->deaths() == 0) return status::done;
  if (maker_watch >= 0 && rt->ctx->dead(maker_watch)) {
    rt->ctx->set_last_failed(maker_watch);
    return status::peer_failed;
  }
  for (int r = 0; r < size; ++r) {
    if (!rt->ctx->dead(world_rank(r))) continue;
    rt->ctx->set_last_failed(world_rank(r));
    return status::peer_failed;
  }
  return status::done;
}

status team_core::nobody_left() noexcept {
  if (const status s = lost_member(); s != status::done) return s;
  context& ctx = *rt->ctx;
  if (size == 1 || ctx.threads() == thread_level::multiple) return status::done;
  for (int r = 0; r < size; ++r) {
    if (r != rank && !ctx.gone(world_rank(r))) return status::done;
  }
  ctx.set_last_failed(world_rank(rank == 0 ? 1 : 0));
  return status::peer_failed;
}

status team_core::gone_member() noexcept {
  for (int r = first; r < first + mapped; ++r) {
    if (node_index(r) < 0 || r == rank || !rt->ctx->gone(world_rank(r))) continue;
    rt->ctx->set_last_failed(world_rank(r));
    return status::peer_failed;
  }
  return lost_member();
}

void team_core::ring_all() noexcept {
  for (int i = 0; i < mapped; ++i) {
    if (places[static_cast<std::size_t>(i)] >= 0 && first + i != rank) {
      rt->board->ring_doorbell(static_cast<std::size_t>(places[static_cast<std::size_t>(i)]));
    }
  }
}

void team_core::ring_waiters() noexcept {
  for (int i = 0; i < mapped; ++i) {
    if (places[static_cast<std::size_t>(i)] >= 0 && first + i != rank) {
      rt->board->ring_waiters(static_cast<std::size_t>(places[static_cast<std::size_t>(i)]));
    }
  }
}

status team_core::barrier() noexcept {
  if (const status s = revocation(); s != status::done) return s;
  if (has_lines && rt->intranode) {
    return fast.arrive_and_wait(
        *rt->ctx, [this]() noexcept { ring_waiters(); }, [this]() noexcept { return gone_member(); });
  }
  return far_barrier.run(*this, id, [this]() noexcept { return lost_member(); });
}

// Two teams whose members are used by different threads may agree on the same range at the same time. The later one at
// a member tries another range, with its whole team, at a distance drawn at random: the same teams do not collide
// again and again.
team_core::placement team_core::allocate(std::size_t bytes, std::size_t mine, std::size_t needed,
                                         std::size_t alignment) noexcept {
  std::uint64_t lot = id;
  for (std::size_t from = 0;;) {
    const placement at = allocate_from(from, bytes, mine, needed, alignment);
    if (at.result == status::out_of_memory && from != 0) {
      from = 0;
      continue;
    }
    if (at.result != status::not_yet) return at;
    lot = lot * 6364136223846793005U + 1442695040888963407U;
    from = at.offset + bytes * (1 + (lot >> 61));
  }
}

team_core::placement team_core::allocate_from(std::size_t from, std::size_t bytes, std::size_t mine, std::size_t needed,
                                              std::size_t alignment) noexcept {
  placement at;
  for (std::size_t candidate = from;;) {
    const auto proposal = rt->propose(bytes, candidate, alignment);
    std::uint64_t highest = proposal.value_or(nowhere);
    std::uint64_t lowest = highest;
    at.result = allreduce_one(highest, max);
    if (ok(at.result)) at.result = allreduce_one(lowest, min);
    if (!ok(at.result)) return at;
    if (highest == nowhere) {
      at.result = status::out_of_memory;
      return at;
    }
    if (highest == lowest) {
      at.offset = highest;
      break;
    }
    candidate = highest;
  }
  const status taken = rt->take(at.offset, mine, needed);
  std::int32_t worst = taken == status::not_yet ? taken_meanwhile : static_cast<std::int32_t>(taken);
  at.result = allreduce_one(worst, min);
  if (ok(at.result)) at.result = worst == taken_meanwhile ? status::not_yet : static_cast<status>(worst);
  if (at.result != status::done && taken == status::done) rt->give_back(at.offset, mine);
  return at;
}

}  // namespace rma::detail
