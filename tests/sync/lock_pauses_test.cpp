// SPDX-License-Identifier: Apache-2.0
// Goal: who waits for a network lock that one rank keeps for long looks seldom, since each look wakes it up, and has
// the lock soon after it is free all the same. Method: two simulated ranks on nodes of their own; looks and virtual
// time are counted. Break: look every millisecond however long it takes; or less often than a rank that lets go steps
// back (2 ms).
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

TEST_CASE("a lock that one rank keeps for long is looked at half as often", "[sync][lock_pauses]") {
  using namespace std::chrono_literals;
  constexpr std::chrono::nanoseconds kept = 2s;
  rma::sim::Config job{.ranks = 2, .ranks_per_node = 1};
  job.settings["RMA_LOCK"] = "network";
  std::int64_t waits = 0;
  std::chrono::nanoseconds free_at{}, had_at{};
  const auto outcome = rma::sim::run(job, [&](rma::Runtime& rt) {
    auto win = rma::Window<std::uint64_t>::allocate(rt.world(), 1);
    std::optional<rma::Epoch> held;
    if (rt.rank() == 0) held.emplace(win.lock(rma::exclusive, 1));
    rt.world().barrier();
    if (rt.rank() == 0) {
      rt.compute(kept);
      free_at = rt.now();
    } else {
      held.emplace(win.lock(rma::exclusive, 1));
      had_at = rt.now();
      for (const auto& each : rt.counters()) {
        if (each.name == "lock_waits") waits = static_cast<std::int64_t>(each.value);
      }
    }
    held.reset();
    rt.world().barrier();
    win.free();
  });
  INFO(outcome.text());
  REQUIRE(outcome.ok());
  CAPTURE(waits, free_at.count(), had_at.count());
  // Pauses are drawn between half of them and all: 2 ms at most, 1.5 in the middle; 0.75 for the first 0.1 s.
  CHECK(waits > kept / 2ms);
  CHECK(waits < kept * 9 / 10 / 1ms);
  CHECK(had_at - free_at < 2ms + 200us);
}
