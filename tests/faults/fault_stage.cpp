// SPDX-License-Identifier: Apache-2.0
#include "fault_stage.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <thread>

namespace faults {
namespace {

constexpr std::size_t words = 4096;

/// True if the main thread of process `pid` sleeps in the kernel.
bool sleeps(pid_t pid) {
  const std::string id = std::to_string(pid);
  std::ifstream file("/proc/" + id + "/task/" + id + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');  // the name may contain anything
  return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'S';
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

void report(const std::string& line) {
  const std::string text = line + "\n";
  (void)!::write(STDOUT_FILENO, text.data(), text.size());
}

stage::stage(rma::Runtime& of, int who, std::uint64_t number)
    : runtime(of),
      world(of.world()),
      victim(who),
      seed(number),
      home((who + world.size() - 1) % world.size()),
      killer((who + 1) % world.size()),
      memory(words),
      window(rma::Window<std::uint64_t>::allocate(world, words, {.name = "scene"})),
      created(rma::Window<std::uint64_t>::create(world, memory, {.name = "created"})),
      spare(rma::Window<std::uint64_t>::allocate(world, words, {.name = "spare"})),
      pids_(world.allgather(::getpid())),
      board_(rma::Window<std::uint64_t>::allocate(world, static_cast<std::size_t>(world.size()), {.name = "board"})) {
  if (rank() == 0) {
    const char* const boot = std::getenv("RMA_BOOT");
    report(std::string("job boot=") + (boot == nullptr ? "" : boot));
  }
  if (!rma::ok(board_.lock_all_nothrow())) wrong("lock_all of the board");
  world.barrier();
}

std::vector<int> stage::survivors() const {
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  std::erase(all, victim);
  return all;
}

void stage::ready(int to) {
  board_.put(std::uint64_t{1}, to, static_cast<std::size_t>(rank()));
  board_.flush(to);
}

void stage::wait_ready(const std::vector<int>& ranks) {
  for (const int r : ranks) {
    while (std::atomic_ref(board_[static_cast<std::size_t>(r)]).load() == 0) {
      runtime.progress();
      std::this_thread::yield();
    }
  }
}

void stage::wait_asleep(const std::vector<int>& ranks) {
  for (const int r : ranks) {
    wait_ready({r});
    while (!sleeps(pids_[static_cast<std::size_t>(r)])) {
      runtime.progress();
      std::this_thread::yield();
    }
  }
}

void stage::die() {
  report("killed rank=" + std::to_string(rank()) + " at=" + std::to_string(monotonic_ns()));
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

void stage::kill_asleep() {
  wait_asleep({victim});
  kill_now();
}

void stage::kill_now() {
  report("killed rank=" + std::to_string(victim) + " at=" + std::to_string(monotonic_ns()));
  ::kill(pids_[static_cast<std::size_t>(victim)], SIGKILL);
}

void stage::must_be_told(const char* name, const std::function<void()>& call) {
  try {
    call();
    report("untold rank=" + std::to_string(rank()) + " in=" + name);
  } catch (const rma::Error& e) {
    const std::int64_t at = monotonic_ns();
    report("told rank=" + std::to_string(rank()) + " of=" + std::to_string(e.rank()) +
           " code=" + std::string(rma::name_of(e.code())) + " at=" + std::to_string(at));
    const std::string text = e.what();
    if (text.find(name) == std::string::npos || text.find("rank " + std::to_string(victim)) == std::string::npos) {
      wrong("the message does not name the call and the rank: " + text);
    }
  }
}

void stage::wrong(const std::string& what) { report("wrong rank=" + std::to_string(rank()) + " " + what); }

}  // namespace faults
