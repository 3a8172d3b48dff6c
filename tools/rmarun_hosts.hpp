// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks on other hosts, which ssh starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rma::launcher {

struct host {
  std::string name;
  int slots = 0;  ///< ranks that it takes; 0: as many as the others

  bool operator==(const host&) const = default;
};

/// "a,b:2". Throws std::invalid_argument.
std::vector<host> parse_hosts(std::string_view list);
/// A host in each line: `a`, `a:2` or `a slots=2`; # begins a comment. Throws std::invalid_argument.
std::vector<host> parse_hostfile(std::string_view text);

/// The number of slots, if each host says how many it has; else 0.
int slots_of(const std::vector<host>& hosts);

/// The host of each rank: blocks in the order of the hosts. Throws std::invalid_argument if they have too few slots.
std::vector<int> spread(int ranks, const std::vector<host>& hosts);

/// One word of a POSIX shell's command.
std::string shell_word(std::string_view text);

/// What ssh is to do on the other host: a script for its shell. The first line of its input is the job's key, which so
/// is in no command line; the end of its input ends the program.
std::string remote_script(const std::string& folder, const std::vector<std::string>& environment,
                          const std::vector<std::string>& command);

}  // namespace rma::launcher
