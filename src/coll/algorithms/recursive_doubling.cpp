// SPDX-License-Identifier: Apache-2.0
/// \file
/// Recursive doubling: in round k each rank exchanges all data it has with the rank whose number differs in bit k.
///
///   0 <-> 1   2 <-> 3        round 0
///   0 <----> 2, 1 <----> 3   round 1
///
/// Both partners combine the lower one's part before the higher one's: this gives the same bits everywhere, in rank
/// order.
#include "coll/algorithms/builders.hpp"

#include <algorithm>

namespace rma::detail::coll::recursive_doubling {

void barrier(const shape& s, Schedule& to) {
  shape nothing = s;
  nothing.bytes = 0;
  allreduce(nothing, to);
}

void allreduce(const shape& s, Schedule& to) {
  const folded f(s);
  to.copy(input(), output(), s.bytes);
  fold(s, f, output(), scratch(), to);
  for (int bit = 1; f.me >= 0 && bit < f.power; bit <<= 1) {
    const int partner = f.me ^ bit;
    to.send(output(), s.bytes, f.rank_of(partner)).recv(scratch(), s.bytes, f.rank_of(partner)).round();
    if (partner < f.me) {
      to.combine_before(scratch(), output(), s.bytes);
    } else {
      to.combine(scratch(), output(), s.bytes);
    }
  }
  unfold(s, f, output(), to);
}

namespace {

/// Scratch memory holds the combined operands of the ranks that have reached this one, and the last received one.
void prefix(const shape& s, bool with_own, Schedule& to) {
  const Schedule::Place all = scratch();
  const Schedule::Place spare = scratch(s.bytes);
  to.copy(input(), all, s.bytes);
  if (with_own) to.copy(input(), output(), s.bytes);
  bool begun = with_own;
  for (int bit = 1; bit < s.size; bit <<= 1) {
    const int partner = s.rank ^ bit;
    if (partner >= s.size) continue;
    to.send(all, s.bytes, partner).recv(spare, s.bytes, partner).round();
    if (partner > s.rank) {
      to.combine(spare, all, s.bytes);
      continue;
    }
    if (begun) {
      to.combine_before(spare, output(), s.bytes);
    } else {
      to.copy(spare, output(), s.bytes);
    }
    begun = true;
    to.combine_before(spare, all, s.bytes);
  }
}

}  // namespace

void scan(const shape& s, Schedule& to) { prefix(s, true, to); }
void exscan(const shape& s, Schedule& to) { prefix(s, false, to); }

// For a power of two only. Blocks of different sizes are sent one by one unless they are contiguous.
void allgather(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  to.copy(input(), output(b.offset(s.rank)), b.size(s.rank));
  for (int bit = 1; bit < s.size; bit <<= 1) {
    const int partner = s.rank ^ bit;
    const int mine = s.rank & -bit;
    const int theirs = partner & -bit;
    if (b.regular()) {
      to.send(output(b.offset(mine)), at(bit) * b.each, partner);
      to.recv(output(b.offset(theirs)), at(bit) * b.each, partner);
    } else {
      for (int i = 0; i < bit; ++i) {
        to.send(output(b.offset(mine + i)), b.size(mine + i), partner);
        to.recv(output(b.offset(theirs + i)), b.size(theirs + i), partner);
      }
    }
    to.round();
  }
}

}  // namespace rma::detail::coll::recursive_doubling
