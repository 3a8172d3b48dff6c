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
constexpr std::uint64_t trips = 40;
constexpr double piece_us = 50;  // on average

/// Pieces of one length would meet the tag at the same moment in every trip: whether a rank looks just before it comes
/// or just after it makes 50 us.
class pieces {
 public:
  explicit pieces(int rank) : dice_(static_cast<std::uint64_t>(rank) * 2 + 1) {}
  double next_us() {
    dice_ = dice_ * 6364136223846793005U + 1442695040888963407U;
    return piece_us / 2 + piece_us * static_cast<double>(dice_ >> 40) / static_cast<double>(1 << 24);
  }

 private:
  std::uint64_t dice_;
};

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
  pieces work(on.rank());
  const auto trip = [&](std::uint64_t tag) {
    if (on.rank() == 0) pass_on(window, next, tag);
    while (!arrived(on, window, tag)) on.compute_us(work.next_us());
    if (on.rank() != 0) pass_on(window, next, tag);
  };
  on.world().barrier();
  trip(1);  // makes the connections
  on.world().barrier();
  const double took_us = on.time_us([&] {
    for (std::uint64_t tag = 2; tag < 2 + trips; ++tag) trip(tag);
  });
  on.report(on.ranks(), took_us / trips);
  window.free();
}

}  // namespace perf::passive
