// SPDX-License-Identifier: Apache-2.0
/// \file
/// Binomial trees: log2(n) rounds, and one message over each edge.
///
///   0 ----------> 4 ----> 6 -> 7        a broadcast from 0; turned around, a reduction
///   0 ----> 2 -> 3   4 -> 5
///   0 -> 1
#include "coll/algorithms/builders.hpp"

#include <algorithm>

namespace rma::detail::coll::binomial {

void barrier(const shape& s, Schedule& to) {
  const group all = everybody(s);
  binomial_reduce(all, 0, scratch(), scratch(), scratch(), 0, to);
  binomial_broadcast(all, 0, scratch(), 0, to);
}

void broadcast(const shape& s, Schedule& to) { binomial_broadcast(everybody(s), s.root, output(), s.bytes, to); }

// If the order of ranks counts, the tree is one over the ranks themselves: the result then takes one more message.
void reduce(const shape& s, Schedule& to) {
  const int top = s.any_order() ? s.root : 0;
  const bool ends_here = s.rank == top && top == s.root;
  binomial_reduce(everybody(s), top, input(), ends_here ? output() : scratch(), scratch(s.bytes), s.bytes, to);
  if (top == s.root) return;
  to.round();
  if (s.rank == top) to.send(scratch(), s.bytes, s.root);
  if (s.rank == s.root) to.recv(output(), s.bytes, top);
}

void allreduce(const shape& s, Schedule& to) {
  const group all = everybody(s);
  binomial_reduce(all, 0, input(), s.rank == 0 ? output() : scratch(), scratch(s.bytes), s.bytes, to);
  to.round();
  binomial_broadcast(all, 0, output(), s.bytes, to);
}

namespace {

/// This rank relative to the root, and the number of ranks in its subtree, itself included.
struct subtree {
  int v, below;
  explicit subtree(const shape& s) noexcept : v((s.rank - s.root + s.size) % s.size) {
    const int bit = v == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(s.size))) : v & -v;
    below = std::min(bit, s.size - v);
  }
};

}  // namespace

// Blocks lie in scratch memory in the order of the tree; at the root they are copied into the order of the ranks.
void gather(const shape& s, Schedule& to) {
  const std::size_t bytes = s.rank == s.root ? s.received.each : s.sent.each;
  const subtree tree(s);
  const bool alone = tree.below == 1;
  if (!alone) to.copy(input(), scratch(), bytes);
  for (int bit = 1; bit < s.size; bit <<= 1) {
    if ((tree.v & bit) != 0) {
      to.round().send(alone ? input() : scratch(), bytes * at(tree.below), (tree.v - bit + s.root) % s.size);
      return;
    }
    if (tree.v + bit >= s.size) continue;
    const int from = tree.v + bit;
    to.recv(scratch(at(bit) * bytes), bytes * at(std::min(bit, s.size - from)), (from + s.root) % s.size);
  }
  to.round();
  if (alone) {
    to.copy(input(), output(), bytes);
    return;
  }
  to.copy(scratch(), output(at(s.root) * bytes), at(s.size - s.root) * bytes);
  if (s.root != 0) to.copy(scratch(at(s.size - s.root) * bytes), output(), at(s.root) * bytes);
}

void scatter(const shape& s, Schedule& to) {
  const std::size_t bytes = s.rank == s.root ? s.sent.each : s.received.each;
  const subtree tree(s);
  const bool alone = tree.below == 1;
  int bit = 1;
  while (bit < s.size && (tree.v & bit) == 0) bit <<= 1;
  if (tree.v == 0) {
    to.copy(input(at(s.root) * bytes), scratch(), at(s.size - s.root) * bytes);
    if (s.root != 0) to.copy(input(), scratch(at(s.size - s.root) * bytes), at(s.root) * bytes);
  } else {
    to.recv(alone ? output() : scratch(), bytes * at(tree.below), (tree.v - bit + s.root) % s.size).round();
    if (alone) return;
  }
  for (int b = bit >> 1; b > 0; b >>= 1) {
    const int child = tree.v + b;
    if (child >= s.size) continue;
    send_in_turn(scratch(at(b) * bytes), bytes * at(std::min(b, s.size - child)), (child + s.root) % s.size, to);
  }
  to.copy(scratch(), output(), bytes);
}

}  // namespace rma::detail::coll::binomial
