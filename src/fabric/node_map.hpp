// SPDX-License-Identifier: Apache-2.0
/// \file
/// Number of each rank's node. Every rank of a job keeps one, so it is as small as the placement is regular.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace rma::fabric {

/// Ranks placed in equal blocks, as launchers do by default, take one number; any other placement takes an entry for
/// each run of consecutive ranks on one node.
class node_map {
 public:
  node_map() = default;

  /// `node_of(rank)` is a number of a node that is at least 0 and below `ranks`.
  template <typename NodeOf>
  node_map(int ranks, NodeOf&& node_of) : ranks_(ranks) {
    while (block_ < ranks && node_of(block_) == node_of(0)) ++block_;
    int first = 0;
    while (first < ranks && node_of(first) == first / block_) ++first;
    if (first == ranks) return;
    for (int r = 0; r < ranks; ++r) {
      if (runs_.empty() || runs_.back().node != node_of(r)) runs_.push_back({r, node_of(r)});
    }
    runs_.shrink_to_fit();
  }

  [[nodiscard]] int ranks() const noexcept { return ranks_; }

  [[nodiscard]] int node_of(int rank) const noexcept {
    if (runs_.empty()) return rank / block_;
    const auto later = [](int r, const run& of) { return r < of.first; };
    return std::prev(std::upper_bound(runs_.begin(), runs_.end(), rank, later))->node;
  }

 private:
  struct run {
    int first;  ///< rank
    int node;
  };
  int ranks_ = 0;
  int block_ = 1;          ///< consecutive ranks of each node, if there are no runs
  std::vector<run> runs_;  ///< ordered by rank
};

}  // namespace rma::fabric
