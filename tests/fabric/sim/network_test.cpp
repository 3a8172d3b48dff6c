// SPDX-License-Identifier: Apache-2.0
// Goal: transfers take the time that the model's description says, and nothing is lost.
// Method: times of the susukita preset, worked out by hand from the constants of the paper's table 1.
#include "fabric/sim/network_model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

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

TEST_CASE("two puts of one node are served one after the other", "[sim][network]") {
  recorder world(susukita(), "switch", 3);
  const auto first = world.put(0, 1, 2048);
  const auto second = world.put(0, 2, 2048);
  world.run();
  const time_ps alone = dma_2048 + across_switch + wire(2048) + dma_2048;
  CHECK(world.stories[first].arrived_ps == alone);
  CHECK(world.stories[second].departed_ps == 2 * dma_2048);
  CHECK(world.stories[second].arrived_ps == dma_2048 + alone);
  CHECK(world.network.use_of(0, 0).queue_max == 1);
  CHECK(world.network.use_of(0, 0).waiting_ps == dma_2048);
}

TEST_CASE("two DMA engines serve two targets at once", "[sim][network]") {
  parameters with = susukita();
  with.dma_engines = 2;
  recorder world(with, "switch", 4);
  const auto even = world.put(0, 2, 2048);
  const auto odd = world.put(0, 1, 2048);
  world.run();
  CHECK(world.stories[even].departed_ps == dma_2048);
  CHECK(world.stories[odd].departed_ps == dma_2048);
  // The link takes one packet at a time.
  CHECK(world.stories[odd].arrived_ps == world.stories[even].arrived_ps + wire(2048));
}

TEST_CASE("packets to one node share its link, one at a time", "[sim][network]") {
  parameters with = susukita();
  with.dma_speed_gbs = 1000;  // so that nothing else is in the way
  recorder world(with, "switch", 3);
  const auto first = world.put(0, 2, 2048);
  const auto second = world.put(1, 2, 2048);
  world.run();
  const time_ps dma = 2048;
  CHECK(world.stories[first].arrived_ps == dma + across_switch + wire(2048) + dma);
  CHECK(world.stories[second].arrived_ps == world.stories[first].arrived_ps + wire(2048));
  const link_use& shared = world.network.use_of(3 + 2);  // switch -> node 2
  CHECK(shared.packets == 2);
  CHECK(shared.bytes == 4096);
  CHECK(shared.busy_ps == 2 * wire(2048));
  CHECK(shared.waiting_ps == wire(2048));
  CHECK(shared.waiting_max_ps == wire(2048));
}

TEST_CASE("an engine that reads and writes takes turns, packet by packet", "[sim][network]") {
  recorder world(susukita(), "switch", 2);
  const auto out = world.put(0, 1, 20 * 2048);
  const auto in = world.put(1, 0, 20 * 2048);
  world.run();
  // Both nodes move 40 packets in all.
  for (const auto id : {out, in}) {
    CHECK(world.stories[id].arrived_ps > 39 * dma_2048);
    CHECK(world.stories[id].arrived_ps < 42 * dma_2048);
  }
  parameters with = susukita();
  with.dma_receive_engines = 1;
  recorder duplex(with, "switch", 2);
  const auto alone = duplex.put(0, 1, 20 * 2048);
  duplex.put(1, 0, 20 * 2048);
  duplex.run();
  CHECK(duplex.stories[alone].arrived_ps == 20 * dma_2048 + across_switch + wire(2048) + dma_2048);
}

TEST_CASE("loop-back occupies the adapter once, and no link", "[sim][network]") {
  recorder world(susukita(), "switch", 2);
  const auto looped = world.put(0, 0, 3 * 2048);
  const auto next = world.put(0, 1, 2048);
  world.run();
  CHECK(world.stories[looped].arrived_ps == 3 * dma_2048);
  CHECK(world.stories[looped].acknowledged_ps == 3 * dma_2048);
  CHECK(world.stories[next].departed_ps == 4 * dma_2048);
  CHECK(world.network.hops() == 4);  // hops of the other put, with its control packet
}

TEST_CASE("a control packet needs no DMA and keeps its place behind data", "[sim][network]") {
  recorder world(susukita(), "switch", 2);
  const auto alone = world.put(0, 1, 0, 0, false);
  const auto data = world.put(0, 1, 2048, 10'000'000);
  const auto after = world.put(0, 1, 0, 10'000'000, false);
  world.run();
  CHECK(world.stories[alone].arrived_ps == control_time);
  CHECK(world.stories[alone].acknowledged_ps == never_ps);
  CHECK(world.stories[after].arrived_ps >= world.stories[data].arrived_ps);
  CHECK(world.arrived == std::vector<transfer_id>{alone, data, after});
}

