// SPDX-License-Identifier: Apache-2.0
#include "runtime/team_core.hpp"

#include <algorithm>
#include <cstring>

#include "p2p/messenger.hpp"
#include "xfer/kernels.hpp"

namespace rma::detail {
namespace {

constexpr std::uint32_t tag_down = 1;
constexpr std::uint32_t tag_up = 2;
constexpr std::int64_t word_under_way_ns = 500'000'000;  ///< at most
constexpr std::size_t nowhere = ~std::size_t{0};
constexpr std::int32_t taken_meanwhile = -1000;  ///< below every status

/// For an operator that is defined for the type.
auto combiner(operation op, element type) noexcept {
  return kernels_for_this_cpu().bulk[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
}

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

// The others may still be looking at this rank's lines.
team_core::~team_core() {
  if (rt->forked()) return;
  rt->messages->forget_team(id);
  collectives.reset();
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

// Binomial tree: the children of v (relative to the root) are v + 2^k for 2^k above v's lowest set bit's power.
// A member whose size is not its parent's forwards a message without data, so that the members below it end, with an
// error.
status team_core::broadcast(std::span<std::byte> data, int root) noexcept {
  status s = lost_member();
  if (s != status::done) return s;
  const std::uint64_t turn = ++sequence;
  const int v = (rank - root + size) % size;
  int bit = 1;
  while (bit < size && (v & bit) == 0) bit <<= 1;
  if (v != 0) {
    const int parent = world_rank(((v - bit) + root) % size);
    s = rt->mail->receive({id, turn, tag_down, parent}, data, [this]() noexcept { return lost_member(); });
    if (s == status::bad_size) data = {};
    if (s != status::done && s != status::bad_size) return s;
  }
  for (int b = bit >> 1; b > 0; b >>= 1) {
    if (v + b < size) rt->mail->send(world_rank((v + b + root) % size), id, turn, tag_down, data);
  }
  return s;
}

status team_core::reduce_to_first(void* data, std::size_t count, element type, operation op) noexcept {
  const std::uint64_t turn = ++sequence;
  const std::size_t bytes = count * bytes_of(type);
  std::vector<std::byte> other(bytes);
  status all = status::done;  // or bad_size, of which all get to know
  for (int bit = 1; bit < size; bit <<= 1) {
    if ((rank & bit) != 0) {
      const std::size_t sent = all == status::done ? bytes : 0;
      rt->mail->send(world_rank(rank - bit), id, turn, tag_up, {static_cast<const std::byte*>(data), sent});
      return all;
    }
    if (rank + bit >= size) continue;
    const status s = rt->mail->receive({id, turn, tag_up, world_rank(rank + bit)}, other,
                                       [this]() noexcept { return lost_member(); });
    if (s == status::bad_size) all = s;
    if (s != status::done && s != status::bad_size) return s;
    if (all == status::done && count != 0) combiner(op, type)(data, other.data(), count);
  }
  return all;
}

// A member whose operator is none, or not defined for the type, takes part without data, so that the others end, with
// bad_size.
status team_core::allreduce(void* data, std::size_t count, element type, operation op) noexcept {
  if (const status s = lost_member(); s != status::done) return s;
  const bool fits = defined_for(op, type);
  if (!fits) count = 0;
  status s = size == 1 ? status::done : reduce_to_first(data, count, type, op);
  if (s != status::done && s != status::bad_size) return s;
  const std::size_t sent = s == status::done ? count * bytes_of(type) : 0;
  const status delivered = size == 1 ? status::done : broadcast({static_cast<std::byte*>(data), sent}, 0);
  if (s == status::done) s = delivered;
  return fits || (s != status::done && s != status::bad_size) ? s : status::bad_type;
}

status team_core::allgather(std::span<const std::byte> mine, std::byte* all) noexcept {
  if (const status s = lost_member(); s != status::done) return s;
  const std::uint64_t turn = ++sequence;
  const std::size_t bytes = mine.size();
  status fits = status::done;
  if (rank != 0) {
    rt->mail->send(world_rank(0), id, turn, tag_up, mine);
  } else {
    if (bytes != 0) std::memcpy(all, mine.data(), bytes);
    for (int r = 1; r < size; ++r) {
      const status s =
          rt->mail->receive({id, turn, tag_up, world_rank(r)}, {all + static_cast<std::size_t>(r) * bytes, bytes},
                            [this]() noexcept { return lost_member(); });
      if (s == status::bad_size) fits = s;
      if (s != status::done && s != status::bad_size) return s;
    }
  }
  const status delivered = broadcast({all, fits == status::done ? bytes * static_cast<std::size_t>(size) : 0}, 0);
  return fits != status::done ? fits : delivered;
}

// Member 0 sends the result to each other member. A member that learns of a death before it arrives waits on for a
// while: the result may be under way, unless member 0 has noticed the death in another call.
status team_core::allgather_alike(std::span<const std::byte> mine, std::byte* all) noexcept {
  const std::uint64_t turn = ++sequence;
  const std::size_t bytes = mine.size();
  const auto failed = [this]() noexcept { return lost_member(); };
  status s = failed();
  if (rank != 0) {
    if (s != status::done) return s;  // and member 0 waits in vain
    const mailbox::address word{id, turn, tag_down, world_rank(0)};
    const std::span<std::byte> whole{all, bytes * static_cast<std::size_t>(size)};
    rt->mail->send(world_rank(0), id, turn, tag_up, mine);
    s = rt->mail->receive(word, whole, failed);
    if (s == status::peer_failed) {
      const auto gone = [&]() noexcept { return rt->ctx->gone(word.source) ? status::peer_failed : status::done; };
      (void)rt->ctx->wait({.fails_if = gone, .deadline_ns = rt->ctx->after_ns(word_under_way_ns)});
      if (const status late = rt->mail->try_receive(word, whole); late != status::not_yet) s = late;
    }
    return s != status::bad_size ? s : rt->ctx->wait({.fails_if = failed});
  }
  std::memcpy(all, mine.data(), bytes);
  for (int r = 1; r < size && s == status::done; ++r) {
    s = rt->mail->receive({id, turn, tag_up, world_rank(r)}, {all + static_cast<std::size_t>(r) * bytes, bytes},
                          failed);
  }
  const std::size_t delivered = s == status::done ? bytes * static_cast<std::size_t>(size) : 0;
  for (int r = 1; r < size; ++r) rt->mail->send(world_rank(r), id, turn, tag_down, {all, delivered});
  return s;
}

status team_core::barrier() noexcept {
  if (const status s = revocation(); s != status::done) return s;
  if (has_lines && rt->intranode) {
    return fast.arrive_and_wait(
        *rt->ctx, [this]() noexcept { ring_waiters(); }, [this]() noexcept { return gone_member(); });
  }
  return message_barrier(id, far_barrier, [this]() noexcept { return lost_member(); });
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
