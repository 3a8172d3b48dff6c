// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of rma-sim.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rma/sim.hpp"

namespace rma::simulator {

inline constexpr int exit_usage = 2;

struct settings {
  sim::Config job;
  std::vector<std::string> exports;  ///< NAME=VALUE or NAME
  bool report = false;
  std::string json, heat_map, trace;  ///< files for what the network did; empty: none
  std::vector<std::string> command;
};

/// A value is the exit status to leave with: help was printed, or a mistake explained.
std::optional<int> parse_command_line(int argc, char** argv, settings& out);

/// One line on standard error.
void say(const std::string& text);

/// False, and says so, if it cannot be written. Without a name there is nothing to do.
bool write_file(const std::string& name, const std::string& text);

}  // namespace rma::simulator
