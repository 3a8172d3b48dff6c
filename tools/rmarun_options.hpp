// SPDX-License-Identifier: Apache-2.0
/// \file
/// The settings of rmarun, from its command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rmarun_hosts.hpp"

namespace rma::launcher {

struct settings {
  int ranks = 1;
  int nodes = 0;  ///< virtual nodes; 0 means the machine itself
  bool bind_core = false;
  double timeout_s = 0;  ///< 0 means none
  bool keep_going = false;
  bool tag_output = false;
  std::vector<host> hosts;                ///< empty: this machine alone
  std::string ssh;                        ///< the command, with options
  std::vector<std::string> debugger;      ///< command that starts the program, if any
  int debugged = -1;                      ///< the rank that is; -1: all
  std::vector<std::string> process_sets;  ///< "NAME=RANKS"
  std::vector<std::string> exports;       ///< "NAME=VALUE" or "NAME"
  std::vector<std::string> command;
};

/// Exit statuses that rmarun itself gives, as shells and timeout(1) do.
inline constexpr int exit_usage = 2;
inline constexpr int exit_timeout = 124;
inline constexpr int exit_cannot_execute = 126;
inline constexpr int exit_not_found = 127;
inline constexpr int exit_by_signal = 128;  ///< + signal number

/// Fills `out`. An exit status if there is nothing to start: help, version, or an error that was printed.
std::optional<int> parse_command_line(int argc, char** argv, settings& out);

/// As RMA_PROCESS_SETS has them.
std::string joined(const std::vector<std::string>& process_sets);

/// Prints `rmarun: TEXT` and a newline to standard error in one piece.
void say(const std::string& text);

}  // namespace rma::launcher
