// SPDX-License-Identifier: Apache-2.0
// Collectives whose results have the same bits whatever the algorithm and the nodes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "cases.hpp"

namespace conformance {
namespace {

using std::span;

/// Numbers whose sum has other bits in another order.
double rough(int r, std::size_t i) {
  return std::ldexp(static_cast<double>((static_cast<std::size_t>(r) * 7919 + i * 31 + 5) % 97 + 1) / 3,
                    (static_cast<int>(i) + r * 13) % 70 - 35);
}
/// Members [first, last): the largest power of two of them, then the rest.
double tree_sum(int first, int last, std::size_t i) {
  if (last - first == 1) return rough(first, i);
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  return tree_sum(first, first + left, i) + tree_sum(first + left, last, i);
}

/// Sums of `team` have the bits of the one tree over its members.
void check_bits(context& ctx, rma::Team& team) {
  const auto n = static_cast<std::size_t>(team.size());
  for (const std::size_t count : {std::size_t{1}, std::size_t{40}, std::size_t{9000}}) {
    std::vector<double> mine(count * n), wanted(count * n), got(count * n);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      mine[i] = rough(team.rank(), i);
      wanted[i] = tree_sum(0, team.size(), i);
    }
    team.allreduce(span(mine), span(got), rma::sum);
    ctx.check(got == wanted, "bits of allreduce");
    got.assign(got.size(), 0);
    team.iallreduce(span(mine), span(got), rma::sum).wait();
    ctx.check(got == wanted, "bits of iallreduce");
    for (const int root : {0, team.size() - 1}) {
      got.assign(got.size(), 0);
      team.ireduce(span(mine), span(got), rma::sum, root).wait();
      ctx.check(team.rank() != root || got == wanted, "bits of ireduce");
    }
    std::vector<double> part(count);
    team.reduce_scatter_block(span(mine), span(part), rma::sum);
    const auto own = wanted.begin() + static_cast<std::ptrdiff_t>(count) * team.rank();
    ctx.check(std::equal(part.begin(), part.end(), own), "bits of reduce_scatter_block");
  }
}

bool is_reproducible(const context& ctx) {
  for (const rma::Setting& s : ctx.runtime().settings()) {
    if (s.name == "RMA_COLL_REPRODUCIBLE") return s.value == "1";
  }
  return false;
}

// Goal: with RMA_COLL_REPRODUCIBLE=1 sums have the bits of the one tree over the ranks: whatever the algorithm, the
// nodes and the form.
void reproducible(context& ctx) {
  if (!is_reproducible(ctx)) context::skip("needs RMA_COLL_REPRODUCIBLE=1");
  check_bits(ctx, ctx.world());
}

// Goal: a team with the hint has these bits, too, however its members lie on the nodes, and only while it has the hint:
// schedules that were kept for the same shapes before are not used. Break: pass no hint to the plan, or keep the
// plans in team_state::set_reproducible (src/coll), and run conformance.coll.rings.sim.
void reproducible_by_hint(context& ctx) {
  const int far_apart = ctx.rank() % 2 * ctx.size() + ctx.rank();
  for (const int key : {ctx.rank(), -ctx.rank(), far_apart}) {
    rma::Team team = ctx.world().split(0, key);
    ctx.equal(team.reproducible(), is_reproducible(ctx), "the default");
    std::vector<double> data(9000 * static_cast<std::size_t>(ctx.size()), 1);
    team.iallreduce(span(data), rma::sum).wait();
    rma::Collective kept = team.allreduce_init(span(data), rma::max);
    team.set_reproducible();
    ctx.check(team.reproducible() && rma::Team(team).reproducible(), "the hint is the team's, of all its handles");
    check_bits(ctx, team);
    kept.start().wait();
    ctx.equal(data.front(), double{1} * ctx.size(), "a persistent collective that was made before");
    ctx.expect(team.try_set_reproducible(false), rma::status::done, "try_set_reproducible");
    ctx.check(!team.reproducible(), "without the hint");
    team.set_reproducible(is_reproducible(ctx));
  }
}

constexpr test_case collective_bits_table[] = {
    {"collective.reproducible", reproducible},
    {"collective.reproducible_by_hint", reproducible_by_hint},
};

}  // namespace

std::span<const test_case> collective_bits_cases() noexcept { return collective_bits_table; }

}  // namespace conformance
