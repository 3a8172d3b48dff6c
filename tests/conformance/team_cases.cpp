// SPDX-License-Identifier: Apache-2.0
// Teams and their collectives.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

// Goal: a team's members know their numbers in the team and in the world; copies are the same team.
void world_is_everyone(context& ctx) {
  rma::Team& world = ctx.world();
  for (int r = 0; r < world.size(); ++r) ctx.equal(world.world_rank(r), r, "world rank of a member of the world");
  ctx.equal(world.rank_of(world.size()), -1, "member that there is not");
  rma::Team copy = world;
  copy.barrier();
  ctx.equal(copy.rank(), world.rank(), "rank in a copy");
}

// Goal: split gives each color a team, in the order of the keys.
// Method: colors by rank % 3, keys that reverse the order; checked through world ranks on all members.
void split_by_color_and_key(context& ctx) {
  const int color = ctx.rank() % 3;
  rma::Team part = ctx.world().split(color, -ctx.rank());
  int members = 0;
  for (int r = color; r < ctx.size(); r += 3) ++members;
  ctx.equal(part.size(), members, "members of a color");
  ctx.equal(part.world_rank(part.rank()), ctx.rank(), "this rank in the new team");
  int found = 0;
  for (int r = 0; r < ctx.size(); ++r) {
    const int member = part.rank_of(r);
    if (member >= 0) ++found;
    ctx.check(member < 0 || part.world_rank(member) == r, "rank_of and world_rank disagree");
  }
  ctx.equal(found, part.size(), "members that rank_of finds");
  for (int r = 1; r < part.size(); ++r) {
    ctx.check(part.world_rank(r) < part.world_rank(r - 1), "keys do not order the new team");
  }
  const int total = part.allreduce(ctx.rank(), rma::sum);
  int wanted = 0;
  for (int r = color; r < ctx.size(); r += 3) wanted += r;
  ctx.equal(total, wanted, "sum over the color");
}

// Goal: equal keys keep the order of the ranks; a negative color is a team of one.
void split_ties_and_loners(context& ctx) {
  rma::Team same = ctx.world().split(7, 0);
  ctx.equal(same.size(), ctx.size(), "size with one color");
  ctx.equal(same.rank(), ctx.rank(), "rank with equal keys");
  rma::Team alone = ctx.world().split(ctx.rank() == 0 ? 0 : -1, 0);
  ctx.equal(alone.size(), 1, "size of a loner's team");
  alone.barrier();
  ctx.equal(alone.allreduce(5, rma::sum), 5, "allreduce of one rank");
}

// Goal: teams of teams work, and many teams can live and die.
// Method: halves recursively down to one rank, 20 times; each level is checked by an allreduce.
void splits_of_splits(context& ctx) {
  const std::size_t rounds = ctx.rounds(20);
  for (std::size_t i = 0; i < rounds; ++i) {
    rma::Team team = ctx.world();
    while (team.size() > 1) {
      const int half = team.size() / 2;
      const bool low = team.rank() < half;
      const int wanted = low ? half : team.size() - half;
      team = team.split(low ? 0 : 1, team.rank());
      ctx.equal(team.allreduce(1, rma::sum), wanted, "members of a half");
    }
  }
}

// Goal: node() has the ranks that share memory, and only those.
void node_shares_memory(context& ctx) {
  rma::Team node = ctx.world().node();
  for (int r = 0; r < node.size(); ++r) {
    ctx.check(ctx.world().shares_memory(node.world_rank(r)) == node.shares_memory(r), "team and world disagree");
  }
  bool all = true;
  for (int r = 0; r < ctx.size(); ++r) all = all && (r == ctx.rank() || ctx.world().shares_memory(r));
  ctx.equal(ctx.world().one_node(), all, "one_node() of the world");
  ctx.check(!all || node.size() == ctx.size(), "all share memory, but node() is smaller than the world");
}

