// SPDX-License-Identifier: Apache-2.0
// The pattern of perf/sim_network.cpp with SimGrid (S4U): the same ranks, puts and fat tree, its default network model.
//
//   simgrid_neighbors K N [PACKET [WINDOW]]     a k-ary n-tree of k^n nodes
//   simgrid_neighbors K N together              all puts of a rank at once, each one flow
//
// A communication between two hosts that needs no one at the other end is what comes closest to a put. SimGrid knows
// flows, not packets. PACKET 2048 (the default): each packet is a communication, WINDOW (1) of them at a time, so that
// both programs simulate the same packets. PACKET 0: a put is one flow; that is less work, and says nothing of packets.
// A link of the speed of the DMA engine limits the sum of a node's puts and of those to it, as in the
// susukita preset, whose constants these are; the latency of the routers is that of the links.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace {

namespace sg4 = simgrid::s4u;

constexpr double link_bandwidth = 4.0e9;
constexpr double dma_bandwidth = 2.8e9;
constexpr double latency_s = (0.6 + 140.0) * 1e-9;

struct choice {
  int arity = 32;
  int levels = 2;
  int messages = 10;
  unsigned long bytes = 65536;
  unsigned long packet_bytes = 2048;
  std::size_t window = 1;
  bool together = false;
  int ranks = 1;
};

std::vector<sg4::Host*> make_machine(const choice& chosen) {
  const auto levels = static_cast<unsigned>(chosen.levels);
  const auto arity = static_cast<unsigned>(chosen.arity);
  std::vector<unsigned> up(levels, arity);
  up[0] = 1;
  std::vector<sg4::Host*> hosts;
  const sg4::ClusterCallbacks make(
      [&](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
        sg4::Host* host = zone->create_host("node-" + std::to_string(id), 1e9)->seal();
        hosts.push_back(host);
        return std::make_pair(host->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
      },
      {},
      [](sg4::NetZone* zone, const std::vector<unsigned long>& at, unsigned long id) -> sg4::Link* {
        if (at[0] > 0) return nullptr;  // switches have none
        return zone->create_link("dma-" + std::to_string(id), dma_bandwidth)->seal();
      });
  sg4::create_fatTree_zone("machine", nullptr,
                           {levels, std::vector<unsigned>(levels, arity), up, std::vector<unsigned>(levels, 1)}, make,
                           link_bandwidth, latency_s, sg4::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
  return hosts;
}

void put(sg4::Host* from, sg4::Host* to, const choice& chosen) {
  std::deque<sg4::CommPtr> under_way;
  for (unsigned long left = chosen.bytes; left > 0;) {
    const unsigned long size = chosen.packet_bytes == 0 ? left : std::min(left, chosen.packet_bytes);
    left -= size;
    if (under_way.size() == chosen.window) {
      under_way.front()->wait();
      under_way.pop_front();
    }
    under_way.push_back(sg4::Comm::sendto_async(from, to, size));
  }
  for (const auto& one : under_way) one->wait();
}

void rank_main(const std::vector<sg4::Host*>& hosts, int rank, const choice& chosen, long& completed) {
  std::vector<sg4::CommPtr> all;
  for (int message = 0; message < chosen.messages; ++message) {
    const int distance = message / 2 + 1;
    const int to = rank + (message % 2 == 0 ? distance : -distance);
    sg4::Host* const from = hosts[static_cast<std::size_t>(rank)];
    sg4::Host* const target = hosts[static_cast<std::size_t>((to % chosen.ranks + chosen.ranks) % chosen.ranks)];
    if (chosen.together) {
      all.push_back(sg4::Comm::sendto_async(from, target, chosen.bytes));
    } else {
      put(from, target, chosen);
    }
    ++completed;
  }
  for (const auto& one : all) one->wait();
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  choice chosen;
  chosen.together = argc == 4 && std::string(argv[3]) == "together";
  if (argc > 3) chosen.packet_bytes = std::strtoul(argv[3], nullptr, 10);
  if (argc > 4) chosen.window = std::max(1UL, std::strtoul(argv[4], nullptr, 10));
  if (argc < 3 || argc > 5 || (chosen.arity = std::atoi(argv[1])) < 2 || (chosen.levels = std::atoi(argv[2])) < 1) {
    std::fprintf(stderr, "usage: simgrid_neighbors K N [PACKET [WINDOW]]\n");
    return 1;
  }
  for (int level = 0; level < chosen.levels; ++level) chosen.ranks *= chosen.arity;
  const auto start = std::chrono::steady_clock::now();
  const auto hosts = make_machine(chosen);
  const auto made = std::chrono::steady_clock::now();
  long completed = 0;
  for (int rank = 0; rank < chosen.ranks; ++rank) {
    sg4::Actor::create("rank", hosts[static_cast<std::size_t>(rank)],
                       [&, rank] { rank_main(hosts, rank, chosen, completed); });
  }
  engine.run();
  const auto end = std::chrono::steady_clock::now();
  if (completed != static_cast<long>(chosen.ranks) * chosen.messages) {
    std::fprintf(stderr, "simgrid_neighbors: %ld puts completed\n", completed);
    return 1;
  }
  const auto seconds = [](auto span) { return std::chrono::duration<double>(span).count(); };
  std::printf(
      "simgrid_neighbors fat-tree:k=%d,n=%d ranks %d packet %lu window %zu: wall_s %.4f platform_s %.4f simulated_us "
      "%.3f\n",
      chosen.arity, chosen.levels, chosen.ranks, chosen.packet_bytes, chosen.window, seconds(end - start),
      seconds(made - start), sg4::Engine::get_clock() * 1e6);
}
