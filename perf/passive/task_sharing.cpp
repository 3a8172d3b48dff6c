// SPDX-License-Identifier: Apache-2.0
// Figure 5.11: one rank of each node leads. It does many epochs (lock, put, unlock) with each rank of its node, then as
// many with the leader of each other node, then those of its node again.
#include <cstdint>

#include "experiment.hpp"

namespace perf::passive {
namespace {

constexpr int epochs = 100;  // the dissertation has 1000; each is like the one before

using window = rma::Window<std::uint64_t>;

void share(window& with, int target) {
  for (int i = 0; i < epochs; ++i) {
    auto held = with.lock(rma::exclusive, target);
    with.put(1, target, 0);
    held.unlock();
  }
}

}  // namespace

void task_sharing(stage& on) {
  constexpr int nodes = 4;
  auto with = window::allocate(on.world(), 1);
  const int width = on.ranks() / nodes;
  const bool leads = on.rank() % width == 0;
  const auto local = [&] {
    for (int i = 1; i < width; ++i) share(with, on.rank() + i);
  };
  double took_us = 0;
  for (int round = 0; round < 2; ++round) {  // the first makes the connections
    on.world().barrier();
    took_us = on.time_us([&] {
      if (leads) {
        local();
        for (int i = 1; i < nodes; ++i) share(with, (on.rank() + i * width) % on.ranks());
        local();
      }
      on.world().barrier();
    });
  }
  on.report(on.ranks(), took_us);
  with.free();
}

}  // namespace perf::passive
