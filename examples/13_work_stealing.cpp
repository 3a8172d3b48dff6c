// SPDX-License-Identifier: Apache-2.0
/// \file
/// Work stealing: each rank has a range of tasks in one word of the window. Its owner takes the first one, a thief the
/// upper half, both by compare_and_swap. A target does nothing for that, though it computes all the time.
///
/// \code
/// rmarun -n 2 13_work_stealing
/// rmarun -n 2 --nodes 2 13_work_stealing
/// rma-sim -n 8 --ranks-per-node 1 13_work_stealing
/// \endcode
///
/// At first all tasks are rank 0's. Exits with 1 unless each task was done once, and each rank did at least half of its
/// share, and at most twice as much. A rank that computes serves others by its progress thread.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <rma/rma.hpp>

#include <fmt/format.h>

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t tasks = 8000;  // some 0.8 s of two ranks: one that loses its core for a while catches up
constexpr auto length_of_task = 200us;
constexpr std::uint64_t taken_most = 64;
// The words of each rank's part of the window; the last two are rank 0's.
constexpr std::size_t range = 0, finished = 1, sum = 2, cells = 3;

/// Tasks from `first` up to `end`. No two ranges of one rank are alike, since no task comes back to where it was:
/// compare_and_swap cannot take an old range for a new one.
struct Range {
  std::uint64_t first, end;
  [[nodiscard]] bool empty() const { return first == end; }
  [[nodiscard]] std::uint64_t word() const { return empty() ? 0 : first << 32 | end; }
  static Range of(std::uint64_t word) { return {word >> 32, word & 0xffffffff}; }
};

/// Computes, without a call that serves others.
void compute(rma::Runtime& rt) {
  const auto begin = rt.now();
  rt.compute(length_of_task);  // for the simulator's clock
  while (rt.now() - begin < length_of_task) {}
}

class Pool {
 public:
  Pool(rma::Runtime& rt, rma::Window<std::uint64_t>& window) : rt_(rt), window_(window) {}

  /// The first of this rank's own tasks, if there are some: an eighth of them, 64 at most. A thief's compare_and_swap
  /// fails if the owner has taken tasks during the round trip, or while the thief had lost its core: an owner of many
  /// tasks does so every 10 ms at most.
  bool take(Range& own) {
    for (std::uint64_t seen = window_.fetch_and_op(0, rt_.rank(), range, rma::no_op); seen != 0;) {
      const Range before = Range::of(seen);
      own = {before.first, before.first + std::clamp<std::uint64_t>((before.end - before.first) / 8, 1, taken_most)};
      const std::uint64_t found = window_.compare_and_swap(seen, Range{own.end, before.end}.word(), rt_.rank(), range);
      if (found == seen) return true;
      seen = found;  // a thief has been there
    }
    return false;
  }
  /// Moves the upper half of a victim's range to this rank, which has none: nobody steals from it meanwhile.
  bool steal(int victim) {
    for (std::uint64_t seen = window_.fetch_and_op(0, victim, range, rma::no_op); seen != 0;) {
      const Range whole = Range::of(seen);
      const std::uint64_t middle = whole.first + (whole.end - whole.first) / 2;
      const std::uint64_t found = window_.compare_and_swap(seen, Range{whole.first, middle}.word(), victim, range);
      if (found == seen) {
        (void)window_.fetch_and_op(Range{middle, whole.end}.word(), rt_.rank(), range, rma::replace);
        return true;
      }
      seen = found;  // its owner or another thief has been there
    }
    return false;
  }
  std::uint64_t run() {
    std::uint64_t done = 0;
    for (int victim = rt_.rank();;) {
      std::uint64_t tasks_here = 0, sum_here = 0;
      for (Range own{}; take(own);) {
        for (std::uint64_t task = own.first; task < own.end; ++task, ++tasks_here) {
          compute(rt_);
          sum_here += task;
        }
      }
      if (tasks_here != 0) {  // rank 0 hears of them when the range is empty, not of each
        window_.accumulate(sum_here, 0, sum, rma::sum);
        window_.accumulate(tasks_here, 0, finished, rma::sum);
        done += tasks_here;
      }
      victim = (victim + 1) % rt_.size();
      if (victim != rt_.rank() && steal(victim)) continue;
      if (window_.fetch_and_op(0, 0, finished, rma::no_op) == tasks) return done;
    }
  }

 private:
  rma::Runtime& rt_;
  rma::Window<std::uint64_t>& window_;
};

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  auto window = rma::Window<std::uint64_t>::allocate(world, cells);
  if (rt.rank() == 0) window[range] = Range{0, tasks}.word();
  world.barrier();

  std::uint64_t done = 0;
  {
    const auto epoch = window.lock_all();
    done = Pool(rt, window).run();
  }
  world.barrier();
  const std::uint64_t least = world.allreduce(done, rma::min);
  const std::uint64_t most = world.allreduce(done, rma::max);
  const auto ranks = static_cast<std::uint64_t>(rt.size());
  const bool balanced = 2 * least * ranks >= tasks && most * ranks <= 2 * tasks;
  bool right = balanced;
  if (rt.rank() == 0) {
    window.sync();
    right = right && window[finished] == tasks && window[sum] == tasks * (tasks - 1) / 2;
    fmt::print("{} of {} tasks done, numbers sum up to {}, {}\n", window[finished], tasks, window[sum],
               balanced ? "balanced" : "not balanced");
    fmt::print(stderr, "a rank did {} to {} tasks\n", least, most);
  }
  return right ? 0 : 1;
}
