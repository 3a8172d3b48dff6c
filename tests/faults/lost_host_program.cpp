// SPDX-License-Identifier: Apache-2.0
// lost_host_program, on several hosts: all ranks that share no memory with rank 0 die at once, by SIGKILL. The others
// must be told by each call that waits for them, and must be able to go on among themselves.
//
// Standard output has one line for each survivor and call. Exit status 0 if all is as it should be.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rma/rma.hpp>

namespace {

constexpr double told_within_s = 2;

double seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class survivor {
 public:
  survivor(rma::Runtime& runtime, std::vector<int> doomed) : runtime_(runtime), doomed_(std::move(doomed)) {}

  /// `call` must end with peer_failed that names one of the doomed, soon after `since`.
  void must_be_told(const char* name, double since, const std::function<void()>& call) {
    try {
      call();
      wrong(std::string(name) + " has ended without an error");
    } catch (const rma::Error& e) {
      const double after = seconds() - since;
      std::printf("rank %d: %s: %s after %.3f s\n", runtime_.rank(), name, e.what(), after);
      if (e.code() != rma::status::peer_failed) wrong("the status is " + std::string(rma::name_of(e.code())));
      if (std::ranges::find(doomed_, e.rank()) == doomed_.end())
        wrong("rank " + std::to_string(e.rank()) + " is named");
      if (after > told_within_s) wrong("that is late");
    }
  }
  void wrong(const std::string& what) {
    std::printf("rank %d: WRONG: %s\n", runtime_.rank(), what.c_str());
    wrong_ = true;
  }
  [[nodiscard]] bool failed() const { return wrong_; }

 private:
  rma::Runtime& runtime_;
  std::vector<int> doomed_;
  bool wrong_ = false;
};

/// Does what survivors must still be able to do.
void go_on(rma::Runtime& runtime, survivor& me, std::size_t dead) {
  rma::Team alive = runtime.world().shrink();
  if (static_cast<std::size_t>(alive.size()) + dead != static_cast<std::size_t>(runtime.size()))
    me.wrong("the shrunk team has " + std::to_string(alive.size()) + " ranks");
  auto win = rma::Window<std::uint64_t>::allocate(alive, 4);
  const int left = (alive.rank() + alive.size() - 1) % alive.size();
  win.fence();
  win.put(static_cast<std::uint64_t>(alive.rank()) + 1, (alive.rank() + 1) % alive.size(), 0);
  win.fence(rma::no_succeed);
  if (win[0] != static_cast<std::uint64_t>(left) + 1) me.wrong("put among the survivors");
  win.free();
}

/// Signals 0: a doomed rank dies now. 1: a survivor stands by.
int play(rma::Runtime& runtime) {
  rma::Team world = runtime.world();
  const std::vector<int> same = world.allgather(world.shares_memory(0) ? 1 : 0);
  std::vector<int> doomed;
  for (int r = 0; r < world.size(); ++r) {
    if (same[static_cast<std::size_t>(r)] == 0) doomed.push_back(r);
  }
  if (doomed.empty()) throw std::runtime_error("all ranks are on one host");
  auto win = rma::Window<std::uint64_t>::allocate(world, 1000, {.name = "shared"});
  if (!rma::ok(win.lock_all_nothrow())) throw std::runtime_error("lock_all");
  std::vector<std::uint64_t> block(500, 7);
  for (int r = 0; r < world.size(); ++r) win.put(std::span<const std::uint64_t>(block), r, 1);  // all are connected
  if (!rma::ok(win.try_flush_all())) throw std::runtime_error("flush_all");
  world.barrier();
  if (!world.shares_memory(0)) {
    for (int r = 0; r < world.size(); ++r) {
      if (world.shares_memory(r)) continue;
      win.put_signal(std::span<const std::uint64_t>(block).first(1), r, 0, 0);
      win.flush(r);
    }
    ::kill(::getpid(), SIGKILL);
    std::abort();
  }
  win.wait_signal(0, doomed.size());
  const double since = seconds();
  survivor me(runtime, doomed);
  me.must_be_told("wait_signal", since, [&] { win.wait_signal(1, 1, doomed.front()); });
  me.must_be_told("get", since, [&] {
    while (true) {
      win.get(std::span(block), doomed.back(), 0);
      win.flush(doomed.back());
    }
  });
  me.must_be_told("barrier", since, [&] { world.barrier(); });
  while (runtime.failed_ranks().size() < doomed.size()) runtime.progress();
  std::vector<int> failed = runtime.failed_ranks();
  std::ranges::sort(failed);
  if (failed != doomed) me.wrong("failed_ranks() does not have exactly the ranks of the lost host");
  go_on(runtime, me, doomed.size());
  (void)win.try_unlock_all();
  std::printf("rank %d survived\n", runtime.rank());
  return me.failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rma::Runtime runtime(argc, argv);
    return play(runtime);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lost_host_program: %s\n", e.what());
    return 1;
  }
}
