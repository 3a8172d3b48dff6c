// SPDX-License-Identifier: Apache-2.0
// Goal: links that are down and jitter delay packets and lose none; bad conditions are drawn from a seed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "fabric/sim/fault_model.hpp"
#include "fabric/sim/recorder.hpp"

namespace rma::sim {
namespace {

constexpr time_ps dma_2048 = 731'429;
constexpr time_ps us = 1'000'000;

/// All to all, a few packets each.
std::map<transfer_id, story> with_jitter(std::uint64_t seed, bool keep_order, time_ps max_ps = 20 * us) {
  recorder world(load_parameters("susukita"), "fat-tree", 8);
  world.network.set_jitter(max_ps, seed, keep_order);
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) world.put(from, to, 10'000);
  }
  world.run();
  CHECK(world.network.transfers_open() == 0);
  return world.stories;
}

bool in_order(const std::map<transfer_id, story>& stories) {
  return std::all_of(stories.begin(), stories.end(),
                     [](auto& one) { return std::is_sorted(one.second.arrivals.begin(), one.second.arrivals.end()); });
}

}  // namespace

TEST_CASE("a packet that would start on a link that is down waits until it is up", "[sim][faults]") {
  recorder world(load_parameters("susukita"), "switch", 3);
  link_id path[2];
  world.network.over().route(0, 1, path);
  // Two outages that meet, and one that lies behind.
  world.network.set_link_down(path[0], 0, 3 * us);
  world.network.set_link_down(path[0], 3 * us, 5 * us);
  world.network.set_link_down(path[0], 100 * us, 101 * us);
  const auto hit = world.put(0, 1, 2048);
  const auto other_way = world.put(1, 2, 2048);
  world.run();
  const time_ps without = dma_2048 + 2 * 600 + 140'000 + 512'000 + dma_2048;
  CHECK(world.stories[hit].departed_ps == dma_2048);
  CHECK(world.stories[hit].arrived_ps == 5 * us + without - dma_2048);
  CHECK(world.stories[other_way].arrived_ps == without);
}

TEST_CASE("with jitter packets of one pair stay in order, or not, as was asked", "[sim][faults]") {
  const auto ordered = with_jitter(1, true);
  const auto unordered = with_jitter(1, false);
  CHECK(in_order(ordered));
  CHECK_FALSE(in_order(unordered));
  for (const auto* stories : {&ordered, &unordered}) {
    for (const auto& [id, one] : *stories) {
      auto firsts = one.arrivals;
      std::sort(firsts.begin(), firsts.end());
      REQUIRE(firsts == std::vector<std::uint64_t>{0, 2048, 4096, 6144, 8192});
      REQUIRE(one.bytes_arrived == 10'000);
      REQUIRE(one.acknowledged_ps >= one.arrived_ps);
    }
  }
}

TEST_CASE("jitter is drawn from the seed", "[sim][faults]") {
  CHECK(with_jitter(7, false) == with_jitter(7, false));
  CHECK_FALSE(with_jitter(7, false) == with_jitter(8, false));
  CHECK(with_jitter(7, false, 0) == with_jitter(8, true, 0));
}

TEST_CASE("jitter keeps the order of different puts of one pair", "[sim][faults]") {
  recorder world(load_parameters("susukita"), "switch", 2);
  world.network.set_jitter(50 * us, 3, true);
  for (int i = 0; i < 100; ++i) world.put(0, 1, i % 3 == 0 ? 0 : 100);
  world.run();
  CHECK(world.arrived.size() == 100);
  CHECK(std::is_sorted(world.arrived.begin(), world.arrived.end()));
}

// Break: leave a limit as calm() has it.
TEST_CASE("a storm draws what transfers with layouts are cut by, from its seed alone", "[sim][network]") {
  std::set<std::size_t> gathers, scatters, slices, bulk, reads, handlers;
  std::set<bool> one_sided;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto drawn = storm(seed);
    const fabric::capabilities c = drawn.caps, again = storm(seed).caps;
    gathers.insert(c.gather_max);
    scatters.insert(c.scatter_max);
    slices.insert(c.remote_slices_max);
    bulk.insert(c.bulk_pieces_max);
    reads.insert(drawn.outstanding_reads_max);
    handlers.insert(c.handler_pieces_bytes_max);
    one_sided.insert(c.one_sided);
    CHECK(c.scatter_max == again.scatter_max);
    CHECK(c.bulk_pieces_max == again.bulk_pieces_max);
  }
  CHECK(gathers == std::set<std::size_t>{1, 2, 30});
  CHECK(scatters == std::set<std::size_t>{1, 2, 30});
  CHECK(slices == std::set<std::size_t>{1, 4});
  CHECK(bulk == std::set<std::size_t>{0, 1, 3, 50});
  CHECK(reads == std::set<std::size_t>{1, 4, 16});
  CHECK(handlers.size() == 3);
  CHECK(one_sided.size() == 2);
}

// Goal: the seeds of the oracles and of the conformance suite meet networks with and without each ability.
// Break: leave one of them as calm() has it.
TEST_CASE("a storm draws what a fabric may lack, from its seed alone", "[sim][network]") {
  std::map<bool, int> immediates, atomics, both;
  std::map<std::size_t, int> messages, inlined;
  for (std::uint64_t seed = 1; seed < 150; ++seed) {
    const fabric::capabilities c = storm(seed).caps, again = storm(seed).caps;
    ++immediates[c.write_with_immediate];
    ++atomics[c.atomics];
    ++both[c.write_with_immediate || c.atomics];
    ++messages[c.message_bytes_max];
    ++inlined[c.inline_bytes_max];
    CHECK(c.message_bytes_max == again.message_bytes_max);
    CHECK(c.inline_bytes_max == again.inline_bytes_max);
  }
  const auto each_is_usual = [](const auto& drawn, std::size_t values) {
    return drawn.size() == values && std::ranges::all_of(drawn, [](const auto& value) { return value.second > 20; });
  };
  CHECK(each_is_usual(immediates, 2));
  CHECK(each_is_usual(atomics, 2));
  CHECK(both[false] > 0);
  CHECK(each_is_usual(messages, 3));
  CHECK(messages.begin()->first == fabric::message_bytes_min);
  CHECK(each_is_usual(inlined, 3));
  CHECK(inlined.contains(0));
}

}  // namespace rma::sim
