// SPDX-License-Identifier: Apache-2.0
#include "experiment.hpp"

namespace perf::passive {
namespace {

/// `counts` ranks, one on each node.
std::vector<shape> one_per_node(std::initializer_list<int> counts) {
  std::vector<shape> all;
  for (const int ranks : counts) all.push_back({ranks, 1});
  return all;
}

/// `counts` ranks on one node, and a rank on another that does nothing: what a node's ranks pay in a job of several.
std::vector<shape> one_node(std::initializer_list<int> counts) {
  std::vector<shape> all;
  for (const int ranks : counts) all.push_back({ranks + 1, ranks});
  return all;
}

/// `nodes` nodes of so many ranks.
std::vector<shape> nodes_of(int nodes, std::initializer_list<int> counts) {
  std::vector<shape> all;
  for (const int ranks : counts) all.push_back({nodes * ranks, ranks});
  return all;
}

const std::vector<experiment>& table() {
  static const std::vector<experiment> all = {
      {"lock_put_unlock", "4.4 (a)", "lock, put, unlock", "bytes", "us", one_per_node({2}), lock_put_unlock},
      {"lock_get_unlock", "4.4 (b)", "lock, get, unlock", "bytes", "us", one_per_node({2}), lock_get_unlock},
      {"put_overlap", "4.5 (a)", "computation hidden by a put", "bytes", "%", one_per_node({2}), put_overlap},
      {"get_overlap", "4.5 (b)", "computation hidden by a get", "bytes", "%", one_per_node({2}), get_overlap},
      {"put_overlap_operations", "4.6 (a)", "computation hidden by puts of 32 KiB", "operations", "%",
       one_per_node({2}), put_overlap_operations},
      {"get_overlap_operations", "4.6 (b)", "computation hidden by gets of 32 KiB", "operations", "%",
       one_per_node({2}), get_overlap_operations},
      {"receiver_overlap", "4.7", "10 ms of computation while others get 32 KiB again and again", "origins", "us",
       one_per_node({2, 3, 5, 9, 17, 33, 65}), receiver_overlap},
      {"lu", "4.8", "SPLASH LU, n = 2048, b = 128, one rank on a node, block by block", "ranks", "us",
       one_per_node({8, 16, 32, 64}), lu},
      {"lock_pair", "5.5", "lock, unlock within a node", "ranks", "us", one_node({2}), lock_pair},
      {"lock_computing", "5.6", "lock, unlock of a target that computes", "us of computation", "us", one_node({2}),
       lock_computing},
      {"lock_neighbors", "5.7", "each rank of a node locks its neighbor", "ranks", "us", one_node({2, 4, 8, 16}),
       lock_neighbors},
      {"lock_contention", "5.8", "ranks of a node contend for one lock", "contenders", "us",
       one_node({2, 3, 4, 5, 7, 9, 13, 17}), lock_contention},
      {"lock_ring", "5.9", "data travel around a ring of computing ranks", "ranks", "us",
       one_per_node({2, 4, 8, 16, 32, 64}), lock_ring},
      {"lock_migration",
       "5.10",
       "lock, unlock within and between nodes",
       "% migrations",
       "us",
       {{3, 2}},
       lock_migration},
      {"task_sharing", "5.11", "hierarchical task sharing on 4 nodes", "ranks", "us", nodes_of(4, {2, 4, 8, 16}),
       task_sharing},
      {"lu_nodes",
       "5.12",
       "SPLASH LU, n = 2048, b = 128, eight ranks on a node, row by row",
       "ranks",
       "us",
       {{8, 8}, {16, 8}, {32, 8}, {64, 8}},
       lu_by_rows},
  };
  return all;
}

}  // namespace

std::span<const experiment> experiments() { return table(); }

double stage::now_us() const noexcept { return static_cast<double>(runtime_.now().count()) / 1e3; }

// Virtual time passes in one step; real time has to be waited for.
void stage::compute_us(double time_us) noexcept {
  const std::chrono::nanoseconds work(static_cast<std::int64_t>(time_us * 1e3));
  const auto end = runtime_.now() + work;
  runtime_.compute(work);
  while (runtime_.now() < end) {}
}

}  // namespace perf::passive
