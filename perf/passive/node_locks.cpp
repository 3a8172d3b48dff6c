// SPDX-License-Identifier: Apache-2.0
// Figures 5.5 to 5.8: empty exclusive epochs within a node, towards a target that waits or computes, by all ranks at
// once, and by several ranks for one target. The last rank of the job is on another node, and takes no part.
#include <cstdint>

#include "experiment.hpp"

namespace perf::passive {
namespace {

constexpr int epochs = 50;

using window = rma::Window<std::uint64_t>;

int ranks_of_node(const stage& on) { return on.ranks() - 1; }
bool takes_part(const stage& on) { return on.rank() < ranks_of_node(on); }

/// The mean of so many.
double epoch_us(stage& on, window& with, int target) {
  const auto run = [&] {
    for (int i = 0; i < epochs; ++i) with.lock(rma::exclusive, target).unlock();
  };
  return on.time_us(run) / epochs;
}

/// Once to make connections.
void warm_up(stage& on, window& with, int target) {
  if (target >= 0) with.lock(rma::exclusive, target).unlock();
  on.world().barrier();
}

/// Long enough for all epochs of the other rank, each of which may wait for two pieces.
void compute_in_pieces(stage& on, double piece_us) {
  for (int i = 0; piece_us > 0 && i < 2 * epochs + 10; ++i) {
    on.compute_us(piece_us);
    on.progress();
  }
}

}  // namespace

void lock_pair(stage& on) {
  auto with = window::allocate(on.world(), 1);
  warm_up(on, with, on.rank() == 0 ? 1 : -1);
  if (on.rank() == 0) on.report(ranks_of_node(on), epoch_us(on, with, 1));
  with.free();
}

void lock_computing(stage& on) {
  auto with = window::allocate(on.world(), 1);
  for (const double piece_us : {0.0, 10.0, 50.0, 100.0, 500.0}) {
    warm_up(on, with, on.rank() == 0 ? 1 : -1);
    if (on.rank() == 0) {
      on.report(piece_us, epoch_us(on, with, 1));
    } else if (on.rank() == 1) {
      compute_in_pieces(on, piece_us);
    }
    on.world().barrier();
  }
  with.free();
}

void lock_neighbors(stage& on) {
  auto with = window::allocate(on.world(), 1);
  const int ranks = ranks_of_node(on);
  const int next = takes_part(on) ? (on.rank() + 1) % ranks : -1;
  warm_up(on, with, next);
  const double sum_us = on.sum(takes_part(on) ? epoch_us(on, with, next) : 0);
  on.report(ranks, sum_us / ranks);
  with.free();
}

void lock_contention(stage& on) {
  auto with = window::allocate(on.world(), 1);
  const int contenders = ranks_of_node(on) - 1;
  const bool contends = takes_part(on) && on.rank() != 0;
  warm_up(on, with, contends ? 0 : -1);
  const double sum_us = on.sum(contends ? epoch_us(on, with, 0) : 0);
  on.report(contenders, sum_us / contenders);
  with.free();
}

}  // namespace perf::passive
