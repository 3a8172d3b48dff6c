// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rank 0 locks rank 1 exclusively, transfers, computes, unlocks; the others wait in a barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experiment.hpp"

namespace perf::passive {

inline constexpr std::size_t transfer_bytes_max = std::size_t{256} << 10;

class transfer_window {
 public:
  /// Collective.
  transfer_window(stage& on, std::size_t bytes_max)
      : on_(on),
        memory_(bytes_max / sizeof(std::uint64_t)),
        window_(rma::Window<std::uint64_t>::allocate(on.world(), memory_.size())) {}
  transfer_window(const transfer_window&) = delete;
  transfer_window& operator=(const transfer_window&) = delete;
  ~transfer_window() { (void)window_.try_free(); }

  /// One epoch: so many operations of so many bytes, then whatever else.
  template <class Then>
  void epoch(bool put, std::size_t bytes, int operations, Then&& then) {
    auto held = window_.lock(rma::exclusive, 1);
    const auto part = std::span(memory_).first(bytes / sizeof(std::uint64_t));
    for (int i = 0; i < operations; ++i) {
      if (put) {
        window_.put(std::span<const std::uint64_t>(part), 1, 0);
      } else {
        window_.get(part, 1, 0);
      }
    }
    then();
    held.unlock();
  }

  /// The result of rank 0's second measurement: the first one makes connections and touches pages. Collective.
  template <class Measure>
  double by_first(Measure&& measure) {
    double found = 0;
    if (on_.rank() == 0) {
      (void)measure();
      found = measure();
    }
    on_.world().barrier();
    return found;
  }

 private:
  stage& on_;
  std::vector<std::uint64_t> memory_;
  rma::Window<std::uint64_t> window_;
};

}  // namespace perf::passive
