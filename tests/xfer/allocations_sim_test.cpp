// SPDX-License-Identifier: Apache-2.0
// No operation allocates memory once its kind has been used: in the simulator, whose network is part of the process.
#include "tests/xfer/allocations.hpp"

#include <catch2/catch.hpp>

#include "rma/sim.hpp"

TEST_CASE("operations between simulated nodes allocate nothing", "[allocations]") {
  rma::sim::Config job;
  job.ranks = 2;
  job.ranks_per_node = 1;
  job.send_queue = GENERATE(0U, 2U);  // much room, and little, so that operations are held
  int failures = 0;
  const auto out = rma::sim::run(job, [&](rma::Runtime& rt) { failures += failures_of(rt); });
  INFO(out.text());
  CHECK(out.ok());
  CHECK(failures == 0);
}
