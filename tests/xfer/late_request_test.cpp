// SPDX-License-Identifier: Apache-2.0
// Goal: a request that outlives its runtime is harmless: it may be dropped, and says how its operation has ended.
//
// Method: simulated ranks on one node and on two leave requests of each kind behind: of operations that a fence has
// completed, of one that nothing has, of a synchronization that has not ended. All calls on requests get them.
//
// Break: leave out the loop of ~engine.
#include <catch2/catch.hpp>

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using window = rma::Window<long>;
using rma::status;

struct left_behind {
  std::vector<rma::Request> completed{};
  rma::Request open{};
  rma::Request lock{};
};

/// The state that rank 0 of two leaves behind.
left_behind run_job(int per_node) {
  left_behind left;
  std::array<long, 64> source{};
  std::array<long, 64> result{};
  const auto out = rma::sim::run({.ranks = 2, .ranks_per_node = per_node}, [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 64, {.accumulate = rma::accumulate_mode::handler});
    auto other = window::allocate(rt.world(), 1);
    win.fence();
    if (rt.rank() == 0) {
      left.completed.push_back(win.rput(std::span<const long>(source), 1, 0));
      left.completed.push_back(win.raccumulate(std::span<const long>(source), 1, 0, rma::sum));
      left.completed.push_back(win.rget(std::span<long>(result), 1, 0));
    }
    win.fence();
    if (rt.rank() == 1) {
      auto epoch = other.lock(rma::exclusive, 1);
      rt.world().barrier();
      rt.world().barrier();
    } else {
      rt.world().barrier();
      left.lock = other.ilock(rma::exclusive, 1);
      left.open = win.raccumulate(std::span<const long>(source), 1, 0, rma::sum);
      rt.world().barrier();
    }
    rt.world().barrier();
  });
  INFO(out.text());
  REQUIRE(out.ok());
  return left;
}

}  // namespace

TEST_CASE("requests that outlive their runtime may be dropped", "[request][late]") {
  const int per_node = GENERATE(1, 2);
  (void)run_job(per_node);
}

TEST_CASE("requests that outlive their runtime say how they have ended", "[request][late]") {
  const int per_node = GENERATE(1, 2);
  left_behind left = run_job(per_node);
  CHECK(left.completed[0].try_test() == status::done);
  CHECK_NOTHROW(left.completed[1].wait());
  CHECK(rma::wait_all_nothrow(left.completed) == status::done);
  CHECK(left.lock.wait_nothrow() == status::window_freed);
  const status open = left.open.wait_nothrow();
  CHECK((open == status::done || open == status::window_freed));
  CHECK_FALSE(left.open.pending());
}

TEST_CASE("a wait for several takes those that outlive their runtime for ended", "[request][late]") {
  left_behind left = run_job(1);
  left.completed.push_back(std::move(left.open));
  std::size_t told = 0;
  try {
    while (rma::wait_any(left.completed) != left.completed.size()) ++told;
  } catch (const rma::Error& e) {
    CHECK(e.code() == status::window_freed);
    CHECK(std::string(e.what()).find("its Runtime has ended") != std::string::npos);
    ++told;
  }
  CHECK(told == 4);
  left = run_job(1);
  CHECK(rma::test_any(left.completed).has_value());
  CHECK(rma::test_all(left.completed));
}
