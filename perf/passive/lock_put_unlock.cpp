// SPDX-License-Identifier: Apache-2.0
// Figure 4.4: an epoch with one put or get, by size. The target waits inside the library.
#include "transfer.hpp"

namespace perf::passive {
namespace {

constexpr int repetitions = 20;

void epochs(stage& on, bool put) {
  transfer_window with(on, transfer_bytes_max);
  for (std::size_t bytes = sizeof(std::uint64_t); bytes <= transfer_bytes_max; bytes *= 2) {
    const double mean_us = with.by_first([&] {
      return on.time_us([&] {
        for (int i = 0; i < repetitions; ++i) with.epoch(put, bytes, 1, [] {});
      }) / repetitions;
    });
    on.report(static_cast<double>(bytes), mean_us);
  }
}

}  // namespace

void lock_put_unlock(stage& on) { epochs(on, true); }
void lock_get_unlock(stage& on) { epochs(on, false); }

}  // namespace perf::passive
