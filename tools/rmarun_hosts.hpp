// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks on other hosts: which rank runs where, and how ssh starts it there.
#pragma once

#include <string>
#include <vector>

namespace rma::launcher {

struct settings;

/// A host and how many ranks it takes before the next one is asked; 0: as many as the others.
struct host {
  std::string name;
  int slots = 0;
};

/// The hosts of "a,b:2,c". Throws rma::Error(bad_argument) with what is wrong.
std::vector<host> parse_hosts(const std::string& list);
/// The hosts of a file with one host a line: `NAME`, `NAME slots=N` (Open MPI) or `NAME:N` (MPICH); # begins a comment.
/// Throws rma::Error(bad_argument) with file and line.
std::vector<host> read_hostfile(const std::string& path);

/// For each rank the index of its host: in blocks, as many as a host's slots say, or of equal size. Throws
/// rma::Error(bad_argument) if there are fewer slots than ranks, or more hosts than ranks.
std::vector<int> divide(const std::vector<host>& hosts, int ranks);

/// `ssh HOST exec RMARUN --remote-rank`: what rmarun runs in the place of a rank. `ssh`: the command, with options.
std::vector<std::string> command_at(const std::string& ssh, const std::string& name);

/// The text that the remote side reads from its standard input: the directory, the changes of the environment and the
/// command. The job's key is among them, and is on no command line.
std::string order_for_remote(const std::vector<std::string>& changes, const std::vector<std::string>& command);

/// The remote side: reads its order, starts the program, and ends it when the connection to rmarun is gone. Returns the
/// exit status.
int run_remote_rank();

}  // namespace rma::launcher
