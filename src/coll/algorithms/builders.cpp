// SPDX-License-Identifier: Apache-2.0
#include "coll/algorithms/builders.hpp"

#include <algorithm>
#include <numeric>

namespace rma::detail::coll {

group everybody(const shape& s) {
  group all;
  all.ranks.resize(at(s.size));
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  all.me = s.rank;
  return all;
}

part part_of(const shape& s, int parts, int first, int last) {
  const std::size_t elements = s.bytes / s.element_bytes;
  const std::size_t least = elements / at(parts);
  const std::size_t longer = elements % at(parts);  // the first ones have one element more
  const auto begin = [&](int i) { return (at(i) * least + std::min(at(i), longer)) * s.element_bytes; };
  return {begin(first), begin(last) - begin(first)};
}

// The children of v (relative to the root) are v + 2^k, for 2^k below v's lowest bit that is set.
void binomial_broadcast(const group& g, int root, Schedule::Place where, std::size_t bytes, Schedule& to) {
  const int v = (g.me - root + g.size()) % g.size();
  int bit = 1;
  while (bit < g.size() && (v & bit) == 0) bit <<= 1;
  if (v != 0) to.recv(where, bytes, g.rank((v - bit + root) % g.size())).round();
  for (int b = bit >> 1; b > 0; b >>= 1) {
    if (v + b < g.size()) send_in_turn(where, bytes, g.rank((v + b + root) % g.size()), to);
  }
  to.round();
}

void binomial_reduce(const group& g, int root, Schedule::Place own, Schedule::Place where, Schedule::Place spare,
                     std::size_t bytes, Schedule& to) {
  const int v = (g.me - root + g.size()) % g.size();
  bool begun = false;
  for (int bit = 1; bit < g.size(); bit <<= 1) {
    if ((v & bit) != 0) {
      to.send(begun ? where : own, bytes, g.rank((v - bit + root) % g.size())).round();
      return;
    }
    if (v + bit >= g.size()) continue;
    to.recv(spare, bytes, g.rank((v + bit + root) % g.size()));
    if (!begun) to.copy(own, where, bytes);
    begun = true;
    to.round().combine(spare, where, bytes);
  }
  if (!begun) to.copy(own, where, bytes);
}

void combine_tree(Schedule::Place first, std::size_t bytes, int count, Schedule& to) {
  for (int step = 1; step < count; step <<= 1) {
    for (int i = 0; i + step < count; i += 2 * step)
      to.combine(first + at(i + step) * bytes, first + at(i) * bytes, bytes);
  }
}

folded::folded(const shape& s) noexcept
    : power(static_cast<int>(std::bit_floor(static_cast<unsigned>(s.size)))), rest(s.size - power) {
  if (s.rank >= 2 * rest) {
    me = s.rank - rest;
  } else if (s.rank % 2 != 0) {
    me = s.rank / 2;
  }
}

void fold(const shape& s, const folded& f, Schedule::Place where, Schedule::Place spare, Schedule& to) {
  if (s.rank >= 2 * f.rest) return;
  if (f.me < 0) {
    to.send(where, s.bytes, s.rank + 1).round();
  } else {
    to.recv(spare, s.bytes, s.rank - 1).round().combine_before(spare, where, s.bytes);
  }
}

void unfold(const shape& s, const folded& f, Schedule::Place where, Schedule& to) {
  if (s.rank >= 2 * f.rest) return;
  if (f.me < 0) {
    to.recv(where, s.bytes, s.rank + 1).round();
  } else {
    to.send(where, s.bytes, s.rank - 1).round();
  }
}

}  // namespace rma::detail::coll
