// SPDX-License-Identifier: Apache-2.0
/// \file
/// A network that writes down what it is told, for tests of the model.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "fabric/sim/network_model.hpp"

namespace rma::sim {

/// The events of one transfer.
struct story {
  time_ps departed_ps = never_ps;  ///< first packet
  std::vector<std::uint64_t> departures{};
  std::vector<std::uint64_t> arrivals{};  ///< first byte of each packet, in order of arrival
  std::uint64_t bytes_departed = 0;
  std::uint64_t bytes_arrived = 0;
  time_ps arrived_ps = never_ps;  ///< last packet
  time_ps acknowledged_ps = never_ps;
  time_ps atomic_ps = never_ps;
  bool operator==(const story&) const = default;
};

/// A machine of its own, with one story per transfer.
class recorder final : public transfer_sink {
 public:
  recorder(const parameters& with, std::string_view shape, int nodes)
      : network(events, with, topology(shape, nodes), *this) {}

  /// Posts, and returns the number of the transfer.
  transfer_id put(int from, int to, std::uint64_t bytes, time_ps when_ps = 0, bool acknowledged = true) {
    const transfer_id id = stories.size();
    stories[id] = {};
    network.post({.id = id, .from_node = from, .to_node = to, .bytes = bytes, .acknowledged = acknowledged}, when_ps);
    return id;
  }
  void run() {
    while (events.run_one()) continue;
  }

  void on_departure(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept override {
    story& of = stories.at(id);
    if (of.departures.empty()) of.departed_ps = events.now_ps();
    of.departures.push_back(first);
    of.bytes_departed += bytes;
  }
  void on_arrival(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept override {
    story& of = stories.at(id);
    of.arrivals.push_back(first);
    of.bytes_arrived += bytes;
    of.arrived_ps = events.now_ps();
    arrived.push_back(id);
  }
  void on_acknowledgement(transfer_id id) noexcept override { stories.at(id).acknowledged_ps = events.now_ps(); }
  void on_atomic(transfer_id id) noexcept override { stories[id].atomic_ps = events.now_ps(); }

  event_queue events{};
  network_model network;
  std::map<transfer_id, story> stories{};
  std::vector<transfer_id> arrived{};  ///< one entry per packet
};

}  // namespace rma::sim
