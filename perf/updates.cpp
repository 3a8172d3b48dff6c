// SPDX-License-Identifier: Apache-2.0
// Figures 7.3a and 7.4a of the dissertation: a put, a get and an accumulate with its flush, by size; and n accumulates
// of a word each against one accumulate with a layout of n words, each with one flush. Rank 0 works on rank 1, which
// sits in a barrier.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "bench.hpp"

namespace {

using window = rma::Window<std::uint64_t>;
constexpr int target = 1;
constexpr std::size_t words_max = 4096;
constexpr std::size_t distance = 3;  ///< distance of the words updated by one call, and of those updated one by one

void by_size(perf::bench& b, window& win) {
  std::vector<std::uint64_t> mine(words_max, 1);
  for (std::size_t words = 1; words <= words_max; words *= 8) {
    const auto some = std::span(mine).first(words);
    const std::size_t bytes = words * sizeof(std::uint64_t);
    b.points.origin({"put", bytes}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win.put(some, target, 0);
        win.flush(target);
      }
    });
    b.points.origin({"get", bytes}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win.get(some, target, 0);
        win.flush(target);
      }
    });
    b.points.origin({"accumulate", bytes}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win.accumulate(some, target, 0, rma::sum);
        win.flush(target);
      }
    });
  }
}

/// Words at growing distances, which no vector describes.
rma::Layout words_of(std::size_t count) {
  std::vector<std::ptrdiff_t> offsets;
  for (std::size_t i = 0; i < count; ++i) offsets.push_back(static_cast<std::ptrdiff_t>(i * distance + i % 2));
  return rma::Layout::indexed<std::uint64_t>(1, offsets);
}

void by_count(perf::bench& b, window& win) {
  std::vector<std::uint64_t> ones(words_max, 1);
  std::uint64_t added = 0;
  if (b.first()) {
    win.put(0, target, 0);
    win.flush(target);
  }
  for (std::size_t words = 1; words <= 1024; words *= 4) {
    const std::size_t bytes = words * sizeof(std::uint64_t);
    const rma::Layout there = words_of(words), here = rma::Layout::contiguous<std::uint64_t>(words);
    b.points.origin({"accumulates", bytes}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < words; ++k) win.accumulate(1, target, k * distance + k % 2, rma::sum);
        win.flush(target);
      }
      added += n;
    });
    b.points.origin({"accumulate_layout", bytes}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win.accumulate(ones.data(), here, target, 0, there, rma::sum);
        win.flush(target);
      }
      added += n;
    });
  }
  if (b.first()) perf::require(win.get(target, 0) == added, "sums");
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "puts, gets and updates by size and by number", 2, [](perf::bench& b) {
    auto win = window::allocate(b.world, words_max * (distance + 1));
    std::fill(win.local().begin(), win.local().end(), 0);
    b.world.barrier();
    std::optional<rma::Epoch> epoch;
    if (b.first()) epoch.emplace(win.lock_all());
    by_size(b, win);
    by_count(b, win);
    epoch.reset();
    b.world.barrier();
    win.free();
  });
}