TEST_CASE("the bus is crossed by posts, reads, data and completions", "[sim][network]") {
  parameters with = susukita();
  with.pcie_latency_ps = 100'000;
  with.nic_message_time_ps = 10'000;
  with.inline_payload_bytes = 64;
  const auto put = [&](transfer what) {
    recorder world(with, "switch", 2);
    what.to_node = 1;
    world.stories[0] = {};
    world.network.post(what, 0);
    world.run();
    return world.stories[0];
  };
  const time_ps small = 10'000 + 2 * 22'857 + across_switch + wire(64);  // 64 bytes at 2.8 GB/s
  CHECK(put({.bytes = 64}).arrived_ps == small + 2 * 100'000);           // post, data
  CHECK(put({.bytes = 64}).acknowledged_ps == small + control_time + 3 * 100'000);
  CHECK(put({.bytes = 2048}).arrived_ps == 10'000 + 2 * dma_2048 + across_switch + wire(2048) + 4 * 100'000);
  CHECK(put({.bytes = 64, .from_adapter = true}).arrived_ps == small + 3 * 100'000);  // read there and back, data
  CHECK(put({.bytes = 0, .from_adapter = true, .to_adapter = true}).arrived_ps == 10'000 + control_time);
}

TEST_CASE("a small put does not overtake the large one before it", "[sim][network]") {
  parameters with = load_parameters("dissertation-ddr");
  recorder world(with, "switch", 2);
  const auto large = world.put(0, 1, 5000);
  const auto small = world.put(0, 1, 8);
  world.run();
  CHECK(world.arrived == std::vector<transfer_id>{large, large, large, small});
}

TEST_CASE("an adapter's message rate is that of its packets", "[sim][network]") {
  parameters with = susukita();
  with.nic_packet_time_ps = 100'000;
  recorder world(with, "switch", 2);
  for (int i = 0; i < 11; ++i) world.put(0, 1, 8);
  world.run();
  CHECK(world.stories[10].departed_ps - world.stories[0].departed_ps == 10 * 100'000);
}

TEST_CASE("atomics are served one by one", "[sim][network]") {
  recorder world(susukita(), "switch", 2);
  world.network.serve_atomic(1, 0, 1000);
  world.network.serve_atomic(1, 1, 2000);
  world.network.serve_atomic(0, 2, 2000);
  world.run();
  CHECK(world.stories[0].atomic_ps == 1000 + 446'000);
  CHECK(world.stories[1].atomic_ps == 1000 + 2 * 446'000);
  CHECK(world.stories[2].atomic_ps == 2000 + 446'000);
}

TEST_CASE("store and forward pays each link in full", "[sim][network]") {
  parameters with = susukita();
  with.store_and_forward = 1;
  recorder world(with, "switch", 2);
  const auto id = world.put(0, 1, 2048);
  world.run();
  CHECK(world.stories[id].arrived_ps == 2 * dma_2048 + across_switch + 2 * wire(2048));
}

TEST_CASE("whatever is put arrives, once and in order, and runs repeat themselves", "[sim][network]") {
  const auto* shape = GENERATE("switch", "fat-tree", "fat-tree:k=3,n=3", "torus:5x5", "torus:3x3x3");
  const auto* machine = GENERATE("susukita", "dissertation-ddr", "ndr400");
  const auto seed = GENERATE(take(3, random(1U, 1U << 30)));
  CAPTURE(shape, machine, seed);
  const auto run = [&] {
    recorder world(load_parameters(machine), shape, 25);
    std::mt19937 random(seed);
    for (int i = 0; i < 1000; ++i) {
      const auto some = [&](unsigned below) { return static_cast<int>(random() % below); };
      world.put(some(25), some(25), static_cast<std::uint64_t>(some(3) == 0 ? 0 : some(20'000)), some(50'000'000));
    }
    world.run();
    CHECK(world.network.transfers_open() == 0);
    std::uint64_t out = 0;
    std::uint64_t in = 0;
    for (int node = 0; node < 25; ++node) {
      for (unsigned engine = 0; engine < world.network.engines_per_node(); ++engine) {
        out += world.network.use_of(node, engine).bytes_out;
        in += world.network.use_of(node, engine).bytes_in;
      }
    }
    std::uint64_t arrived = 0;
    std::uint64_t looped = 0;
    for (const auto& [id, one] : world.stories) {
      arrived += one.bytes_arrived;
      REQUIRE(one.bytes_departed == one.bytes_arrived);
      REQUIRE(one.acknowledged_ps >= one.arrived_ps);
      REQUIRE(one.acknowledged_ps != never_ps);
      REQUIRE(std::is_sorted(one.arrivals.begin(), one.arrivals.end()));
      if (one.acknowledged_ps == one.arrived_ps) looped += one.bytes_arrived;
    }
    CHECK(out == arrived);
    CHECK(in + looped == arrived);
    return world.stories;
  };
  CHECK(run() == run());
}

}  // namespace rma::sim
