// SPDX-License-Identifier: Apache-2.0
// Windows whose ranks are on several simulated nodes: every kind of operation and epoch, once.
#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

using rma::Runtime;
using rma::Window;

namespace {

rma::sim::Config nodes(int ranks, int per_node) { return {.ranks = ranks, .ranks_per_node = per_node}; }

/// The time of rank 1's copies while rank 0 gets so many bytes of it in an epoch of lock two-sided.
std::chrono::nanoseconds copying_of_target(std::size_t bytes) {
  auto job = nodes(2, 1);
  job.parameters = "dissertation-ddr";
  job.settings = {{"RMA_LOCK", "two-sided:deferred"}};
  const auto out = rma::sim::run(job, [bytes](Runtime& rt) {
    auto win = Window<std::byte>::allocate(rt.world(), bytes);
    std::vector<std::byte> found(bytes);
    if (rt.rank() == 0) {
      auto held = win.lock(rma::exclusive, 1);
      win.get(std::span(found), 1, 0);
      held.unlock();
    }
    win.free();
  });
  INFO(out.text());
  REQUIRE(out.ok());
  return out.ranks[1].copying;
}

/// Virtual time of a job of one node whose ranks take locks of the network.
std::chrono::nanoseconds time_of_network_locks(const std::map<std::string, std::string>& settings) {
  rma::sim::Config job{.ranks = 3, .settings = settings};
  job.settings.insert({"RMA_LOCK", "network"});
  const auto out = rma::sim::run(job, [](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 1);
    for (int i = 0; i < 20; ++i) {
      auto held = win.lock(rma::exclusive, 0);
      win.put(win.get(0, 0) + 1, 0, 0);
      held.unlock();
    }
    rt.world().barrier();
    if (rt.rank() == 0 && win[0] != std::uint64_t(20 * rt.size())) throw std::runtime_error("an update is lost");
    win.free();
  });
  INFO(out.text());
  REQUIRE(out.ok());
  return out.time;
}

void all_well(const rma::sim::Outcome& out) {
  INFO(out.text());
  CHECK(out.ok());
}

}  // namespace

TEST_CASE("puts to all nodes are there after a fence", "[nodes]") {
  const int per_node = GENERATE(1, 2, 3);
  all_well(rma::sim::run(nodes(6, per_node), [](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 64);
    win.fence();
    for (int r = 0; r < rt.size(); ++r) win.put(std::uint64_t(100 + rt.rank()), r, std::size_t(rt.rank()));
    win.fence();
    for (int r = 0; r < rt.size(); ++r) {
      if (win[std::size_t(r)] != std::uint64_t(100 + r)) throw std::runtime_error("a put is missing");
    }
    win.fence(rma::no_succeed);
    win.free();
  }));
}

TEST_CASE("locks of other nodes exclude each other", "[nodes]") {
  all_well(rma::sim::run(nodes(4, 1), [](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 1);
    rt.world().barrier();
    for (int i = 0; i < 20; ++i) {
      auto epoch = win.lock(rma::exclusive, 0);
      const auto before = win.get(0, 0);
      rt.compute(std::chrono::nanoseconds(500));
      win.put(before + 1, 0, 0);
    }
    rt.world().barrier();
    if (rt.rank() == 0 && win[0] != std::uint64_t(20 * rt.size())) throw std::runtime_error("an update is lost");
    win.free();
  }));
}

TEST_CASE("a job of one node has adapters if they are asked for", "[nodes]") {
  const auto memory = time_of_network_locks({});
  CHECK(time_of_network_locks({{"RMA_FABRIC", "auto"}}) == memory);
  // Two atomics across the loop-back for each epoch, 60 in all; see ndr400 for what one takes.
  CHECK(time_of_network_locks({{"RMA_FABRIC", "sim"}}) > memory + 60 * std::chrono::microseconds(1));
  const auto device = [](const char* fabric) {
    rma::sim::Config job{.ranks = 2, .settings = {{"RMA_FABRIC", fabric}}};
    return rma::sim::run(job, [](Runtime& rt) {
      rma::Hints hints;
      hints.accumulate = rma::accumulate_mode::direct;
      auto win = Window<std::uint64_t>::allocate(rt.world(), 1, hints);
      win.free();
    });
  };
  all_well(device("sim"));
  CHECK_THAT(device("auto").text(), Catch::Contains("simulated: sim"));
}