// Goal: shrink of a team without dead members has the same members.
void shrink_of_the_living(context& ctx) {
  rma::Team same = ctx.world().shrink();
  ctx.equal(same.size(), ctx.size(), "members of a shrunk healthy team");
  ctx.equal(same.rank(), ctx.rank(), "rank in a shrunk healthy team");
  same.barrier();
}

// Goal: the library's own process sets exist everywhere; their teams are those of their members, each call's another.
// Method: two teams of each set, used in turn on all members; who is in a team is seen through ranks_of and world_rank.
void own_process_sets(context& ctx) {
  const std::vector<std::string> names = ctx.runtime().process_sets();
  const auto size_of = [&](const std::string& name) {
    ctx.check(std::find(names.begin(), names.end(), name) != names.end(), name + " is not listed");
    const std::vector<int> ranks = ctx.runtime().ranks_of(name);
    rma::Team one = ctx.runtime().team_of(name);
    rma::Team other = ctx.runtime().team_of(name);
    ctx.equal(static_cast<std::size_t>(one.size()), ranks.size(), "members of " + name);
    for (int r = 0; r < one.size(); ++r) ctx.equal(one.world_rank(r), ranks[static_cast<std::size_t>(r)], name);
    ctx.equal(one.world_rank(one.rank()), ctx.rank(), "this rank in " + name);
    ctx.equal(one.allreduce(1, rma::sum) + other.allreduce(1, rma::sum), 2 * one.size(), "sums over " + name);
    other.barrier();
    one.barrier();
    return one.size();
  };
  ctx.equal(size_of("rma://world"), ctx.size(), "the world");
  ctx.equal(size_of("rma://node"), ctx.world().node().size(), "the node");
  ctx.equal(size_of("rma://self"), 1, "this rank alone");
}

// Goal: sets that a user or a launcher has defined have teams, of their members alone. Method: the set "even", where
// RMA_PROCESS_SETS defines it; the others are told that they are none of it, and what to do.
void defined_process_set(context& ctx) {
  const std::vector<std::string> names = ctx.runtime().process_sets();
  if (std::find(names.begin(), names.end(), "even") == names.end()) context::skip("no process set 'even' is defined");
  std::vector<int> even;
  for (int r = 0; r < ctx.size(); r += 2) even.push_back(r);
  ctx.check(ctx.runtime().ranks_of("even") == even, "members of the set");
  if (ctx.rank() % 2 != 0) {
    ctx.throws(rma::status::bad_argument, {"team_of", "'even'", "ranks_of"},
               [&] { (void)ctx.runtime().team_of("even"); });
    return;
  }
  rma::Team team = ctx.runtime().team_of("even");
  auto win = rma::Window<int>::allocate(team, 1);
  win.fence();
  win.put(ctx.rank(), (team.rank() + 1) % team.size(), 0);
  win.fence();
  ctx.equal(win[0], team.world_rank((team.rank() + team.size() - 1) % team.size()), "put by the member before");
}

// Goal: a list of ranks makes a team of them, in its order, without the others. Method: all ranks but the first, the
// last one first; two teams of the list at once. Lists that make no team are refused.
void listed_ranks(context& ctx) {
  const std::vector<int> twice{ctx.rank(), ctx.rank()};
  const std::vector<int> outside{ctx.rank(), ctx.size()};
  ctx.throws(rma::status::bad_argument, {"team_of_ranks"}, [&] { (void)ctx.runtime().team_of_ranks(twice); });
  ctx.throws(rma::status::bad_argument, {"team_of_ranks"}, [&] { (void)ctx.runtime().team_of_ranks({}); });
  ctx.throws(rma::status::bad_rank, {"team_of_ranks"}, [&] { (void)ctx.runtime().team_of_ranks(outside); });
  std::vector<int> ranks;
  for (int r = ctx.size() - 1; r > 0; --r) ranks.push_back(r);
  if (ctx.rank() == 0) return;
  rma::Team one = ctx.runtime().team_of_ranks(ranks);
  rma::Team other = ctx.runtime().team_of_ranks(ranks);
  ctx.equal(one.rank(), ctx.size() - 1 - ctx.rank(), "rank in the list's team");
  ctx.equal(one.allreduce(1, rma::sum) + other.allreduce(1, rma::sum), 2 * one.size(), "sums over the list");
  auto win = rma::Window<int>::allocate(one, 1);
  win.fence();
  win.put(ctx.rank(), (one.rank() + 1) % one.size(), 0);
  win.fence();
  ctx.equal(win[0], one.world_rank((one.rank() + one.size() - 1) % one.size()), "put by the member before");
}

