// SPDX-License-Identifier: Apache-2.0
// rmarun -n 8 idle_program [SECONDS]
// rmarun -n 9 idle_program SECONDS recv
//
// Goal: waiting costs no processor time: 8 ranks that wait 5 s in a barrier, a lock, wait_signal and wait_until for a
// rank that sleeps use together less than 0.3 s.
// Method: rank 0 sleeps for real, as this is what is measured; two ranks wait for it in a barrier, two in a lock that
// it holds, one for its put, the others for its signal. With `recv` all others wait for its message: short or long, of
// it or of anybody. Each measures its own processor time from before the wait to after it. Break: make wait_until spin
// without end, or run two ranks, which may spin, with RMA_SPIN_US=3000000.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

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

void compute_for(double seconds) {
  // tidy: allow(banned-word) the sleeping rank is what the others are measured against
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// The same by messages.
void receive_from_sleeper(rma::Team& world, double sleep_s) {
  constexpr std::size_t short_bytes = 8, long_bytes = 100'000;
  const auto bytes_of = [](int r) { return r % 4 < 2 ? short_bytes : long_bytes; };
  if (world.rank() != 0) {
    std::vector<char> in(bytes_of(world.rank()));
    world.recv(std::span(in), world.rank() % 2 == 0 ? 0 : rma::any_source, 1);
    return;
  }
  compute_for(sleep_s);
  const std::vector<char> out(long_bytes);
  for (int r = 1; r < world.size(); ++r) world.send(std::span(out).first(bytes_of(r)), r, 1);
}

/// The part of each rank: the others wait while rank 0 sleeps.
void wait_for_sleeper(rma::Team& world, rma::Window<std::uint64_t>& win, rma::Team& both_ready, double sleep_s) {
  if (world.rank() == 0) {
    compute_for(sleep_s);
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

int run(rma::Runtime& runtime, double sleep_s, bool by_messages) {
  rma::Team world = runtime.world();
  auto win = rma::Window<std::uint64_t>::allocate(world, 8);
  rma::Team both_ready = world.split(world.rank() <= 2 ? 0 : -1, world.rank());
  if (!by_messages && world.rank() == 0 && !rma::ok(win.lock_nothrow(rma::exclusive, 0))) return 1;
  world.barrier();
  const double before = processor_seconds();
  if (by_messages) {
    receive_from_sleeper(world, sleep_s);
  } else {
    wait_for_sleeper(world, win, both_ready, sleep_s);
  }
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
    return run(runtime, argc > 1 ? std::atof(argv[1]) : 5.0, argc > 2 && std::string_view(argv[2]) == "recv");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "idle_program: %s\n", e.what());
    return 1;
  }
}
