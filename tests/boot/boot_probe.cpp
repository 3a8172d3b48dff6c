// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank that uses the boot layer alone, for tests of rmarun: `boot_probe MODE`.
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "boot/boot.hpp"

namespace {

using namespace rma;

/// Everyone reads what everyone put.
int exchange(boot::client& me) {
  if (me.put("word" + std::to_string(me.rank()), std::to_string(me.rank() * me.rank())) != status::done) return 10;
  if (me.fence() != status::done) return 11;
  int sum = 0;
  for (int rank = 0; rank < me.size(); ++rank) {
    std::string value;
    if (me.get("word" + std::to_string(rank), value) != status::done) return 12;
    sum += std::stoi(value);
  }
  std::printf("rank %d: sum %d\n", me.rank(), sum);
  if (me.fence() != status::done) return 13;  // rank 0 may be the one that answers
  return 0;
}

/// Says that it is there, then waits for a key that nobody puts; exits with 30 when a death ends that.
int wait_for_death(boot::client& me) {
  std::printf("ready %d %d\n", me.rank(), static_cast<int>(::getpid()));
  std::fflush(stdout);
  std::string value;
  std::vector<int> died;
  while (died.empty()) {
    pollfd wait{me.event_fd(), POLLIN, 0};
    if (::poll(&wait, 1, -1) > 0 && me.poll_events(died) != status::done) return 20;
  }
  for (const int rank : died) std::printf("rank %d saw rank %d die\n", me.rank(), rank);
  std::fflush(stdout);
  return me.get("never put", value) == status::done ? 21 : 30;
}

/// Rank 0 learns of rank 1's death before the kernel reports it, and fails first.
int accuse(boot::client& me) {
  const auto say_pid = [] {
    std::printf("%d\n", static_cast<int>(::getpid()));
    std::fflush(stdout);
  };
  sigset_t go;
  sigemptyset(&go);
  sigaddset(&go, SIGUSR1);
  (void)::sigprocmask(SIG_BLOCK, &go, nullptr);  // before the test can know whom to signal
  if (me.rank() == 0) say_pid();
  if (me.fence() != status::done) return 1;
  if (me.rank() == 1) {
    say_pid();
    return ::pause();
  }
  int number = 0;
  (void)::sigwait(&go, &number);  // until the test has read who is who
  me.report_death(1);
  (void)me.fence();
  me.finalize();
  return 9;
}

/// Says that it is there, and leaves when it is told to.
int leave_later(boot::client& me) {
  sigset_t go;
  sigemptyset(&go);
  sigaddset(&go, SIGUSR1);
  (void)::sigprocmask(SIG_BLOCK, &go, nullptr);
  std::printf("%d\n", static_cast<int>(::getpid()));
  std::fflush(stdout);
  int number = 0;
  (void)::sigwait(&go, &number);
  me.finalize();
  return 0;
}

int run(std::string_view mode) {
  const auto me = boot::join(boot::options_from_environment());
  int exit_status = 0;
  if (mode == "join") return 0;
  if (mode == "exchange") exit_status = exchange(*me);
  if (mode == "wait") exit_status = wait_for_death(*me);
  if (mode == "no-leave") return me->fence() == status::done && me->rank() == 1 ? 0 : exchange(*me);
  if (mode == "abort" && me->rank() == 1) {
    me->abort(42, "the answer");
    return 0;
  }
  if (mode == "abort") return me->fence() == status::job_aborted ? 0 : 1;
  if (mode == "accuse") return accuse(*me);
  if (mode == "leave-later") return leave_later(*me);
  me->finalize();
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "exchange");
  } catch (const rma::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 99;
  }
}
