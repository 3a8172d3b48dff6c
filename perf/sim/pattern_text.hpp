// SPDX-License-Identifier: Apache-2.0
/// \file
/// Results of simulated patterns, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "rma/sim_pattern.hpp"

namespace perf {

double microseconds(rma::sim::picoseconds time);

/// Time by phase, puts, and the engines and links that were busiest: some lines.
std::string text_of(const rma::sim::PatternOutcome& of);
/// Everything.
nlohmann::json json_of(const rma::sim::PatternOutcome& of);
/// Writes a file. Throws std::runtime_error.
void write_json(const std::string& path, const nlohmann::json& what);

}  // namespace perf
