// SPDX-License-Identifier: Apache-2.0
// Goal: the experiment of perf/sim_nbody.cpp neither loses particles nor changes what the paper found.
// Method: its own parts, with few particles; then with all 128^3 and the susukita preset.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "nbody.hpp"
#include "particles.hpp"

namespace {

namespace sim = rma::sim;

struct step {
  explicit step(const perf::cosmos& of, int ranks)
      : before(perf::make_particles(of)),
        after(moved(before)),
        old_domains(before, ranks),
        new_domains(after, ranks),
        moves(perf::exchange_between(before, old_domains, after, new_domains)) {}
  static std::vector<perf::particle> moved(std::vector<perf::particle> all) {
    perf::drift(all);
    return all;
  }
  std::vector<perf::particle> before, after;
  perf::domains old_domains, new_domains;
  perf::exchange moves;
};

sim::PatternOutcome simulate(const perf::exchange& moves, perf::barrier_at where, sim::IntraNode intra_node) {
  const sim::Config machine{.ranks = moves.ranks(), .ranks_per_node = 2, .parameters = "susukita"};
  return perf::simulate_exchange(machine, moves, where, intra_node, {});
}

}  // namespace

TEST_CASE("decomposition keeps every particle and balances them", "[sim][nbody]") {
  for (const int ranks : {1, 2, 3, 7, 32}) {
    CAPTURE(ranks);
    const step one({.count = 20011, .seed = 3, .clusters = 20}, ranks);
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    for (int r = 0; r < ranks; ++r) {
      before += one.moves.before(r);
      after += one.moves.after(r);
      const auto fair = 20011.0 / ranks;
      CHECK(static_cast<double>(one.moves.before(r)) == Approx(fair).margin(6));
      CHECK(static_cast<double>(one.moves.after(r)) == Approx(fair).margin(6));
    }
    CHECK(before == 20011);
    CHECK(after == 20011);
    CHECK((one.moves.moved() > 0) == (ranks > 1));
  }
}

TEST_CASE("particles stay in the box, are clustered, and come from the seed alone", "[sim][nbody]") {
  const perf::cosmos chosen{.count = 8000, .seed = 5, .clusters = 10};
  step one(chosen, 8);
  for (const perf::particle& p : one.after) {
    for (const double x : p.position) CHECK((x >= 0 && x < 1));
  }
  // A uniform distribution leaves none of 512 cells with five times the mean; Poisson's tail beyond 78 of 16 is 1e-25.
  std::vector<int> cells(512, 0);
  for (const perf::particle& p : one.before) {
    const auto cell = [&](std::size_t d) { return static_cast<std::size_t>(p.position[d] * 8); };
    ++cells[cell(0) * 64 + cell(1) * 8 + cell(2)];
  }
  CHECK(*std::max_element(cells.begin(), cells.end()) > 5 * 8000 / 512);
  const step again(chosen, 8);
  const step other({.count = 8000, .seed = 6, .clusters = 10}, 8);
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) CHECK(one.moves.of(from, to) == again.moves.of(from, to));
  }
  CHECK(one.moves.moved() != other.moves.moved());
}

TEST_CASE("every particle that leaves is put once", "[sim][nbody]") {
  const step one({.count = 32768, .seed = 2}, 8);
  for (const auto where : {perf::barrier_at::before_pack, perf::barrier_at::after_pack}) {
    const sim::PatternOutcome out = simulate(one.moves, where, sim::IntraNode::adapter);
    REQUIRE(out.ok());
    CHECK(out.network.bytes + out.intra_node.bytes == 48 * one.moves.moved());
    CHECK(out.phases.size() == 3);
    for (int r = 0; r < 8; ++r) {
      const auto& phases = out.ranks[static_cast<std::size_t>(r)].phases;
      const auto pack =
          static_cast<std::size_t>(std::find(out.phases.begin(), out.phases.end(), "pack") - out.phases.begin());
      CHECK(phases[pack] == sim::picoseconds(static_cast<std::int64_t>(one.moves.leaving(r)) * 100'000));
      CHECK(std::accumulate(phases.begin(), phases.end(), sim::picoseconds{}) ==
            out.ranks[static_cast<std::size_t>(r)].end);
    }
  }
}

TEST_CASE("a barrier before the packing is faster, and puts within nodes are why", "[sim][nbody]") {
  const step one({}, 32);
  const auto time = [&](perf::barrier_at where, sim::IntraNode intra_node) {
    const sim::PatternOutcome out = simulate(one.moves, where, intra_node);
    REQUIRE(out.ok());
    return out.time;
  };
  const auto before = time(perf::barrier_at::before_pack, sim::IntraNode::adapter);
  const auto after = time(perf::barrier_at::after_pack, sim::IntraNode::adapter);
  const auto before_alone = time(perf::barrier_at::before_pack, sim::IntraNode::free);
  const auto after_alone = time(perf::barrier_at::after_pack, sim::IntraNode::free);
  CHECK(before < after);
  CHECK(before_alone < after_alone);
  CHECK(before - before_alone < after - after_alone);
}
