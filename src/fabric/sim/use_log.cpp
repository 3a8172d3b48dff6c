// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/use_log.hpp"

#include <algorithm>

namespace rma::sim {
namespace {
constexpr std::size_t cells_max = std::size_t{1} << 22;
constexpr std::size_t buckets_least = 16;
}  // namespace

use_log::use_log(std::size_t rows, const limits& within)
    : rows_(rows),
      // The number is even, so that pairs of buckets can be merged.
      buckets_(static_cast<unsigned>(std::clamp<std::size_t>(cells_max / std::max<std::size_t>(rows, 1), buckets_least,
                                                             std::max<std::size_t>(within.buckets, buckets_least))) &
               ~1U),
      width_ps_(std::max<time_ps>(within.first_width_ps, 1)),
      busy_ps_(rows * buckets_),
      spans_max_(within.spans_max) {
  spans_.reserve(spans_max_);
}

void use_log::halve() noexcept {
  for (std::size_t row = 0; row < rows_; ++row) {
    time_ps* cells = &busy_ps_[row * buckets_];
    for (unsigned i = 0; i < buckets_ / 2; ++i) cells[i] = cells[2 * i] + cells[2 * i + 1];
    std::fill(cells + buckets_ / 2, cells + buckets_, 0);
  }
  width_ps_ *= 2;
}

void use_log::count(std::uint32_t row, time_ps start_ps, time_ps end_ps) noexcept {
  while (end_ps > width_ps_ * buckets_) halve();
  while (start_ps < end_ps) {
    const auto bucket = static_cast<std::size_t>(start_ps / width_ps_);
    const time_ps until_ps = std::min(end_ps, (start_ps / width_ps_ + 1) * width_ps_);
    busy_ps_[row * buckets_ + bucket] += until_ps - start_ps;
    start_ps = until_ps;
  }
}

}  // namespace rma::sim
