// SPDX-License-Identifier: Apache-2.0
// rmarun -n 3 --nodes 3 leaver_program
//
// Goal: who waits for a rank that has ended its Runtime in good order gets peer_failed that names it, on whatever node
// it was; what it had done before is done; who waits for others goes on.
// Method: rank 1 does one update for rank 0, and leaves. When its process is gone, rank 0 asks for the update, calls
// what only rank 1 could answer, each on a window of its own, and at last exchanges data with rank 2. A wait that does
// not end is seen by the time-out of the test.
// Break: let `context::has_left` ask the node only: with a network in between nothing ends. Let `request_state` take
// in nothing before it believes that a rank is gone: the update fails.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rma/rma.hpp>

namespace {

using window = rma::Window<std::uint64_t>;
constexpr int leaver = 1, other = 2;

struct waiting_call {
  std::string_view name;
  std::function<void(window&, rma::Team&)> run;
};

const waiting_call calls[] = {
    {"barrier", [](window&, rma::Team& team) { team.barrier(); }},
    {"allreduce", [](window&, rma::Team& team) { (void)team.allreduce(1, rma::sum); }},
    {"start",
     [](window& win, rma::Team&) {
       const int group[] = {leaver};
       win.start(group);
     }},
    {"fence", [](window& win, rma::Team&) { win.fence(); }},
    {"wait_signal", [](window& win, rma::Team&) { win.wait_signal(0, 1, leaver); }},
    {"wait_until",
     [](window& win, rma::Team&) {
       (void)win.wait_until(
           3, [](std::uint64_t value) { return value != 0; }, leaver);
     }},
    {"lock_range", [](window& win, rma::Team&) { win.lock_range(rma::exclusive, leaver, 0, 8); }},
};

/// True if the call said so.
bool is_told(const waiting_call& call, window& win, rma::Team& team) {
  try {
    call.run(win, team);
  } catch (const rma::Error& error) {
    if (error.code() == rma::status::peer_failed && error.rank() == leaver) return true;
    std::printf("%s: %s\n", call.name.data(), error.what());
    return false;
  }
  std::printf("%s: no error\n", call.name.data());
  return false;
}

/// The update is over, and its answer is here, but nobody has looked for it.
bool is_answered(rma::Request& update, pid_t leaver_process) {
  const bool simulated = leaver_process == ::getpid();
  while (!simulated && ::kill(leaver_process, 0) == 0) ::sched_yield();
  try {
    if (!simulated) return update.test();
    update.wait();
    return true;
  } catch (const rma::Error& error) {
    std::printf("update: %s\n", error.what());
    return false;
  }
}

/// Between the two that are still there.
bool others_go_on(window& win, int rank) {
  const int peer = rank == 0 ? other : 0;
  const std::uint64_t value = static_cast<std::uint64_t>(rank) + 100;
  {
    const auto epoch = win.lock(rma::shared, peer);
    win.put_signal(std::span(&value, 1), peer, 1, 2);
  }
  win.wait_signal(2, 1, peer);
  return win.local()[1] == static_cast<std::uint64_t>(peer) + 100;
}

int run(rma::Runtime& runtime) {
  rma::Team world = runtime.world();
  rma::Team team = world.split(world.rank() == other ? 1 : 0);  // the two that have to do with each other
  std::vector<window> windows;
  for ([[maybe_unused]] const waiting_call& call : calls) windows.push_back(window::allocate(team, 4));
  window last = window::allocate(world, 4);
  std::vector<std::uint64_t> memory(1);  // updated by its owner only
  window owned = window::create(team, memory);
  const std::vector<pid_t> processes = world.allgather(::getpid());
  world.barrier();
  if (world.rank() == leaver) {
    (void)owned.wait_until(0, [](std::uint64_t value) { return value == 1; });
    return 0;
  }
  bool good = true;
  if (world.rank() == 0) {
    const std::uint64_t one = 1;
    const auto epoch = owned.lock(rma::shared, leaver);
    rma::Request update = owned.raccumulate(std::span(&one, 1), leaver, 0, rma::sum);
    good = is_answered(update, processes[leaver]);
    for (std::size_t i = 0; i < windows.size(); ++i) good = is_told(calls[i], windows[i], team) && good;
  }
  good = others_go_on(last, world.rank()) && good;
  if (world.rank() == 0 && good) std::puts("leaver_program: done");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rma::Runtime runtime(argc, argv);
    return run(runtime);
  } catch (const std::exception& error) {
    std::printf("leaver_program: %s\n", error.what());
    return 1;
  }
}