// Goal: a set that is not there is an error that lists those that are.
void unknown_process_set(context& ctx) {
  for (const auto call : {0, 1}) {
    ctx.throws(rma::status::bad_argument, {"'no such set'", "rma://world", "rma://node", "rma://self"}, [&] {
      if (call == 0) (void)ctx.runtime().ranks_of("no such set");
      if (call == 1) (void)ctx.runtime().team_of("no such set");
    });
  }
}

// Goal: nobody leaves a barrier before everybody has entered it, and what was written before is seen after.
// Method: each rank counts up its own word (plain memory of a window) before each barrier; after it, everyone's word
// must have reached the round. Break: return from Team::barrier without waiting.
void barrier_separates(context& ctx) {
  auto win = rma::Window<std::uint64_t>::allocate(ctx.world(), 8);
  const auto hold = win.lock_all();
  const std::size_t rounds = ctx.rounds(2000);
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    win.put(i, ctx.rank(), 0);
    win.flush(ctx.rank());
    ctx.world().barrier();
    for (int r = 0; r < ctx.size(); ++r) {
      const std::uint64_t seen = win.get(r, 0);
      if (seen != i) ctx.fail("rank " + std::to_string(r) + " was seen in another round");
    }
    ctx.expect(ctx.world().try_barrier(), rma::status::done, "try_barrier");
  }
}

// Goal: broadcast carries any size from any root.
// Method: sizes from 0 to 3 MiB (+-1 around powers of two), roots in turn; contents tagged by root and size.
void broadcast_sizes(context& ctx) {
  int root = 0;
  for (const std::size_t base : {0U, 1U, 64U, 4096U, 65536U, 1048576U, 3145728U}) {
    for (const int step : {-1, 0, 1}) {
      if (base == 0 && step < 0) continue;
      const std::size_t bytes = base + static_cast<std::size_t>(step);
      std::vector<unsigned char> data(bytes, 0xee);
      if (ctx.rank() == root) fill_tagged(std::span(data), root, bytes);
      ctx.world().broadcast(std::span(data), root);
      ctx.equal(first_untagged(std::span<const unsigned char>(data), root, bytes), bytes, "first wrong byte");
      root = (root + 1) % ctx.size();
    }
  }
}

template <class T>
T part_of(int rank, std::size_t i) {
  return static_cast<T>(static_cast<std::int8_t>((static_cast<std::size_t>(rank) * 7 + i * 3) % 5 + 1));
}

template <class T>
T combine(rma::operation op, T a, T b) {
  using rma::operation;
  if (op == operation::sum) return static_cast<T>(a + b);
  if (op == operation::prod) return static_cast<T>(a * b);
  if (op == operation::replace) return b;
  if (op == operation::no_op) return a;
  if constexpr (std::is_arithmetic_v<T>) {
    if (op == operation::min) return std::min(a, b);
    if (op == operation::max) return std::max(a, b);
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case operation::land: return static_cast<T>(a != 0 && b != 0);
      case operation::lor: return static_cast<T>(a != 0 || b != 0);
      case operation::lxor: return static_cast<T>((a != 0) != (b != 0));
      case operation::band: return static_cast<T>(a & b);
      case operation::bor: return static_cast<T>(a | b);
      default: return static_cast<T>(a ^ b);
    }
  }
  return a;
}

