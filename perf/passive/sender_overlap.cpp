// SPDX-License-Identifier: Apache-2.0
// Figures 4.5 and 4.6: how much computation, in percent of an epoch's time, finds room between the operations and the
// unlock without making the epoch longer.
#include "transfer.hpp"

namespace perf::passive {
namespace {

constexpr int step_percent = 5;
constexpr double no_longer = 1.02;  // factor within which times count as the same
constexpr std::size_t operation_bytes = std::size_t{32} << 10;

double hidden_percent(stage& on, transfer_window& with, bool put, std::size_t bytes, int operations) {
  const auto epoch_us = [&](double compute_us) {
    return on.time_us([&] { with.epoch(put, bytes, operations, [&] { on.compute_us(compute_us); }); });
  };
  const double alone_us = epoch_us(0);
  int percent = 0;
  while (percent < 100 && epoch_us(alone_us * (percent + step_percent) / 100) <= alone_us * no_longer)
    percent += step_percent;
  return percent;
}

void by_size(stage& on, bool put) {
  transfer_window with(on, transfer_bytes_max);
  for (std::size_t bytes = sizeof(std::uint64_t); bytes <= transfer_bytes_max; bytes *= 2) {
    const double percent = with.by_first([&] { return hidden_percent(on, with, put, bytes, 1); });
    on.report(static_cast<double>(bytes), percent);
  }
}

void by_operations(stage& on, bool put) {
  transfer_window with(on, operation_bytes);
  for (int operations = 1; operations <= 64; operations *= 2) {
    const double percent = with.by_first([&] { return hidden_percent(on, with, put, operation_bytes, operations); });
    on.report(operations, percent);
  }
}

}  // namespace

void put_overlap(stage& on) { by_size(on, true); }
void get_overlap(stage& on) { by_size(on, false); }
void put_overlap_operations(stage& on) { by_operations(on, true); }
void get_overlap_operations(stage& on) { by_operations(on, false); }

}  // namespace perf::passive
