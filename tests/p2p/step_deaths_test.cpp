// SPDX-License-Identifier: Apache-2.0
// Goal: wherever in a protocol a rank dies, the others are told within 2 s, what they have received is right, and no
// byte of a receive that has failed changes afterwards. Method: each protocol of Takagi's by each of Liu's two
// channels; in one simulated run for each step of rank 1's messages that rank dies there (step_exchange.hpp).
#include "step_exchange.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>

#include "fabric/sim/sim_platform.hpp"
#include "rma/sim.hpp"
#include "step_counter.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int victim = 1, ranks = 3;
constexpr auto outage = 300ms, watch = 400ms;

struct outcome {
  rma::sim::Outcome of;
  std::uint64_t steps = 0;  ///< steps of the rank that dies
  int failures = 0;         ///< failed operations of the others
};

/// Rank 1 dies at this step; 0: it does not.
outcome run(const rma::sim::Config& job, std::uint64_t death) {
  outcome all;
  all.of = rma::sim::run(job, [&](rma::Runtime& rt) {
    p2p_steps::exchange mine(rt);
    {
      auto& around = static_cast<rma::sim::sim_platform&>(rt.core().ctx->around());
      p2p_steps::step_counter steps(rt, rt.rank() == victim ? death : 0, [&] { around.job().kill(victim); });
      mine.run();
      if (rt.rank() == victim) all.steps = steps.steps();
    }
    const std::string wrong = mine.check([&] {
      for (int i = 0; i < 10; ++i) {
        rt.compute(watch / 10);
        rt.progress();
      }
    });
    all.failures += mine.failures();
    if (!wrong.empty()) throw std::runtime_error(wrong);
  });
  return all;
}

/// Says what is wrong with a run in which rank 1 dies; the others' failures are added.
void check_death(const outcome& one, int& failures) {
  const auto& all = one.of.ranks;
  REQUIRE(all[victim].fate == rma::sim::Fate::killed);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == victim) continue;
    REQUIRE(all[static_cast<std::size_t>(rank)].fate == rma::sim::Fate::finished);
    REQUIRE(all[static_cast<std::size_t>(rank)].end - all[victim].end < 2s + watch);
  }
  failures += one.failures;
}

/// In a second run with the same death no link carries packets from then on for a while: the others know of it before
/// what was on its way arrives.
void die_at_each_step(const char* rendezvous, const char* eager, int ranks_per_node) {
  rma::sim::Config job;
  job.ranks = ranks;
  job.ranks_per_node = ranks_per_node;
  job.limit = 10s;
  job.settings = {{"RMA_RENDEZVOUS", rendezvous}, {"RMA_EAGER", eager}, {"RMA_RING_SLOTS", "4"}, {"RMA_LOG", "error"}};
  const outcome whole = run(job, 0);
  INFO(rendezvous << ' ' << eager << ' ' << ranks_per_node << " ranks a node\n" << whole.of.text());
  REQUIRE(whole.of.ok());
  REQUIRE(whole.failures == 0);
  REQUIRE(whole.steps > 50);
  int failures = 0;
  for (std::uint64_t step = 1; step <= whole.steps; ++step) {
    const outcome one = run(job, step);
    INFO("death at step " << step << " of " << whole.steps << '\n' << one.of.text());
    check_death(one, failures);
    rma::sim::Config late = job;
    late.outages.push_back({one.of.ranks[victim].end, one.of.ranks[victim].end + outage});
    const outcome again = run(late, step);
    INFO("what was on its way comes late\n" << again.of.text());
    check_death(again, failures);
  }
  CHECK(failures > 0);
  std::printf("%s, %s, %d a node: a death at each of %llu steps, with and without late packets\n", rendezvous, eager,
              ranks_per_node, static_cast<unsigned long long>(whole.steps));
}

}  // namespace

// Break: let bury end receives before the fabric has forgotten the dead rank.
TEST_CASE("a rank dies at each step of a protocol", "[p2p][deaths]") {
  for (const char* const eager : {"send-recv", "rdma-ring", "rdma-ring:immediate"}) {
    for (const char* const rendezvous : {"rput", "getcqe", "get", "putnr", "put"})
      die_at_each_step(rendezvous, eager, 1);
  }
  die_at_each_step("auto", "auto", 2);
}