template <class T>
void allreduce_of(context& ctx) {
  for (std::size_t o = 0; o < rma::operation_count; ++o) {
    const auto op = static_cast<rma::operation>(o);
    if (!rma::defined_for(op, rma::element_of<T>)) continue;
    if (op == rma::operation::replace || op == rma::operation::no_op) continue;
    std::vector<T> data(37);
    std::vector<T> wanted(37);
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = part_of<T>(ctx.rank(), i);
      wanted[i] = part_of<T>(0, i);
      for (int r = 1; r < ctx.size(); ++r) wanted[i] = combine(op, wanted[i], part_of<T>(r, i));
    }
    ctx.world().allreduce(std::span(data), op);
    ctx.check(data == wanted, std::string("allreduce ") + std::string(rma::name_of(op)) + " of " +
                                  std::string(rma::name_of(rma::element_of<T>)));
  }
}

// Goal: allreduce is right for every operator and element type.
// Method: small whole numbers, so that no order of combination loses anything; against a loop over the ranks.
void allreduce_operators(context& ctx) {
  allreduce_of<std::int8_t>(ctx);
  allreduce_of<std::int16_t>(ctx);
  allreduce_of<std::int32_t>(ctx);
  allreduce_of<std::int64_t>(ctx);
  allreduce_of<std::uint8_t>(ctx);
  allreduce_of<std::uint16_t>(ctx);
  allreduce_of<std::uint32_t>(ctx);
  allreduce_of<std::uint64_t>(ctx);
  allreduce_of<float>(ctx);
  allreduce_of<double>(ctx);
  allreduce_of<std::complex<float>>(ctx);
  allreduce_of<std::complex<double>>(ctx);
}

// Goal: all members get the same bits, even where the order of additions changes the sum.
// Method: numbers of very different sizes; the results are compared bit by bit. 100k elements: larger than any slot.
void allreduce_same_bits(context& ctx) {
  std::vector<double> data(100000);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = std::ldexp(static_cast<double>(tagged<std::uint32_t>(ctx.rank(), i)), static_cast<int>(i % 80) - 40);
  }
  ctx.world().allreduce(std::span(data), rma::sum);
  std::uint64_t digest = 0;
  for (const double d : data) digest = digest * 1099511628211U + std::bit_cast<std::uint64_t>(d);
  for (const std::uint64_t other : ctx.world().allgather(digest)) ctx.equal(other, digest, "bits of the sums");
}

struct record {
  int rank;
  char text[60];
  bool operator==(const record&) const = default;
};

// Goal: allgather has everyone's value in rank order, also for structs and for values of several KiB.
void allgather_structs(context& ctx) {
  record mine{ctx.rank(), {}};
  std::snprintf(mine.text, sizeof(mine.text), "I am %d", ctx.rank());
  const auto all = ctx.world().allgather(mine);
  ctx.equal(all.size(), static_cast<std::size_t>(ctx.size()), "members");
  for (int r = 0; r < ctx.size(); ++r) {
    record wanted{r, {}};
    std::snprintf(wanted.text, sizeof(wanted.text), "I am %d", r);
    ctx.check(all[static_cast<std::size_t>(r)] == wanted, "record of a member");
  }
  std::array<std::uint64_t, 3000> big{};
  big.fill(static_cast<std::uint64_t>(ctx.rank()));
  const auto bigs = ctx.world().allgather(big);
  for (int r = 0; r < ctx.size(); ++r) {
    const auto& one = bigs[static_cast<std::size_t>(r)];
    ctx.check(std::ranges::all_of(one, [&](std::uint64_t v) { return v == static_cast<std::uint64_t>(r); }),
              "big value");
  }
}

/// The value that a member gives to another one.
template <class T>
T gift(int from, int to) {
  return tagged<T>(from, static_cast<std::size_t>(to), 17);
}

template <class T>
void exchange(context& ctx, rma::Team& team) {
  std::vector<T> mine;
  for (int r = 0; r < team.size(); ++r) mine.push_back(gift<T>(team.rank(), r));
  const std::vector<T> all = team.alltoall(std::span<const T>(mine));
  ctx.equal(all.size(), mine.size(), "values of an alltoall");
  for (int r = 0; r < team.size(); ++r) {
    ctx.equal(all[static_cast<std::size_t>(r)], gift<T>(r, team.rank()), "what a member gave for this one");
  }
}

