// SPDX-License-Identifier: Apache-2.0
// ring_counts_program ROUND_TRIPS: what short messages through rings take of the adapter, on two ranks between nodes.
// Each message is one write; one in half a send queue, which has 16 entries on a device in software, has a completion,
// so that entries of the queue are free again. No message of the other channel comes or goes.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rma/rma.hpp"

namespace {

constexpr int warm_up = 500;  ///< the rings are opened meanwhile

struct counts {
  std::uint64_t ring_messages = 0, writes = 0, sends = 0, completions = 0, received = 0, doorbells = 0;
  explicit counts(const rma::Runtime& rt) {
    const auto of = [&](std::string_view name) {
      for (const rma::Counter& c : rt.counters()) {
        if (c.name == name) return c.value;
      }
      throw std::runtime_error(fmt::format("there is no counter {}", name));
    };
    ring_messages = of("ring_messages");
    writes = of("verbs_writes");
    sends = of("verbs_sends");
    completions = of("verbs_completions");
    received = of("messages_received");
    doorbells = of("verbs_doorbells");
  }
};

void ping_pong(rma::Team& world, int round_trips) {
  std::array<std::uint64_t, 1> value{};
  const int other = 1 - world.rank();
  for (int i = 0; i < round_trips; ++i) {
    if (world.rank() == 0) world.send(std::span<const std::uint64_t>(value), other, 0);
    world.recv(std::span(value), other, 0);
    ++value[0];
    if (world.rank() == 1) world.send(std::span<const std::uint64_t>(value), other, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  const int round_trips = argc > 1 ? std::atoi(argv[1]) : 1000;
  ping_pong(world, warm_up);
  const counts before(rt);
  ping_pong(world, round_trips);
  const counts after(rt);
  const auto messages = static_cast<std::uint64_t>(round_trips);
  const std::uint64_t by_ring = after.ring_messages - before.ring_messages, writes = after.writes - before.writes,
                      sends = after.sends - before.sends, completions = after.completions - before.completions,
                      received = after.received - before.received, doorbells = after.doorbells - before.doorbells;
  fmt::print("{} messages: {} by ring, {} writes, {} doorbells, {} sends, {} completions, {} messages received\n",
             messages, by_ring, writes, doorbells, sends, completions, received);
  const bool right = by_ring == messages && writes == messages && doorbells == messages && sends == 0 &&
                     received == 0 && completions <= messages / 8 + 1;
  return right ? 0 : 1;
}
