// SPDX-License-Identifier: Apache-2.0
// Figure 5.10: rank 1 locks and unlocks rank 0 of its node 1000 times; rank 2, on another node, locks rank 0 now and
// then meanwhile, and makes the lock migrate each time. x: how often, in percent of the 1000.
#include <algorithm>
#include <cstdint>
#include <span>

#include "experiment.hpp"

namespace perf::passive {
namespace {

constexpr int epochs = 1000;

using window = rma::Window<std::uint64_t>;

void once(window& with) { with.lock(rma::exclusive, 0).unlock(); }

}  // namespace

void lock_migration(stage& on) {
  auto with = window::allocate(on.world(), 1);
  double undisturbed_us = 0;
  for (const int percent : {0, 1, 2, 5, 10, 20, 30, 40, 50}) {
    const int foreign = epochs * percent / 100;
    if (on.rank() != 0) once(with);
    on.world().barrier();
    double mean_us = 0;
    const int begun = 0;  // rank 2 comes when rank 1 is at it, however they have left the barrier
    if (on.rank() == 1) {
      if (foreign != 0) on.world().send(std::span(&begun, 1), 2, percent);
      const auto run = [&] {
        for (int i = 0; i < epochs; ++i) once(with);
      };
      mean_us = on.time_us(run) / epochs;
    } else if (on.rank() == 2 && foreign != 0) {
      int told = 0;
      (void)on.world().recv(std::span(&told, 1), 1, percent);
      for (int i = 0; i < foreign; ++i) {
        on.compute_us(undisturbed_us * epochs / foreign);
        mean_us += on.time_us([&] { once(with); }) / foreign;
      }
    }
    const auto all_us = on.world().allgather(mean_us);
    if (percent == 0) undisturbed_us = all_us[1];
    on.report(percent, all_us[1], "intra-node");
    if (foreign != 0) on.report(percent, all_us[2], "inter-node");
  }
  with.free();
}

}  // namespace perf::passive
