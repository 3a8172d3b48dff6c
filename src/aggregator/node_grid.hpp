// SPDX-License-Identifier: Apache-2.0
/// \file
/// Nodes of a team in a grid of planes, rows and columns, and the route of a record through it: to the plane of its
/// target, to the row, to the node; a reply that has arrived at another rank of the node is forwarded to its own.
///
///   node = plane * rows_per_plane * row_length + row * row_length + column
///
/// Planes and rows are full except for the last ones, so that any number of nodes forms a grid. A record for a place
/// that does not exist is sent to that place modulo the existing ones. The same holds for ranks of a node: each keeps
/// its local number.
#pragma once

#include <cstddef>
#include <vector>

#include "rma/team.hpp"

namespace rma::detail {

class node_grid {
 public:
  static constexpr unsigned dimensions = 4;  ///< plane, row, node, and the rank in its node

  struct hop {
    unsigned dimension = 0;
    std::size_t index = 0;  ///< in `receivers`
  };

  /// Collective. `mapped`: the ranks of a node form one; otherwise each rank is a node. `wanted`: dimensions of the
  /// grid of nodes; 0: chosen by their number.
  node_grid(Team& team, bool mapped, int wanted);

  [[nodiscard]] int me() const noexcept { return me_; }
  [[nodiscard]] int my_group() const noexcept { return at(group_of_, me_); }
  [[nodiscard]] const int* groups() const noexcept { return group_of_.data(); }
  /// A request may be delivered on any rank of the node, a reply only on its own.
  [[nodiscard]] bool is_here(int target, bool reply) const noexcept {
    return reply ? target == me_ : at(group_of_, target) == my_group();
  }
  /// The next hop of a record for a target that is not here.
  [[nodiscard]] hop next(int target, bool reply) const noexcept;
  /// Ranks to which this rank sends in that dimension.
  [[nodiscard]] std::vector<int> receivers(unsigned dimension, bool reply) const;
  /// Ranks that send to `rank` in that dimension.
  [[nodiscard]] std::vector<int> senders(int rank, unsigned dimension, bool reply) const;

 private:
  static int at(const std::vector<int>& all, int i) noexcept { return all[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int nodes() const noexcept { return static_cast<int>(first_.size()) - 1; }
  [[nodiscard]] int count(int node) const noexcept { return at(first_, node + 1) - at(first_, node); }
  [[nodiscard]] int rank_at(int node, int local) const noexcept {
    return at(members_, at(first_, node) + local % count(node));
  }
  [[nodiscard]] int plane(int node) const noexcept { return node / plane_; }
  [[nodiscard]] int low(int node) const noexcept { return node % plane_; }
  [[nodiscard]] int row(int node) const noexcept { return low(node) / row_; }
  [[nodiscard]] int column(int node) const noexcept { return low(node) % row_; }
  [[nodiscard]] int planes() const noexcept { return (nodes() + plane_ - 1) / plane_; }
  [[nodiscard]] int plane_size(int p) const noexcept;
  [[nodiscard]] int rows(int p) const noexcept { return (plane_size(p) + row_ - 1) / row_; }
  [[nodiscard]] int row_size(int p, int r) const noexcept;
  [[nodiscard]] std::vector<int> sender_nodes(int node, unsigned dimension) const;
  void choose_shape(int wanted, int ranks_per_node);

  int me_ = 0;
  int my_local_ = 0;
  std::vector<int> group_of_;  ///< number of each rank's node
  std::vector<int> local_of_;  ///< number of each rank in its node
  std::vector<int> first_;     ///< first rank of each node, in members_; one more at the end
  std::vector<int> members_;
  int plane_ = 1;     ///< nodes of a full plane
  int row_ = 1;       ///< nodes of a full row
  bool even_ = true;  ///< all nodes have equally many ranks: a reply takes the route of its request back
};

}  // namespace rma::detail
