// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a simulated network did, for people and for programs.
#pragma once

#include <string>

#include "fabric/sim/network_model.hpp"
#include "fabric/sim/use_log.hpp"

namespace rma::sim {

/// Totals and the busiest links and engines, as lines of text.
std::string text_report(const network_model& of, unsigned busiest = 10);

/// The same as JSON, with every link and engine that was used; times in ns.
std::string json_report(const network_model& of);

/// An SVG picture: links as rows, grouped by level, time as columns, colour for the share of time that a link was busy.
/// Where a group has too many links to be told apart, a row is the mean of neighbours.
std::string heat_map_svg(const network_model& of, const use_log& log);

/// The log's spans as Chrome trace events in virtual time (chrome://tracing, ui.perfetto.dev).
std::string trace_json(const network_model& of, const use_log& log);

/// A number of picoseconds with a unit that suits it: "1.5 us".
std::string readable_time(time_ps time);

}  // namespace rma::sim
