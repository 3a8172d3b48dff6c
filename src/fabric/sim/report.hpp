// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reports of the activity of a simulated network, for people and for programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/network_model.hpp"
#include "fabric/sim/topology.hpp"
#include "fabric/sim/use_log.hpp"

namespace rma::sim {

/// A record of a network's activity that is independent of the network: of a finished run, or read from a file.
struct network_record {
  network_record(std::string_view shape, int nodes) : over(shape, nodes), links(over.links()) {}

  topology over;
  time_ps now_ps = 0;
  unsigned dma_engines = 1;       ///< sending engines of a node
  unsigned engines_per_node = 1;  ///< sending and receiving engines
  std::vector<link_use> links;
  std::vector<engine_use> engines{};  ///< node * engines_per_node + engine
  time_ps width_ps = 0;               ///< width of a bucket of time
  unsigned buckets = 0;               ///< 0: use over time was not recorded
  std::vector<time_ps> busy_ps{};     ///< link * buckets + bucket
};

/// Copies the record of a network. `log` may be null.
network_record record_of(const network_model& of, const use_log* log = nullptr);

/// Formats totals and the busiest links and engines as lines of text.
[[gnu::visibility("default")]] std::string text_report(const network_record& of, unsigned busiest = 10);

/// Formats the record as JSON, with every link and engine that was used; times in ns, use over time in ps.
std::string json_report(const network_record& of);

/// Draws an SVG picture: links as rows, grouped by level, time as columns, color for the share of time that a link was
/// busy. In a group with too many links to distinguish, a row is the mean of neighbors. Needs use over time.
[[gnu::visibility("default")]] std::string heat_map_svg(const network_record& of);

/// Formats the log's spans as Chrome trace events in virtual time (chrome://tracing, ui.perfetto.dev).
std::string trace_json(const network_model& of, const use_log& log);

/// Formats a time with a suitable unit: "1.5 us".
std::string readable_time(time_ps time);

}  // namespace rma::sim
