// SPDX-License-Identifier: Apache-2.0
// Goal: with finite buffers packets wait for room, in order, and neither get lost nor stuck.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "fabric/sim/recorder.hpp"
#include "rma/error.hpp"

namespace rma::sim {
namespace {

parameters with_buffers(std::uint64_t buffers, double dma_gbs = 1000) {
  parameters with = load_parameters("susukita");
  with.port_buffers = buffers;
  with.dma_speed_gbs = dma_gbs;
  with.dma_receive_engines = 1;
  return with;
}

/// The same random puts on every machine; when the last byte was there.
time_ps all_arrived(const parameters& with, const char* shape, unsigned seed) {
  recorder world(with, shape, 27);
  std::mt19937 random(seed);
  std::uint64_t posted = 0;
  for (int i = 0; i < 2000; ++i) {
    const int from = static_cast<int>(random() % 27);
    // Half of it to one node: the buffers on the way there are full most of the time.
    const int to = random() % 2 == 0 ? 13 : static_cast<int>(random() % 27);
    const std::uint64_t bytes = random() % 30'000;
    posted += bytes;
    world.put(from, to, bytes);
  }
  world.run();
  CHECK(world.network.transfers_open() == 0);
  std::uint64_t arrived = 0;
  time_ps last_ps = 0;
  for (const auto& [id, one] : world.stories) {
    arrived += one.bytes_arrived;
    last_ps = std::max(last_ps, one.arrived_ps);
    REQUIRE(one.acknowledged_ps != never_ps);
    REQUIRE(std::is_sorted(one.arrivals.begin(), one.arrivals.end()));
  }
  CHECK(arrived == posted);
  return last_ps;
}

}  // namespace

TEST_CASE("finite buffers lose nothing and never get stuck", "[sim][buffers]") {
  const auto buffers = GENERATE(1, 2, 5);
  const auto* shape = GENERATE("switch", "fat-tree:k=3,n=3", "fat-tree:k=6,n=2");
  const auto seed = GENERATE(take(3, random(1U, 1U << 30)));
  CAPTURE(buffers, shape, seed);
  const time_ps limited = all_arrived(with_buffers(static_cast<std::uint64_t>(buffers)), shape, seed);
  CHECK(limited == all_arrived(with_buffers(static_cast<std::uint64_t>(buffers)), shape, seed));
  CHECK(limited >= all_arrived(with_buffers(0), shape, seed));
}

TEST_CASE("many buffers are as good as any number", "[sim][buffers]") {
  CHECK(all_arrived(with_buffers(60000), "fat-tree:k=3,n=3", 5) == all_arrived(with_buffers(0), "fat-tree:k=3,n=3", 5));
}

TEST_CASE("with one buffer the next packet waits until the first has left the router", "[sim][buffers]") {
  constexpr time_ps cable = 600;
  constexpr time_ps router = 140'000;
  constexpr time_ps wire = 512'000;  // 2048 bytes
  constexpr time_ps dma = 2048;
  recorder world(with_buffers(1), "switch", 2);
  const auto id = world.put(0, 1, 2 * 2048);
  world.run();
  // The first starts at dma; its tail leaves the switch at dma + cable + router + wire, word of that takes a cable.
  const time_ps second_ps = dma + cable + router + wire + cable;
  CHECK(world.stories[id].arrived_ps == second_ps + 2 * cable + router + wire + dma);
  recorder endless(with_buffers(0), "switch", 2);
  const auto same = endless.put(0, 1, 2 * 2048);
  endless.run();
  CHECK(endless.stories[same].arrived_ps == dma + 2 * cable + router + 2 * wire + dma);
}

TEST_CASE("a full buffer holds up packets to other nodes behind it", "[sim][buffers]") {
  // Nodes 0 and 1 send to 8 for long; node 0's last put goes elsewhere over the same first link.
  const auto last_arrival = [](std::uint64_t buffers) {
    recorder world(with_buffers(buffers), "fat-tree:k=3,n=2", 9);
    world.put(1, 8, 200'000);
    world.put(0, 8, 200'000);
    const auto behind = world.put(0, 2, 2048);
    world.run();
    return world.stories[behind].arrived_ps;
  };
  CHECK(last_arrival(1) > 350'000 * 250);  // nearly all of what goes to node 8 is through
  CHECK(last_arrival(0) < 210'000 * 250);
}

TEST_CASE("links that are down hold up packets with finite buffers, too", "[sim][buffers]") {
  recorder world(with_buffers(2), "switch", 2);
  world.network.set_link_down(0, 0, 5'000'000);
  const auto id = world.put(0, 1, 10'000);
  world.run();
  CHECK(world.stories[id].bytes_arrived == 10'000);
  CHECK(world.stories[id].arrived_ps > 5'000'000 + 5 * 2000 * 250);
}

TEST_CASE("a torus of finite buffers is refused", "[sim][buffers]") {
  CHECK_THROWS_WITH(recorder(with_buffers(4), "torus:3x3", 9),
                    "port_buffers = 4 with topology 'torus:3x3': a ring of full buffers never moves again; 0 is any "
                    "number of buffers");
}

}  // namespace rma::sim
