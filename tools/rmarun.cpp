// SPDX-License-Identifier: Apache-2.0
/// \file
/// rmarun: starts a program as several ranks on this machine. See rmarun --help.
#include <exception>

#include "boot/descriptors.hpp"
#include "rmarun_job.hpp"
#include "rmarun_options.hpp"

int main(int argc, char** argv) {
  using namespace rma::launcher;
  rma::boot::fill_standard_streams();
  settings asked;
  if (const auto exit_status = parse_command_line(argc, argv, asked)) return *exit_status;
  try {
    return job(asked).run();
  } catch (const std::exception& error) {  // out of descriptors, memory or processes; the guardian cleans up
    say(error.what());
    return 1;
  }
}
