// SPDX-License-Identifier: Apache-2.0
// Figure 5.9: data travel around a ring. A rank that has them locks its successor, puts them there with a tag, and
// unlocks. All ranks compute meanwhile, and look for the tag, and after others, between two pieces of that.
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "experiment.hpp"

namespace perf::passive {
namespace {

constexpr std::size_t words = 128;
constexpr double piece_us = 50;

void pass_on(rma::Window<std::uint64_t>& window, int to, std::uint64_t tag) {
  const std::vector<std::uint64_t> data(words, tag);
  auto held = window.lock(rma::exclusive, to);
  window.put(std::span<const std::uint64_t>(data), to, 1);
  held.flush();
  window.put(tag, to, 0);
  held.unlock();
}

bool arrived(stage& on, rma::Window<std::uint64_t>& window, std::uint64_t tag) {
  on.progress();
  window.sync();
  return std::atomic_ref<std::uint64_t>(window[0]).load() == tag;
}

}  // namespace

void lock_ring(stage& on) {
  auto window = rma::Window<std::uint64_t>::allocate(on.world(), 1 + words);
  const int next = (on.rank() + 1) % on.ranks();
  double took_us = 0;
  for (std::uint64_t round = 1; round <= 2; ++round) {  // the first makes the connections
    on.world().barrier();
    took_us = on.time_us([&] {
      if (on.rank() == 0) pass_on(window, next, round);
      while (!arrived(on, window, round)) on.compute_us(piece_us);
      if (on.rank() != 0) pass_on(window, next, round);
    });
  }
  on.report(on.ranks(), took_us);
  window.free();
}

}  // namespace perf::passive