// Goal: alltoall brings each member what every other one has for it, small values and large ones, in any team.
// Break: take the value for the sender instead of the receiver.
void alltoall_in_any_team(context& ctx) {
  rma::Team backwards = ctx.world().split(0, -ctx.rank());
  rma::Team part = ctx.world().split(ctx.rank() % 2, 0);
  for (rma::Team* team : {&ctx.world(), &backwards, &part}) {
    exchange<std::uint64_t>(ctx, *team);
    exchange<std::uint8_t>(ctx, *team);
  }
  std::vector<std::array<std::uint32_t, 2000>> large(static_cast<std::size_t>(ctx.size()));
  for (int r = 0; r < ctx.size(); ++r) large[static_cast<std::size_t>(r)].fill(gift<std::uint32_t>(ctx.rank(), r));
  const auto all = ctx.world().alltoall(std::span(large));
  for (int r = 0; r < ctx.size(); ++r) {
    const auto wanted = gift<std::uint32_t>(r, ctx.rank());
    const auto& one = all[static_cast<std::size_t>(r)];
    ctx.check(std::ranges::all_of(one, [&](std::uint32_t v) { return v == wanted; }), "a large value");
  }
}

template <class T>
void scan_of(context& ctx) {
  for (std::size_t o = 0; o < rma::operation_count; ++o) {
    const auto op = static_cast<rma::operation>(o);
    if (!rma::defined_for(op, rma::element_of<T>)) continue;
    std::vector<T> data(23), upto(23), before(23, T{77});
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = part_of<T>(ctx.rank(), i);
      upto[i] = part_of<T>(0, i);
      for (int r = 1; r <= ctx.rank(); ++r) {
        before[i] = upto[i];
        upto[i] = combine(op, upto[i], part_of<T>(r, i));
      }
    }
    const std::string name = std::string(rma::name_of(op)) + " of " + std::string(rma::name_of(rma::element_of<T>));
    std::vector<T> inclusive = data;
    ctx.world().scan(std::span(inclusive), op);
    ctx.check(inclusive == upto, "scan " + name);
    ctx.world().exscan(std::span(data), op, T{77});
    ctx.check(data == before, "exscan " + name);
  }
}

// Goal: scan and exscan are right for every operator and several types, for values, ranges and none.
// Method: against a loop over the ranks before this one, in their order. Break: leave out the own one, or take one
// more.
void scan_operators(context& ctx) {
  scan_of<std::int8_t>(ctx);
  scan_of<std::uint64_t>(ctx);
  scan_of<double>(ctx);
  scan_of<std::complex<float>>(ctx);
  rma::Team backwards = ctx.world().split(0, -ctx.rank());
  ctx.equal(backwards.scan(1, rma::sum), backwards.rank() + 1, "scan of a value");
  ctx.equal(backwards.exscan(std::uint64_t{2}, rma::sum), 2 * static_cast<std::uint64_t>(backwards.rank()),
            "exscan of a value");
  ctx.equal(ctx.world().exscan(ctx.rank(), rma::max, -1), ctx.rank() - 1, "exscan of a value, and of none");
  ctx.world().scan(std::span<double>(), rma::sum);
  ctx.world().exscan(std::span<double>(), rma::sum);
}

// Goal: a scan combines in the order of the ranks: the sum has the bits of a loop.
void scan_in_order(context& ctx) {
  const auto number = [](int rank, std::size_t i) {
    return std::ldexp(static_cast<double>(tagged<std::uint32_t>(rank, i)), (static_cast<int>(i) + rank * 13) % 70 - 35);
  };
  std::vector<double> data(5000), wanted(5000);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = number(ctx.rank(), i);
    wanted[i] = number(0, i);
    for (int r = 1; r <= ctx.rank(); ++r) wanted[i] += number(r, i);
  }
  ctx.world().scan(std::span(data), rma::sum);
  ctx.check(data == wanted, "bits of a scan");
}

