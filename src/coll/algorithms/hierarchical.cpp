// SPDX-License-Identifier: Apache-2.0
/// \file
/// Hierarchical: within each node, then between one rank of each, then within each node again. Every message that can
/// stay on a node does.
///
///   node 0: 0 <- 1 <- ...   \                        / 0 -> 1 -> ...
///   node 1: 4 <- 5 <- ...   -- 0 and 4 between them --  4 -> 5 -> ...
#include "coll/algorithms/builders.hpp"

#include <algorithm>

namespace rma::detail::coll::hierarchical {
namespace {

/// The members of this rank's node, and the first ones of all nodes. The root represents its node if there is one.
struct levels {
  group node;
  group leaders;
  int leader = 0;     ///< index in `node`
  int root_node = 0;  ///< index in `leaders`
  bool leads = false;
  levels(const shape& s, int root) {
    const auto node_of = [&](int r) { return s.nodes.empty() ? 0 : s.nodes[at(r)]; };
    const auto leader_of = [&](int n) { return root >= 0 && node_of(root) == n ? root : n; };
    const int mine = leader_of(node_of(s.rank));
    for (int r = 0; r < s.size; ++r) {
      if (node_of(r) == node_of(s.rank)) {
        if (r == s.rank) node.me = node.size();
        if (r == mine) leader = node.size();
        node.ranks.push_back(r);
      }
      if (node_of(r) != r && !(r == 0 && s.nodes.empty())) continue;
      if (leader_of(r) == s.rank) leaders.me = leaders.size();
      if (root >= 0 && node_of(root) == r) root_node = leaders.size();
      leaders.ranks.push_back(leader_of(r));
    }
    leads = mine == s.rank;
  }
};

}  // namespace

void barrier(const shape& s, Schedule& to) {
  const levels l(s, -1);
  binomial_reduce(l.node, l.leader, scratch(), scratch(), scratch(), 0, to);
  to.round();
  for (int distance = 1; l.leads && distance < l.leaders.size(); distance <<= 1) {
    to.send(scratch(), 0, l.leaders.rank((l.leaders.me + distance) % l.leaders.size()));
    to.recv(scratch(), 0, l.leaders.rank((l.leaders.me + l.leaders.size() - distance) % l.leaders.size())).round();
  }
  binomial_broadcast(l.node, l.leader, scratch(), 0, to);
}

void broadcast(const shape& s, Schedule& to) {
  const levels l(s, s.root);
  if (l.leads) binomial_broadcast(l.leaders, l.root_node, output(), s.bytes, to);
  binomial_broadcast(l.node, l.leader, output(), s.bytes, to);
}

void reduce(const shape& s, Schedule& to) {
  const levels l(s, s.root);
  const Schedule::Place own = l.leads ? scratch() : scratch(s.bytes);
  binomial_reduce(l.node, l.leader, input(), own, scratch(2 * s.bytes), s.bytes, to);
  to.round();
  if (l.leads) {
    const Schedule::Place result = s.rank == s.root ? output() : scratch(s.bytes);
    binomial_reduce(l.leaders, l.root_node, own, result, scratch(2 * s.bytes), s.bytes, to);
  }
}

void allreduce(const shape& s, Schedule& to) {
  const levels l(s, -1);
  const Schedule::Place own = l.leads ? output() : scratch();
  binomial_reduce(l.node, l.leader, input(), own, scratch(s.bytes), s.bytes, to);
  to.round();
  if (l.leads) {
    const Schedule::Place result = l.leaders.me == 0 ? output() : scratch();
    binomial_reduce(l.leaders, 0, output(), result, scratch(s.bytes), s.bytes, to);
    to.round();
    binomial_broadcast(l.leaders, 0, output(), s.bytes, to);
  }
  binomial_broadcast(l.node, l.leader, output(), s.bytes, to);
}

}  // namespace rma::detail::coll::hierarchical
