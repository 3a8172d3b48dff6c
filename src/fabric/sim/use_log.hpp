// SPDX-License-Identifier: Apache-2.0
/// \file
/// Records when links and DMA engines were busy: summed up over time for a heat map, and one by one for a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/sim/event_queue.hpp"

namespace rma::sim {

/// Its memory is bounded: time is divided into a fixed number of buckets, whose width doubles when time exceeds them,
/// and spans beyond a limit are only counted. A row is a link or, after all links, an engine (node * engines + engine).
class use_log {
 public:
  struct limits {
    unsigned buckets = 256;          ///< upper bound; fewer with very many rows
    std::size_t spans_max = 100000;  ///< 0: no spans
    time_ps first_width_ps = 1024;
  };
  struct span {
    std::uint32_t row;
    time_ps start_ps, end_ps;
    std::uint64_t transfer;
  };

  use_log(std::size_t rows, const limits& within);

  void add(std::uint32_t row, time_ps start_ps, time_ps end_ps, std::uint64_t transfer) noexcept {
    if (spans_.size() < spans_max_) {
      spans_.push_back({row, start_ps, end_ps, transfer});
    } else {
      ++spans_lost_;
    }
    count(row, start_ps, end_ps);
  }

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] unsigned buckets() const noexcept { return buckets_; }
  [[nodiscard]] time_ps width_ps() const noexcept { return width_ps_; }
  /// The time in that bucket in which the row was busy.
  [[nodiscard]] time_ps busy_ps(std::size_t row, unsigned bucket) const noexcept {
    return busy_ps_[row * buckets_ + bucket];
  }
  [[nodiscard]] const std::vector<span>& spans() const noexcept { return spans_; }
  [[nodiscard]] std::uint64_t spans_lost() const noexcept { return spans_lost_; }

 private:
  void count(std::uint32_t row, time_ps start_ps, time_ps end_ps) noexcept;
  void halve() noexcept;

  std::size_t rows_;
  unsigned buckets_;
  time_ps width_ps_;
  std::vector<time_ps> busy_ps_;
  std::vector<span> spans_{};
  std::size_t spans_max_;
  std::uint64_t spans_lost_ = 0;
};

}  // namespace rma::sim
