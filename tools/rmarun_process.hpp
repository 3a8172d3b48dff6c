// SPDX-License-Identifier: Apache-2.0
/// \file
/// Starting one rank: fork, the ties that make it end with rmarun, exec.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "rmarun_bind.hpp"

namespace rma::launcher {

/// The state of its process that rmarun changes, as it found it: the ranks get this state.
struct inherited_state {
  sigset_t mask{};
  struct sigaction on_pipe {};
  rlimit open_files{};
};

struct start_order {
  int rank = 0;
  const std::vector<std::string>& command;
  const std::vector<std::string>& environment;  ///< "NAME=VALUE"
  int stdin_fd = 0;
  int stdout_fd = 1;
  int stderr_fd = 2;
  const inherited_state& inherited;
  const core_binding* binding = nullptr;  ///< none: not bound
  bool has_terminal = false;              ///< its group becomes the one in the foreground, if stdin_fd is a terminal
};

struct start_outcome {
  pid_t pid = -1;  ///< also its process group
  int error = 0;   ///< errno of what failed; then there is no process
};

/// Returns once the program runs or could not be started.
start_outcome start_process(const start_order& order);

/// Makes the caller's process group the one in the foreground of this terminal; nothing if it is none.
void take_terminal(int terminal);

/// This environment with `changes` ("NAME=VALUE") applied.
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

}  // namespace rma::launcher
