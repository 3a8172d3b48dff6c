// SPDX-License-Identifier: Apache-2.0
// rmarun -n 8 idle_program [SECONDS]
//
// Goal: waiting costs no processor time: 8 ranks that wait 5 s in a barrier, a lock, wait_signal and wait_until for a
// rank that sleeps use together less than 0.3 s.
// Method: rank 0 sleeps for real, as this is what is measured; two ranks wait for it in a barrier, two in a lock that
// it holds, one for its put, the others for its signal. Each measures its own processor time from before the wait to
// after it. Break: make wait_until spin without end.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include <rma/rma.hpp>

namespace {

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// What each rank does while rank 0 sleeps.
void wait_for_sleeper(rma::Team& world, rma::Window<std::uint64_t>& win, rma::Team& both_ready, double sleep_s) {
  if (world.rank() == 0) {
    // tidy: allow(banned-word) the sleeping rank is what the others are measured against
    std::this_thread::sleep_for(std::chrono::duration<double>(sleep_s));
    both_ready.barrier();
    win.unlock(0);
    for (int r = 5; r < world.size(); ++r) {
      const auto hold = win.lock(rma::shared, r);
      win.put_signal({}, r, 0, 1);
      win.put(std::uint64_t{1}, r, 0);
    }
  } else if (world.rank() <= 2) {
    both_ready.barrier();
  } else if (world.rank() <= 4) {
    const auto hold = win.lock(rma::exclusive, 0);
  } else if (world.rank() == 5) {
    (void)win.wait_until(
        0, [](std::uint64_t value) { return value != 0; }, 0);
  } else {
    win.wait_signal(1, 1, 0);
  }
}

int run(rma::Runtime& runtime, double sleep_s) {
  rma::Team world = runtime.world();
  auto win = rma::Window<std::uint64_t>::allocate(world, 8);
  rma::Team both_ready = world.split(world.rank() <= 2 ? 0 : -1, world.rank());
  if (world.rank() == 0 && !rma::ok(win.lock_nothrow(rma::exclusive, 0))) return 1;
  world.barrier();
  const double before = processor_seconds();
  wait_for_sleeper(world, win, both_ready, sleep_s);
  const double mine = processor_seconds() - before;
  const double all = world.allreduce(mine, rma::sum);
  const double most = world.allreduce(mine, rma::max);
  const double limit = 0.3 * sleep_s / 5.0;
  if (world.rank() == 0) {
    std::printf("%d ranks waited %.1f s: %.3f s of processor time together, %.3f s the most, %.3f s allowed\n",
                world.size(), sleep_s, all, most, limit);
    std::fflush(stdout);  // a rank that ends with an error ends the others
  }
  win.free();
  return all < limit ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rma::Runtime runtime(argc, argv);
    return run(runtime, argc > 1 ? std::atof(argv[1]) : 5.0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "idle_program: %s\n", e.what());
    return 1;
  }
}
