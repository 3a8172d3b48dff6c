// SPDX-License-Identifier: Apache-2.0
#include "aggregator/node_grid.hpp"

#include <algorithm>
#include <cmath>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

/// The least n with n^power >= value.
int root_of(int value, int power) {
  int n = 1;
  while (std::pow(n, power) < value) ++n;
  return n;
}

}  // namespace

node_grid::node_grid(Team& team, bool mapped, int wanted) : me_(team.rank()) {
  if (wanted < 0 || wanted > 3)
    throw Error(status::bad_argument, "Aggregator: a grid has 1 to 3 dimensions, or 0: auto");
  const int leader = mapped ? team.rank_of(team.node().world_rank(0)) : me_;
  const std::vector<int> leaders = team.allgather(leader);
  std::vector<int> number(leaders.size(), -1);
  std::vector<int> counts;
  for (const int each : leaders) {
    int& node = number[static_cast<std::size_t>(each)];
    if (node < 0) {
      node = static_cast<int>(counts.size());
      counts.push_back(0);
    }
    group_of_.push_back(node);
    local_of_.push_back(counts[static_cast<std::size_t>(node)]++);
  }
  first_.assign(1, 0);
  for (const int each : counts) first_.push_back(first_.back() + each);
  members_.resize(leaders.size());
  for (std::size_t r = 0; r < leaders.size(); ++r)
    members_[static_cast<std::size_t>(at(first_, group_of_[r]) + local_of_[r])] = static_cast<int>(r);
  even_ = std::all_of(counts.begin(), counts.end(), [&](int each) { return each == counts.front(); });
  my_local_ = at(local_of_, me_);
  choose_shape(wanted, mapped ? 1 : team.allreduce(team.node().size(), min));
}

// If the ranks of a node do not form one, a row is a node: it collects the records for distant targets.
void node_grid::choose_shape(int wanted, int ranks_per_node) {
  const int n = nodes();
  const int shape = wanted != 0 ? wanted : n <= 16 ? 1 : n <= 256 ? 2 : 3;
  row_ = shape == 1 ? n : ranks_per_node > 1 ? std::min(ranks_per_node, n) : root_of(n, shape);
  plane_ = shape == 3 ? row_ * root_of((n + row_ - 1) / row_, 2) : n;
}

int node_grid::plane_size(int p) const noexcept { return std::min(plane_, nodes() - p * plane_); }
int node_grid::row_size(int p, int r) const noexcept { return std::min(row_, plane_size(p) - r * row_); }

node_grid::hop node_grid::next(int target, [[maybe_unused]] bool reply) const noexcept {
  const int to = at(group_of_, target);
  const int mine = my_group();
  const auto skipping = [](int there, int here) { return static_cast<std::size_t>(there < here ? there : there - 1); };
  if (plane(to) != plane(mine)) return {0, skipping(plane(to), plane(mine))};
  if (row(to) != row(mine)) return {1, skipping(row(to), row(mine))};
  if (to != mine) return {2, skipping(column(to), column(mine))};
  RMA_ASSERT(reply && target != me_);
  return {3, skipping(at(local_of_, target), my_local_)};
}

std::vector<int> node_grid::receivers(unsigned dimension, bool reply) const {
  std::vector<int> found;
  const int mine = my_group(), p = plane(mine);
  const auto add = [&](int node) { found.push_back(rank_at(node, my_local_)); };
  if (dimension == 0) {
    for (int q = 0; q < planes(); ++q) {
      if (q != p) add(q * plane_ + low(mine) % plane_size(q));
    }
  } else if (dimension == 1) {
    for (int r = 0; r < rows(p); ++r) {
      if (r != row(mine)) add(p * plane_ + r * row_ + column(mine) % row_size(p, r));
    }
  } else if (dimension == 2) {
    const int begin = mine - column(mine);
    for (int c = 0; c < row_size(p, row(mine)); ++c) {
      if (c != column(mine)) add(begin + c);
    }
  } else if (reply && !even_) {
    for (int l = 0; l < count(mine); ++l) {
      if (l != my_local_) found.push_back(rank_at(mine, l));
    }
  }
  return found;
}

/// Nodes whose ranks send to that node in that dimension.
std::vector<int> node_grid::sender_nodes(int node, unsigned dimension) const {
  std::vector<int> found;
  const int p = plane(node), r = row(node);
  if (dimension == 0) {
    for (int q = 0; q < planes(); ++q) {
      for (int l = low(node); q != p && l < plane_size(q); l += plane_size(p)) found.push_back(q * plane_ + l);
    }
  } else if (dimension == 1) {
    for (int s = 0; s < rows(p); ++s) {
      for (int c = column(node); s != r && c < row_size(p, s); c += row_size(p, r))
        found.push_back(p * plane_ + s * row_ + c);
    }
  } else {
    for (int c = 0; c < row_size(p, r); ++c) {
      if (c != column(node)) found.push_back(node - column(node) + c);
    }
  }
  return found;
}

std::vector<int> node_grid::senders(int rank, unsigned dimension, bool reply) const {
  std::vector<int> found;
  const int node = at(group_of_, rank), local = at(local_of_, rank);
  if (dimension == 3) {
    for (int l = 0; reply && !even_ && l < count(node); ++l) {
      if (l != local) found.push_back(rank_at(node, l));
    }
    return found;
  }
  for (const int from : sender_nodes(node, dimension)) {
    for (int l = local; l < count(from); l += count(node)) found.push_back(rank_at(from, l));
  }
  return found;
}

}  // namespace rma::detail
