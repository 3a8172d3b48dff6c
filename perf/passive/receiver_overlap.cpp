// SPDX-License-Identifier: Apache-2.0
// Figure 4.7: rank 0 has a fixed amount to compute, and looks after the others now and then; they lock it, get 32 KiB
// and unlock it until it has finished. How long does that take it?
//
// Locks are exclusive, as section 4.4 says of its whole evaluation. That does not keep the others from asking: with
// two-sided an epoch is one message, which waits at the target for its turn, and the target runs all that have come
// one after the other whenever it looks. Its work for each: copying 32 KiB into nine messages of its adapter and
// posting them. Exclusive or shared makes no difference to it, since nobody holds the lock between two epochs. How long
// the target takes in all is a matter of how often it looks, of which the text says nothing: here 100 times.
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "experiment.hpp"

namespace perf::passive {
namespace {

constexpr std::size_t words = (std::size_t{32} << 10) / sizeof(std::uint64_t);
constexpr int pieces = 100;
constexpr double piece_us = 100;

using window = rma::Window<std::uint64_t>;

double compute(stage& on) {
  return on.time_us([&] {
    for (int i = 0; i < pieces; ++i) {
      on.compute_us(piece_us);
      on.progress();
    }
  });
}

/// Says to all others that it is over: each has a word for that, for which nobody contends.
void end(stage& on, window& over) {
  for (int other = 1; other < on.ranks(); ++other) {
    auto held = over.lock(rma::exclusive, other);
    over.put(1, other, 0);
    held.unlock();
  }
}

bool is_over(window& over) {
  over.sync();
  return std::atomic_ref<std::uint64_t>(over[0]).load() != 0;
}

void get_until_over(window& data, window& over) {
  std::vector<std::uint64_t> found(words);
  while (!is_over(over)) {
    auto held = data.lock(rma::exclusive, 0);
    data.get(std::span(found), 0, 0);
    held.unlock();
  }
}

}  // namespace

void receiver_overlap(stage& on) {
  auto data = window::allocate(on.world(), words);
  auto over = window::allocate(on.world(), 1);
  on.world().barrier();
  if (on.rank() == 0) {
    on.report(on.ranks() - 1, compute(on));
    end(on, over);
  } else {
    get_until_over(data, over);
  }
  over.free();
  data.free();
}

}  // namespace perf::passive
