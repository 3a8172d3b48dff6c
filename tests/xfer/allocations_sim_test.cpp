// SPDX-License-Identifier: Apache-2.0
// The same in the simulator, its network included: a steady state of thousands of ranks is one of no heap.
#include <catch2/catch.hpp>
#include <chrono>

#include "allocations.hpp"
#include "rma/sim.hpp"

namespace {

int failures_with(int ranks_per_node) {
  rma::sim::Config job;
  job.ranks = 2;
  job.ranks_per_node = ranks_per_node;
  job.limit = std::chrono::seconds(600);
  int failures = 0;
  const auto out = rma::sim::run(job, [&](rma::Runtime& rt) { failures += failures_of(rt); });
  INFO(out.text());
  REQUIRE(out.ok());
  return failures;
}

}  // namespace

TEST_CASE("no operation allocates between simulated nodes once its kind has been used") {
  CHECK(failures_with(1) == 0);
}
TEST_CASE("no operation allocates on a simulated node once its kind has been used") { CHECK(failures_with(2) == 0); }
