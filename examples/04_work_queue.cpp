// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks take tasks from a common counter, whoever is free first: dynamic load balancing by fetch_and_op.
///
/// \code
/// rmarun -n 4 04_work_queue
/// \endcode

#include <chrono>
#include <cstdint>
#include <rma/rma.hpp>

#include <fmt/format.h>

namespace {

constexpr std::uint64_t tasks = 200;
// The words of rank 0's part of the window.
constexpr std::size_t next_task = 0, finished = 1, longest = 2, cells = 3;

/// How many steps Collatz' sequence takes from `number` to 1: tasks of unequal length.
std::uint64_t steps_from(std::uint64_t number) {
  std::uint64_t steps = 0;
  for (; number != 1; ++steps) number = number % 2 == 0 ? number / 2 : 3 * number + 1;
  return steps;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  auto window = rma::Window<std::uint64_t>::allocate(world, rt.rank() == 0 ? cells : 1);
  world.barrier();

  {
    const auto epoch = window.lock_all();
    for (;;) {
      // Atomic: each number is drawn once. The rank that holds the counter does nothing for it.
      const std::uint64_t task = window.fetch_and_op(1, 0, next_task, rma::sum);
      if (task >= tasks) break;
      const std::uint64_t steps = steps_from(task + 1);
      rt.compute(std::chrono::nanoseconds(10 * static_cast<std::int64_t>(steps)));  // for the simulator's clock
      window.accumulate(1, 0, finished, rma::sum);
      window.accumulate(steps, 0, longest, rma::max);
    }
  }  // the accumulates are over
  world.barrier();

  if (rt.rank() != 0) return 0;
  window.sync();
  fmt::print("{} of {} tasks done, the longest sequence has {} steps\n", window[finished], tasks, window[longest]);
  return window[finished] == tasks ? 0 : 1;
}
