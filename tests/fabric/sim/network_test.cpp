// SPDX-License-Identifier: Apache-2.0
// Goal: transfers take the time that the model's description says, and nothing is lost.
// Method: times of the susukita preset, worked out by hand from the constants of the paper's table 1.
#include "fabric/sim/network_model.hpp"

#include <catch2/catch.hpp>

#include "fabric/sim/recorder.hpp"

namespace rma::sim {
namespace {

// The constants of the preset, in ps; 32 bytes of control packet are the preset's own.
constexpr time_ps cable = 600;
constexpr time_ps router = 140'000;  // 4 + 4 + 4 + 128 ns
constexpr time_ps across_switch = 2 * cable + router;
constexpr time_ps wire(std::uint64_t bytes) { return static_cast<time_ps>(bytes) * 250; }  // 4 GB/s
constexpr time_ps dma_2048 = 731'429;                                                      // 2048 bytes at 2.8 GB/s
constexpr time_ps control_time = across_switch + wire(32);

parameters susukita() { return load_parameters("susukita"); }

}  // namespace

TEST_CASE("a put of one packet takes two DMA transfers, the network and a control packet", "[sim][network]") {
  recorder world(susukita(), "switch", 2);
  const auto id = world.put(0, 1, 2048);
  world.run();
  const story& of = world.stories[id];
  CHECK(of.departed_ps == dma_2048);
  CHECK(of.arrived_ps == dma_2048 + across_switch + wire(2048) + dma_2048);
  CHECK(of.acknowledged_ps == of.arrived_ps + control_time);
  CHECK(of.arrivals == std::vector<std::uint64_t>{0});
  CHECK(world.network.transfers_open() == 0);
}

TEST_CASE("a small packet is as fast as its bytes", "[sim][network]") {
  recorder world(susukita(), "switch", 2);
  const auto id = world.put(0, 1, 4, 1'000'000);
  world.run();
  const time_ps dma_4 = 1429;
  CHECK(world.stories[id].acknowledged_ps == 1'000'000 + 2 * dma_4 + across_switch + wire(4) + control_time);
}

TEST_CASE("a put of many packets is as fast as its DMA engine", "[sim][network]") {
  // 2048 bytes take 731 ns of DMA and 512 ns of link: packets do not wait for one another after the source's engine.
  recorder world(susukita(), "switch", 2);
  const auto id = world.put(0, 1, 64 * 1024);
  world.run();
  const story& of = world.stories[id];
  CHECK(of.arrived_ps == 32 * dma_2048 + across_switch + wire(2048) + dma_2048);
  CHECK(of.acknowledged_ps == of.arrived_ps + control_time);
  CHECK(of.arrivals.size() == 32);
  CHECK(std::is_sorted(of.arrivals.begin(), of.arrivals.end()));
  CHECK(of.bytes_arrived == 64 * 1024);
}

}  // namespace rma::sim
