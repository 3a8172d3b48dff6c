// SPDX-License-Identifier: Apache-2.0
// Goal: the receiver chooses who has a ring, as RMA_RING_SET says, and no more than RMA_RING_PEERS at once.
// Method: simulated ranks; one sends a little to rank 0 and then another one much, with place for one ring.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <rma/rma.hpp>
#include <rma/sim.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int ranks = 4, few = 40, many = 400;

std::uint64_t count_of(const rma::Runtime& rt, std::string_view name) {
  for (const rma::Counter& c : rt.counters()) {
    if (c.name == name) return c.value;
  }
  return 0;
}

using by_rank = std::array<std::uint64_t, ranks>;

/// Messages that each rank has sent by its ring; rank 1 sends first, rank 2 more.
by_rank by_rings(const std::string& set, const std::string& order) {
  rma::sim::Config c;
  c.ranks = ranks;
  c.ranks_per_node = 1;
  c.settings["RMA_EAGER"] = "rdma-ring";
  c.settings["RMA_RING_PEERS"] = "1";
  c.settings["RMA_RING_SET"] = set;
  c.settings["RMA_RING_ORDER"] = order;
  by_rank sent{};
  const auto out = rma::sim::run(c, [&](rma::Runtime& rt) {
    rma::Team world = rt.world();
    std::uint64_t word = 0;
    rma::PersistentMessage hint;
    if (rt.rank() == 0 && set == "hint") hint = world.recv_init(std::span(&word, 1), 2, 99);
    for (int sender = 1; sender < ranks - 1; ++sender) {
      const int count = sender == 1 ? few : many;
      for (int i = 0; i < count; ++i) {
        if (rt.rank() == sender) {
          world.send(std::span(&word, 1), 0, sender);
          world.recv(std::span(&word, 1), 0, sender);
        } else if (rt.rank() == 0) {
          world.recv(std::span(&word, 1), sender, sender);
          world.send(std::span(&word, 1), sender, sender);
        }
      }
      world.barrier();
    }
    sent[static_cast<std::size_t>(rt.rank())] = count_of(rt, "ring_messages");
    return 0;
  });
  INFO(out.text());
  REQUIRE(out.ok());
  return sent;
}

}  // namespace

TEST_CASE("the receiver chooses who has a ring", "[p2p][eager_ring]") {
  const std::string order = GENERATE("circular", "sequential", "priority");
  CAPTURE(order);
  SECTION("the first that sends") {
    const by_rank sent = by_rings("first", order);
    CHECK(sent[1] > few / 2);
    CHECK(sent[2] == 0);
  }
  SECTION("who sends most, when it has sent twice as much") {
    const by_rank sent = by_rings("traffic", order);
    CHECK(sent[1] > few / 2);
    CHECK(sent[2] > many / 2);
  }
  SECTION("whom a persistent receive has named") {
    const by_rank sent = by_rings("hint", order);
    CHECK(sent[1] == 0);
    CHECK(sent[2] > many - few);
  }
}
