// SPDX-License-Identifier: Apache-2.0
#include "rma_sim_exit.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace rma::simulator {
namespace {

sim::world*& current_job() noexcept {
  static sim::world* job = nullptr;  // exit() has no argument that could carry it
  return job;
}

void end_rank(int code) noexcept {
  sim::world* const job = current_job();
  if (job != nullptr && job->same_thread() && job->running() >= 0) job->exit_rank(code & 0xFF);
}

}  // namespace

void take_exits_of(sim::world* job) noexcept { current_job() = job; }

}  // namespace rma::simulator

// Definitions of the program come before those of the C library, for modules, too.
extern "C" [[gnu::visibility("default")]] void exit(int code) noexcept {
  rma::simulator::end_rank(code);
  const auto system_exit = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_NEXT, "exit"));
  if (system_exit != nullptr) system_exit(code);
  ::syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

extern "C" [[gnu::visibility("default")]] void _Exit(int code) noexcept {
  rma::simulator::end_rank(code);
  ::syscall(SYS_exit_group, code);
  __builtin_unreachable();
}
