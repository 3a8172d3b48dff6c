// SPDX-License-Identifier: Apache-2.0
// Goal: a message in a ring is seen when its last byte is there and not before, whatever was in the slot, and is what
// was sent. Method: random messages of few different bytes, so that flags are met with by chance, placed in parts, in
// order. Broken once by always taking the primary flag: messages are seen too early.
#include "p2p/eager_ring.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

using namespace rma::detail;

TEST_CASE("a message is seen when all of it is there", "[p2p][eager_ring]") {
  std::mt19937 random(GENERATE(1U, 2U, 3U));
  constexpr std::uint32_t slots = 4;
  ring_source from(slots);
  ring_sink to(slots);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> message(random() % (round % 10 == 0 ? ring_message_max + 1 : 40));
    for (std::byte& b : message) b = static_cast<std::byte>(random() % 4);
    const std::uint32_t slot = from.next_slot();
    const std::size_t bytes = from.fill({}, message, static_cast<std::uint8_t>(round));
    REQUIRE(bytes == from.bytes_of(slot));
    std::byte* const there = to.memory() + slot * ring_slot_bytes;
    std::size_t placed = sizeof(ring_slot_header);
    REQUIRE_FALSE(to.ready());
    std::memcpy(there, from.slot(slot), placed);
    while (placed < bytes) {
      REQUIRE_FALSE(to.ready());
      const std::size_t now = std::min(bytes - placed, std::size_t{1} + random() % (bytes / 3 + 1));
      std::memcpy(there + placed, from.slot(slot) + placed, now);
      placed += now;
    }
    REQUIRE(to.ready());
    REQUIRE(std::ranges::equal(to.message(), message));
    REQUIRE(to.credits() == static_cast<std::uint8_t>(round));
    to.release();
    from.give_back(1);
  }
}

TEST_CASE("a ring is full until slots are given back", "[p2p][eager_ring]") {
  ring_source from(2);
  const std::byte b{7};
  (void)from.fill({&b, 1}, {}, 0);
  CHECK_FALSE(from.full());
  (void)from.fill({&b, 1}, {}, 0);
  CHECK(from.full());
  from.give_back(5);
  CHECK_FALSE(from.full());
  CHECK(from.filled() == 2);
}
