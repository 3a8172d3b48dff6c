// SPDX-License-Identifier: Apache-2.0
/// \file
/// Jobs of simulated ranks, and their counters, for tests of what transfers send.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace rma::test {

inline std::uint64_t counter_of(Runtime& rt, const std::string& name) {
  for (const Counter& each : rt.counters()) {
    if (each.name == name) return each.value;
  }
  throw std::runtime_error("no counter " + name);
}

/// Runs the ranks on nodes of their own.
inline void with_ranks(int ranks, const std::vector<std::pair<std::string, std::string>>& settings,
                       const std::function<void(Runtime&)>& body, const std::string& parameters = "dissertation-ddr") {
  sim::Config job{.ranks = ranks, .parameters = parameters};
  job.ranks_per_node = 1;
  job.limit = std::chrono::seconds(60);
  for (const auto& [name, value] : settings) job.settings[name] = value;
  const auto ended = sim::run(job, body);
  if (!ended.ok()) throw std::runtime_error(ended.text());
}

}  // namespace rma::test
