// SPDX-License-Identifier: Apache-2.0
// Collectives of a few bytes, 64 KiB and 1 MiB, with operands and results in the same memory and in others.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "cases.hpp"

namespace conformance {
namespace {

using std::span;
using numbers = std::vector<std::int64_t>;

/// 8 bytes, an odd few, 64 KiB, 1 MiB.
constexpr std::array<std::size_t, 4> element_counts{1, 7, 8192, 131072};
constexpr int ranks_of_large_blocks = 9;  ///< with more ranks, all blocks together have the size of one

std::int64_t value_of(int r, std::size_t i) { return r * 7919 + static_cast<std::int64_t>(i) * 31; }
/// The sum of the values of `members` ranks, from the first one on.
std::int64_t sum_of(int members, std::size_t i) {
  return members * static_cast<std::int64_t>(i) * 31 + std::int64_t{7919} * members * (members - 1) / 2;
}

template <class F>
numbers filled(std::size_t count, F&& f) {
  numbers all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = f(i);
  return all;
}

/// Either form of a call.
template <class Blocking, class Start>
void call(bool is_request, Blocking&& blocking, Start&& start) {
  if (is_request) {
    start().wait();
  } else {
    blocking();
  }
}

void vectors_of(context& ctx, std::size_t count, int root, bool is_request) {
  rma::Team& team = ctx.world();
  const int me = ctx.rank(), n = ctx.size();
  const std::string what = " of " + std::to_string(count);
  const numbers mine = filled(count, [&](std::size_t i) { return value_of(me, i); });
  const numbers all = filled(count, [&](std::size_t i) { return sum_of(n, i); });

  numbers data = me == root ? mine : numbers(count);
  call(
      is_request, [&] { team.broadcast(span(data), root); }, [&] { return team.ibroadcast(span(data), root); });
  ctx.check(data == filled(count, [&](std::size_t i) { return value_of(root, i); }), "broadcast" + what);
  data = mine;
  call(
      is_request, [&] { team.reduce(span(data), span(data), rma::sum, root); },
      [&] { return team.ireduce(span(data), span(data), rma::sum, root); });
  ctx.check(me != root || data == all, "reduce in place" + what);
  data = mine;
  call(
      is_request, [&] { team.allreduce(span(data), rma::sum); }, [&] { return team.iallreduce(span(data), rma::sum); });
  ctx.check(data == all, "allreduce in place" + what);
  data = mine;
  call(
      is_request, [&] { team.scan(span(data), span(data), rma::sum); },
      [&] { return team.iscan(span(data), span(data), rma::sum); });
  ctx.check(data == filled(count, [&](std::size_t i) { return sum_of(me + 1, i); }), "scan in place" + what);
  data = mine;
  call(
      is_request, [&] { team.exscan(span(data), span(data), rma::sum); },
      [&] { return team.iexscan(span(data), span(data), rma::sum); });
  ctx.check(me == 0 || data == filled(count, [&](std::size_t i) { return sum_of(me, i); }), "exscan in place" + what);
}

/// Goal: vectors whose result lies where the operand was, at several roots, blocking and not.
void vectors_in_place(context& ctx) {
  for (const std::size_t count : element_counts) {
    for (const int root : {0, ctx.size() - 1}) {
      for (const bool is_request : {false, true}) {
        if (ctx.sampled()) vectors_of(ctx, count, root, is_request);
      }
    }
  }
}

void gathers_of(context& ctx, std::size_t count, int root, bool is_request) {
  rma::Team& team = ctx.world();
  const auto n = static_cast<std::size_t>(ctx.size()), me = static_cast<std::size_t>(ctx.rank());
  const std::string what = " of " + std::to_string(count);
  const numbers mine = filled(count, [&](std::size_t i) { return value_of(ctx.rank(), i); });
  const numbers all =
      filled(count * n, [&](std::size_t i) { return value_of(static_cast<int>(i / count), i % count); });
  numbers got(count * n);
  const auto own = span(got).subspan(me * count, count);
  std::copy(mine.begin(), mine.end(), own.begin());
  call(
      is_request, [&] { team.gather(own, span(got), root); }, [&] { return team.igather(own, span(got), root); });
  ctx.check(ctx.rank() != root || got == all, "gather in place" + what);
  got.assign(count * n, 0);
  std::copy(mine.begin(), mine.end(), own.begin());
  call(
      is_request, [&] { team.allgather(own, span(got)); }, [&] { return team.iallgather(own, span(got)); });
  ctx.check(got == all, "allgather in place" + what);
  got.assign(count * n, 0);
  team.allgather(span(mine), span(got));
  ctx.check(got == all, "allgather" + what);
  numbers part(count);
  call(
      is_request, [&] { team.scatter(span(all), span(part), root); },
      [&] { return team.iscatter(span(all), span(part), root); });
  ctx.check(part == mine, "scatter" + what);
}

void exchanges_of(context& ctx, std::size_t count, bool is_request) {
  rma::Team& team = ctx.world();
  const auto n = static_cast<std::size_t>(ctx.size()), me = static_cast<std::size_t>(ctx.rank());
  const std::string what = " of " + std::to_string(count);
  const auto sent = [&](std::size_t from, std::size_t to, std::size_t i) {
    return value_of(static_cast<int>(from * n + to), i);
  };
  const numbers mine = filled(count * n, [&](std::size_t i) { return sent(me, i / count, i % count); });
  const numbers wanted = filled(count * n, [&](std::size_t i) { return sent(i / count, me, i % count); });
  numbers got(count * n);
  team.alltoall(span(mine), span(got));
  ctx.check(got == wanted, "alltoall" + what);
  got = mine;
  call(
      is_request, [&] { team.alltoall(span(got), span(got)); }, [&] { return team.ialltoall(span(got), span(got)); });
  ctx.check(got == wanted, "alltoall in place" + what);

  const numbers sums = filled(count, [&](std::size_t i) {
    std::int64_t sum = 0;
    for (std::size_t r = 0; r < n; ++r) sum += sent(r, me, i);
    return sum;
  });
  numbers part(count);
  team.reduce_scatter_block(span(mine), span(part), rma::sum);
  ctx.check(part == sums, "reduce_scatter_block" + what);
  got = mine;
  call(
      is_request, [&] { team.reduce_scatter_block(span(got), span(got).first(count), rma::sum); },
      [&] { return team.ireduce_scatter_block(span(got), span(got).first(count), rma::sum); });
  ctx.check(std::equal(sums.begin(), sums.end(), got.begin()), "reduce_scatter_block in place" + what);
}

/// Goal: the same of calls with a block for each member.
void blocks_in_place(context& ctx) {
  for (const std::size_t each : element_counts) {
    const std::size_t share = ctx.size() > ranks_of_large_blocks ? static_cast<std::size_t>(ctx.size()) : 1;
    const std::size_t count = std::max<std::size_t>(each / share, 1);
    for (const bool is_request : {false, true}) {
      for (const int root : {0, ctx.size() - 1}) {
        if (ctx.sampled()) gathers_of(ctx, count, root, is_request);
      }
      if (ctx.sampled()) exchanges_of(ctx, count, is_request);
    }
  }
}

// Goal: a rank is its own neighbor, twice, beside another one; blocks are shorter and longer than a slot of puts.
// Break: take the sends of a pair in another order than its receives in neighbor_alltoall
// (src/coll/algorithms/linear.cpp).
void own_neighbor(context& ctx) {
  const std::array<int, 3> sources{ctx.rank(), ctx.left(), ctx.rank()};
  const std::array<int, 3> targets{ctx.rank(), ctx.right(), ctx.rank()};
  const rma::Neighbors graph{sources, targets};
  for (const std::size_t count : {std::size_t{1}, std::size_t{5000}}) {
    const auto row_of = [count](int rank) {
      std::vector<int> row(3 * count);
      std::iota(row.begin(), row.end(), rank * 100'000);
      return row;
    };
    const std::vector<int> out = row_of(ctx.rank()), left = row_of(ctx.left());
    std::vector<int> got(out.size());
    ctx.world().neighbor_alltoall(span(out), span(got), graph);
    const auto block = static_cast<std::ptrdiff_t>(count);
    std::vector<int> wanted = out;
    std::copy(left.begin() + block, left.begin() + 2 * block, wanted.begin() + block);
    ctx.check(got == wanted, "neighbor_alltoall");
  }
}

constexpr test_case collective_in_place_table[] = {
    {"collective.vectors_in_place", vectors_in_place},
    {"collective.blocks_in_place", blocks_in_place},
    {"collective.own_neighbor", own_neighbor},
};

}  // namespace

std::span<const test_case> collective_in_place_cases() noexcept { return collective_in_place_table; }

}  // namespace conformance