TEST_CASE("a job that is not simulated has no simulated adapter", "[nodes]") {
  rma::Config start;
  start.settings = {{"RMA_FABRIC", "sim"}};
  CHECK_THROWS_WITH(Runtime(start), Catch::Contains("RMA_FABRIC=sim: this job is not simulated"));
}

TEST_CASE("who sends a large message pays for its copy into the adapter's memory", "[nodes]") {
  constexpr std::size_t bytes = std::size_t{32} << 10;
  const std::chrono::nanoseconds alone(static_cast<std::int64_t>(bytes / 1.5));  // copy_bandwidth, in bytes per ns
  CHECK(copying_of_target(8).count() == 0);                                      // comes with the post
  CHECK(copying_of_target(bytes) >= alone);
  CHECK(copying_of_target(bytes) < alone + alone / 10);  // with headers
}

TEST_CASE("atomics of other nodes are exact", "[nodes]") {
  all_well(rma::sim::run(nodes(5, 2), [](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 8);
    rt.world().barrier();
    {
      auto epoch = win.lock_all();
      for (int i = 0; i < 10; ++i) {
        for (int r = 0; r < rt.size(); ++r) (void)win.fetch_and_op(std::uint64_t{1}, r, 3, rma::sum);
      }
    }
    rt.world().barrier();
    if (win[3] != std::uint64_t(10 * rt.size())) throw std::runtime_error("an update is lost");
    win.free();
  }));
}

TEST_CASE("post, start, complete and wait between nodes", "[nodes]") {
  all_well(rma::sim::run(nodes(4, 1), [](Runtime& rt) {
    auto win = Window<int>::allocate(rt.world(), 4);
    const int right = (rt.rank() + 1) % rt.size();
    const int left = (rt.rank() + rt.size() - 1) % rt.size();
    for (int i = 1; i <= 5; ++i) {
      const std::array<int, 1> to{right};
      const std::array<int, 1> from{left};
      win.post(from);
      win.start(to);
      win.put(1000 * i + rt.rank(), right, 2);
      win.complete();
      win.wait();
      if (win[2] != 1000 * i + left) throw std::runtime_error("a put is missing");
    }
    win.free();
  }));
}

TEST_CASE("large puts and gets between nodes", "[nodes]") {
  all_well(rma::sim::run(nodes(2, 1), [](Runtime& rt) {
    constexpr std::size_t count = 100'000;
    std::vector<std::uint32_t> mine(count), back(count);
    std::iota(mine.begin(), mine.end(), 7U * static_cast<unsigned>(rt.rank()));
    std::vector<std::uint32_t> memory(count);
    auto win = Window<std::uint32_t>::create(rt.world(), std::span(memory));
    const int other = 1 - rt.rank();
    win.fence();
    win.put(std::span<const std::uint32_t>(mine), other, 0);
    win.fence();
    win.get(std::span(back), other, 0);
    win.fence(rma::no_succeed);
    if (back != mine) throw std::runtime_error("what comes back is not what was put");
    win.free();
  }));
}

TEST_CASE("the same run gives the same virtual time, another seed of faults another one", "[nodes]") {
  const auto time = [](std::uint64_t seed) {
    auto job = nodes(4, 2);
    job.seed = seed;
    job.faults = true;
    const auto out = rma::sim::run(job, [](Runtime& rt) {
      auto win = Window<int>::allocate(rt.world(), 1000);
      const std::vector<int> data(300, 5);
      for (int i = 0; i < 5; ++i) {
        win.fence();
        win.put(std::span<const int>(data), (rt.rank() + 2) % rt.size(), 5);
      }
      win.fence(rma::no_succeed);
      win.free();
    });
    INFO(out.text());
    REQUIRE(out.ok());
    return out.time;
  };
  CHECK(time(1) == time(1));
  CHECK(time(1) != time(2));
}
