// SPDX-License-Identifier: Apache-2.0
/// \file
/// rmarun: starts a program as several ranks on this machine. See rmarun --help.
#include <fcntl.h>
#include <unistd.h>

#include <exception>

#include "rmarun_job.hpp"
#include "rmarun_options.hpp"

namespace {

/// If a standard stream is closed, the next descriptor would take its place, and its traffic.
void fill_standard_streams() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rma::launcher;
  fill_standard_streams();
  settings asked;
  if (const auto exit_status = parse_command_line(argc, argv, asked)) return *exit_status;
  try {
    return job(asked).run();
  } catch (const std::exception& error) {  // out of descriptors, memory or processes; the guardian cleans up
    say(error.what());
    return 1;
  }
}
