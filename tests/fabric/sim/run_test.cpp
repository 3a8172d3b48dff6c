// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace sim = rma::sim;

// Goal: a program with windows runs in the simulator as it does elsewhere.
// Method: each rank puts into its neighbour between two fences.
TEST_CASE("four simulated ranks put and fence", "[fabric][sim]") {
  std::vector<std::uint64_t> seen(4, 0);
  const sim::Outcome out = sim::run({.ranks = 4}, [&](rma::Runtime& rt) {
    rma::Team world = rt.world();
    auto win = rma::Window<std::uint64_t>::allocate(world, 8);
    win.fence();
    win.put(100 + static_cast<std::uint64_t>(rt.rank()), (rt.rank() + 1) % rt.size(), 3);
    win.fence();
    seen[static_cast<std::size_t>(rt.rank())] = win[3];
    win.free();
  });
  INFO(out.text());
  CHECK(out.ok());
  CHECK(seen == std::vector<std::uint64_t>{103, 100, 101, 102});
  CHECK(out.time > std::chrono::nanoseconds(0));
}
