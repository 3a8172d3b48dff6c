// SPDX-License-Identifier: Apache-2.0
// The simulated fabric for the contract of all fabrics, without faults and in some storms. One fiber drives all ranks'
// adapters; work takes no time, so that only the network passes it.
#include "fabric/sim/sim_fabric.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "fabric/contract_cases.hpp"
#include "fabric/sim/fault_model.hpp"
#include "fabric/sim/topology.hpp"
#include "fabric/sim/wire.hpp"
#include "fabric/sim/world.hpp"

namespace {

using namespace rma::sim;

constexpr std::uint64_t storms = 12;

class sim_job final : public rma::test::fabric_job {
 public:
  sim_job(world& job, wire& between) : job_(job) {
    for (int r = 0; r < job.size(); ++r)
      add_member(std::make_unique<rma::test::joined_rank<sim_fabric>>(std::make_unique<sim_fabric>(between, r)));
  }
  void leave(int rank) override { remove(rank); }
  void announce_death(int rank) override {
    job_.announce(rank);
    fabric_job::announce_death(rank);
  }

 protected:
  /// Until the next event.
  bool sleep() override {
    const time_ps next_ps = job_.events().next_ps();
    if (next_ps == never_ps) return false;
    job_.stay_away(job_.running(), std::max<time_ps>(next_ps - job_.events().now_ps(), 0));
    return true;
  }

 private:
  world& job_;
};

/// Why the network cannot do it; empty if the body ran.
std::string run_in(const fault_model& today, std::uint64_t seed, int ranks,
                   const std::function<void(rma::test::fabric_job&)>& body) {
  world_options o;
  o.ranks = ranks;
  o.ranks_per_node = 1;
  o.machine = load_parameters("ndr400");
  o.costless = true;
  o.stack_bytes = std::size_t{1} << 20;
  o.today = today;
  o.seed = seed;
  world job(o);
  wire between(job, o.machine, topology("switch", ranks), today, seed);
  std::string cannot;
  job.run([&](int rank) {
    if (rank != 0) return 0;
    sim_job all(job, between);
    body(all);
    cannot = all.cannot;
    return 0;
  });
  CHECK(job.deadlock().empty());
  return cannot;
}

}  // namespace

void rma::test::with_fabric(int ranks, const std::function<void(fabric_job&)>& body) {
  const char* const breach = std::getenv("CONTRACT_BREACH");
  std::string cannot;
  std::uint64_t skipped = 0;
  for (std::uint64_t seed = 0; seed <= storms; ++seed) {
    INFO("faults " << seed);
    fault_model today = seed == 0 ? calm() : storm(seed);
    if (breach != nullptr) today.broken = breach_named(breach);
    const std::string why = run_in(today, seed, ranks, body);
    skipped += why.empty() ? 0 : 1;
    if (!why.empty()) cannot = why;
  }
  if (skipped == storms + 1) return skip(cannot);
  if (skipped != 0)
    std::printf("[skip] in %d of %d networks: %s\n", static_cast<int>(skipped), static_cast<int>(storms + 1),
                cannot.c_str());
}

// Break: report each unsignaled write.
TEST_CASE("a simulated unsignaled write that succeeds has no completion", "[sim]") {
  rma::test::with_fabric(2, [](rma::test::fabric_job& all) {
    std::vector<std::uint64_t> memory(1), from(1, 7);
    const rma::fabric::region_key key = rma::test::region_of(all[1], memory);
    const rma::fabric::local_slice here = rma::test::words_at(from.data(), 1);
    const rma::fabric::remote_slice there = rma::test::words_in(key, 0, 1);
    rma::fabric::write_flags how;
    how.unsignaled = true;
    for (std::uint64_t i = 1; i <= 100; ++i) {
      REQUIRE(all.post([&] {
        return all[0].fabric.write(1, {&here, 1}, key, {&there, 1}, i, how);
      }) == rma::status::posted);
    }
    REQUIRE(all.until([&] { return all.are_quiet() && memory == from; }));
    CHECK(all[0].completions == 0);
  });
}
