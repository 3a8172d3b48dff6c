// SPDX-License-Identifier: Apache-2.0
// Fence and barrier of any number of ranks: ns each. With more ranks than cores it shows what waiting costs.
#include "bench.hpp"

int main(int argc, char** argv) {
  return perf::run(argc, argv, "fence and barrier", 1, [](perf::bench& b) {
    auto win = rma::Window<std::uint64_t>::allocate(b.world, 1024);
    const int next = (b.rank() + 1) % b.ranks();
    win.fence();
    b.points.everyone({"fence"}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) win.fence();
    });
    std::uint64_t last = 0;
    b.points.everyone({"fence_put", 8}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win.put(i, next, 0);
        win.fence();
      }
      last = n - 1;
    });
    perf::require(win[0] == last, "fence_put");
    win.fence(rma::no_succeed);
    b.points.everyone({"barrier"}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) b.world.barrier();
    });
    win.free();
  });
}
