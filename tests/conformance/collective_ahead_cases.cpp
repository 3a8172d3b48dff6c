// SPDX-License-Identifier: Apache-2.0
// Blocking collectives of members that wait for nobody and run ahead of the others: no slot is written too early, and
// the numbers of collectives may come round.
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "cases.hpp"

namespace conformance {
namespace {

using std::span;

std::int64_t value_of(std::uint64_t round, int rank, std::size_t i) {
  return static_cast<std::int64_t>(round * 1000003 + static_cast<std::uint64_t>(rank) * 7919 + i);
}

// Goal: long rows of broadcasts and reductions of changing sizes, with roots that stay for a while and change, give
// each member what was given in that round. Break: let a root be further ahead than it has cells.
void runs_ahead(context& ctx) {
  rma::Team& team = ctx.world();
  constexpr std::array<std::size_t, 8> counts{1, 1, 1, 2, 64, 65, 600, 9000};
  std::vector<std::int64_t> data, sum;
  std::size_t wrong = 0;
  const auto rounds = static_cast<std::uint64_t>(ctx.rounds(4000, 200));
  int root = 0;
  bool reduces = false;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    auto& random = ctx.common_random();
    if (random() % 40 == 0) root = static_cast<int>(random() % static_cast<unsigned>(ctx.size()));
    if (random() % 60 == 0) reduces = !reduces;
    const std::size_t count = counts[random() % (random() % 8 == 0 ? 8 : 3)];
    data.resize(count);
    sum.assign(count, 0);
    for (std::size_t i = 0; i < count; ++i) data[i] = value_of(round, ctx.rank(), i);
    if (reduces) {
      team.reduce(span<const std::int64_t>(data), span(sum), rma::sum, root);
      if (ctx.rank() != root) continue;
      for (std::size_t i = 0; i < count; ++i) {
        std::int64_t wanted = 0;
        for (int r = 0; r < ctx.size(); ++r) wanted += value_of(round, r, i);
        wrong += sum[i] == wanted ? 0 : 1;
      }
    } else {
      team.broadcast(span(data), root);
      for (std::size_t i = 0; i < count; ++i) wrong += data[i] == value_of(round, root, i) ? 0 : 1;
    }
  }
  ctx.equal(wrong, std::size_t{0}, "wrong elements of broadcasts and reductions in a row");
}

// Goal: a member that has been the root once can be it again when flags have come round half of their numbers since,
// and more. Break: wait in wait_for_all (src/coll/memory.cpp) for the turn of the last use, however long ago.
void root_again(context& ctx) {
  rma::Team& team = ctx.world();
  if (!team.one_node() || ctx.size() < 2) context::skip("needs ranks that share memory");
  if (ctx.rounds(100) < 100)
    context::skip("takes half a million collectives: not with a small effort, nor in the simulator");
  std::vector<std::uint64_t> many(100);  // in a slot as a whole; twice, for there are two
  for (const std::uint64_t between : {0U, 300'000U, 600'000U, 5U}) {
    std::uint64_t value = 1;
    for (std::uint64_t i = 0; i < between; ++i) team.broadcast(span(&value, 1), 0);
    for (std::uint64_t turn = 0; turn < 2; ++turn) {
      if (ctx.rank() == 1) std::iota(many.begin(), many.end(), between + turn);
      team.broadcast(span(many), 1);
      ctx.equal(many.back(), between + turn + many.size() - 1, "broadcast by the member that was the root before");
    }
  }
}

// Goal: half a million collectives by messages between two in memory, and more: the flags of the first one are none of
// the second. Break: let team_state::start not call follow.
void messages_between(context& ctx) {
  rma::Team& team = ctx.world();
  if (!team.one_node() || ctx.size() < 2) context::skip("needs ranks that share memory");
  if (ctx.rounds(100) < 100) context::skip("takes a million collectives: not with a small effort");
  constexpr int rounds = 3;
  std::vector<rma::Request> many(500);
  for (const std::uint64_t between : {0U, 600'000U}) {
    for (std::uint64_t i = 0; i < between; i += many.size()) {
      for (rma::Request& each : many) each = team.ibarrier();
      rma::wait_all(many);
    }
    for (int i = 0; ctx.rank() == 1 && i < 100'000; ++i) ctx.runtime().progress();  // the others come first
    for (int round = 0; round < rounds; ++round) {
      const std::int64_t mine = (ctx.rank() + 1) * (round + 1);
      ctx.equal(team.allreduce(mine, rma::sum), std::int64_t{ctx.size()} * (ctx.size() + 1) / 2 * (round + 1), "sum");
    }
  }
}

constexpr test_case collective_ahead_table[] = {
    {"collective.runs_ahead", runs_ahead},
    {"collective.root_again", root_again},
    {"collective.messages_between", messages_between},
};

}  // namespace

std::span<const test_case> collective_ahead_cases() noexcept { return collective_ahead_table; }

}  // namespace conformance