// Goal: allgatherv has everyone's range, of whatever length, none among them, in rank order.
// Method: lengths in turn from 0 to more than a message. Break: broadcast by the own length.
void allgatherv_lengths(context& ctx) {
  constexpr std::size_t lengths[] = {3, 0, 1, 5000, 17, 40000, 0};
  for (std::size_t round = 0; round < std::size(lengths); ++round) {
    const auto length = [&](int r) { return lengths[(round + static_cast<std::size_t>(r)) % std::size(lengths)]; };
    std::vector<std::uint16_t> mine(length(ctx.rank()));
    fill_tagged(std::span(mine), ctx.rank(), round);
    const auto all = ctx.world().allgatherv(std::span<const std::uint16_t>(mine));
    ctx.equal(all.size(), static_cast<std::size_t>(ctx.size()), "members");
    for (int r = 0; r < ctx.size(); ++r) {
      const std::span<const std::uint16_t> part = all[static_cast<std::size_t>(r)];
      ctx.equal(part.size(), length(r), "length of a member's range");
      ctx.equal(first_untagged(part, r, round), part.size(), "first wrong element of a member's range");
    }
  }
  const std::string name = "rank " + std::to_string(ctx.rank());
  const auto names = ctx.world().allgatherv(std::span(name));
  for (int r = 0; r < ctx.size(); ++r) {
    const auto& one = names[static_cast<std::size_t>(r)];
    ctx.equal(std::string(one.begin(), one.end()), "rank " + std::to_string(r), "name of a member");
  }
}

/// One of the collectives that bring more than one value.
void longer_collective(context& ctx, rma::Team& team, std::uint64_t which, std::uint64_t salt) {
  const auto me = static_cast<std::uint64_t>(team.rank());
  if (which == 0) {
    const std::vector<std::uint64_t> mine(static_cast<std::size_t>(team.size()), me + salt);
    const auto all = team.alltoall(std::span(mine));
    ctx.equal(all.back(), static_cast<std::uint64_t>(team.size() - 1) + salt, "alltoall in a sequence");
  } else if (which == 1) {
    ctx.equal(team.scan(me + salt, rma::max), me + salt, "scan in a sequence");
  } else {
    const std::vector<std::uint64_t> mine((me + salt) % 4, salt);
    const auto all = team.allgatherv(std::span(mine));
    ctx.equal(all.front().size(), static_cast<std::size_t>(salt % 4), "allgatherv in a sequence");
  }
}

// Goal: collectives of different kinds do not mix, whoever is late.
// Method: a random sequence, the same everywhere, of all collectives on two teams; ranks stall at random by progress.
void random_sequence(context& ctx) {
  rma::Team other = ctx.world().split(0, ctx.size() - ctx.rank());
  const std::size_t rounds = ctx.rounds(400);
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::uint64_t what = ctx.common_random()() % 7;
    rma::Team& team = ctx.common_random()() % 2 != 0 ? other : ctx.world();
    for (std::uint64_t stall = ctx.random()() % 50; stall > 0; --stall) ctx.runtime().progress();
    const int root = static_cast<int>(ctx.common_random()() % static_cast<std::uint64_t>(ctx.size()));
    std::uint64_t value = static_cast<std::uint64_t>(team.rank()) + i;
    if (what == 0) {
      team.barrier();
    } else if (what == 1) {
      team.broadcast(std::span(&value, 1), root);
      ctx.equal(value, static_cast<std::uint64_t>(root) + i, "broadcast in a sequence");
    } else if (what == 2) {
      ctx.equal(team.allreduce(value, rma::max), static_cast<std::uint64_t>(team.size() - 1) + i,
                "allreduce in a sequence");
    } else if (what >= 4) {
      longer_collective(ctx, team, what - 4, i);
    } else {
      const auto all = team.allgather(value);
      ctx.equal(all.back(), static_cast<std::uint64_t>(team.size() - 1) + i, "allgather in a sequence");
    }
  }
}

// Goal: waits on a revoked team, and on its windows, end on all members, also those that begin later; shrink and the
// team that it came from go on.
// Method: one member in turn revokes while the others wait for each other, or for it.
void revoked_team(context& ctx) {
  const std::size_t rounds = ctx.rounds(10);
  for (std::size_t i = 0; i < rounds; ++i) {
    rma::Team team = ctx.world().split(0);
    auto win = rma::Window<long>::allocate(team, 2, {.signals = 1});
    ctx.world().barrier();  // a revocation would end the making of the window, too
    const int by = static_cast<int>(i % static_cast<std::size_t>(ctx.size()));
    if (ctx.rank() == by) {
      team.revoke();
    } else if ((ctx.rank() - by + ctx.size()) % 2 == 0) {
      ctx.expect(team.try_barrier(), rma::status::revoked, "barrier in a revoked team");
    } else {
      ctx.expect(win.wait_signal_nothrow(0, 1, (ctx.rank() + 1) % ctx.size()), rma::status::revoked,
                 "wait for a signal");
    }
    ctx.expect(win.try_fence(), rma::status::revoked, "fence afterwards");
    ctx.expect(team.try_barrier(), rma::status::revoked, "barrier afterwards");
    rma::Team rest = team.shrink();
    ctx.equal(rest.size(), team.size(), "members of the shrunken team");
    rest.barrier();
    ctx.world().barrier();
  }
}

// Goal: a revoked window keeps nobody waiting; its team goes on, and it can be freed.
void revoked_window(context& ctx) {
  const std::size_t rounds = ctx.rounds(10);
  for (std::size_t i = 0; i < rounds; ++i) {
    auto win = rma::Window<long>::allocate(ctx.world(), 2, {.signals = 1});
    auto other = rma::Window<long>::allocate(ctx.world(), 2);
    if (ctx.rank() == static_cast<int>(i % static_cast<std::size_t>(ctx.size()))) {
      win.revoke();
    } else {
      ctx.expect(win.wait_signal_nothrow(0), rma::status::revoked, "wait for a signal");
    }
    ctx.expect(win.try_fence(), rma::status::revoked, "fence afterwards");
    other.fence();
    other.put(ctx.rank() + 1L, (ctx.rank() + 1) % ctx.size(), 0);
    other.fence(rma::no_succeed);
    ctx.equal(other[0], (ctx.rank() + ctx.size() - 1L) % ctx.size() + 1, "put in another window");
    win.free();
  }
}

constexpr test_case team_table[] = {
    {"team.revoked", revoked_team, no_kind, 2},
    {"team.revoked_window", revoked_window, no_kind, 2},
    {"team.world_is_everyone", world_is_everyone},
    {"team.split_by_color_and_key", split_by_color_and_key},
    {"team.split_ties_and_loners", split_ties_and_loners},
    {"team.splits_of_splits", splits_of_splits},
    {"team.node_shares_memory", node_shares_memory},
    {"team.shrink_of_the_living", shrink_of_the_living},
    {"team.own_process_sets", own_process_sets},
    {"team.listed_ranks", listed_ranks},
    {"team.defined_process_set", defined_process_set},
    {"team.unknown_process_set", unknown_process_set},
    {"team.barrier_separates", barrier_separates},
    {"team.broadcast_sizes", broadcast_sizes},
    {"team.allreduce_operators", allreduce_operators},
    {"team.allreduce_same_bits", allreduce_same_bits},
    {"team.allgather_structs", allgather_structs},
    {"team.alltoall_in_any_team", alltoall_in_any_team},
    {"team.scan_operators", scan_operators},
    {"team.scan_in_order", scan_in_order},
    {"team.allgatherv_lengths", allgatherv_lengths},
    {"team.random_sequence", random_sequence},
};

}  // namespace

std::span<const test_case> team_cases() noexcept { return team_table; }

}  // namespace conformance
