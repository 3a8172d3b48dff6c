// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rabenseifner: a reduce-scatter by recursive halving, then an allgather by recursive doubling or a gather to the
/// root. 2 log2(n) rounds, and each rank sends little more than the vector twice. Operands are not combined in rank
/// order.
///
///   halving:   with the partner n/2 away half of the vector, with the one n/4 away a quarter, ...
///   doubling:  the same partners, in reverse order
///
/// Source: Rabenseifner, Optimization of Collective Reduction Operations, 2004.
#include "coll/algorithms/builders.hpp"

namespace rma::detail::coll {
namespace rabenseifner {
namespace {

/// Afterwards, rank number f.me has part f.me of the result in the output.
void halve(const shape& s, const folded& f, Schedule::Place vector, Schedule& to) {
  int first = 0;
  for (int half = f.power / 2; half > 0; half /= 2) {
    const int partner = f.me ^ half;
    const bool upper = (f.me & half) != 0;
    const part kept = part_of(s, f.power, first + (upper ? half : 0), first + (upper ? 2 * half : half));
    const part given = part_of(s, f.power, first + (upper ? 0 : half), first + (upper ? half : 2 * half));
    to.send(vector + given.offset, given.bytes, f.rank_of(partner));
    to.recv(scratch(kept.offset), kept.bytes, f.rank_of(partner)).round();
    if (partner < f.me) {
      to.combine_before(scratch(kept.offset), vector + kept.offset, kept.bytes);
    } else {
      to.combine(scratch(kept.offset), vector + kept.offset, kept.bytes);
    }
    if (upper) first += half;
  }
}

}  // namespace

void allreduce(const shape& s, Schedule& to) {
  const folded f(s);
  to.copy(input(), output(), s.bytes);
  fold(s, f, output(), scratch(), to);
  if (f.me >= 0) {
    halve(s, f, output(), to);
    for (int bit = 1; bit < f.power; bit <<= 1) {
      const int partner = f.me ^ bit;
      const part mine = part_of(s, f.power, f.me & -bit, (f.me & -bit) + bit);
      const part theirs = part_of(s, f.power, partner & -bit, (partner & -bit) + bit);
      to.send(output(mine.offset), mine.bytes, f.rank_of(partner));
      to.recv(output(theirs.offset), theirs.bytes, f.rank_of(partner)).round();
    }
  }
  unfold(s, f, output(), to);
}

// A root that stands aside gets the result from its neighbor.
void reduce(const shape& s, Schedule& to) {
  const folded f(s);
  const bool root_aside = s.root < 2 * f.rest && s.root % 2 == 0;
  const int top = root_aside ? s.root / 2 : s.root < 2 * f.rest ? s.root / 2 : s.root - f.rest;
  const Schedule::Place vector = s.rank == s.root ? output() : scratch(s.bytes);
  to.copy(input(), vector, s.bytes);
  fold(s, f, vector, scratch(), to);
  if (f.me >= 0) {
    halve(s, f, vector, to);
    for (int bit = 1; bit < f.power; bit <<= 1) {
      const int partner = f.me ^ bit;
      const part mine = part_of(s, f.power, f.me & -bit, (f.me & -bit) + bit);
      const part theirs = part_of(s, f.power, partner & -bit, (partner & -bit) + bit);
      if (((f.me ^ top) & bit) != 0) {
        to.send(vector + mine.offset, mine.bytes, f.rank_of(partner)).round();
        break;
      }
      to.recv(vector + theirs.offset, theirs.bytes, f.rank_of(partner)).round();
    }
  }
  if (!root_aside) return;
  if (s.rank == s.root + 1) to.send(vector, s.bytes, s.root);
  if (s.rank == s.root) to.recv(output(), s.bytes, s.root + 1);
}

}  // namespace rabenseifner

namespace recursive_halving {

// For consecutive blocks and a power of two of ranks.
void reduce_scatter(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  const auto begin = [&](int r) { return r == s.size ? b.offset(r - 1) + b.size(r - 1) : b.offset(r); };
  const std::size_t all = begin(s.size);
  const Schedule::Place vector = scratch(all);
  to.copy(input(), vector, all);
  int first = 0;
  for (int half = s.size / 2; half > 0; half /= 2) {
    const int partner = s.rank ^ half;
    const bool upper = (s.rank & half) != 0;
    const int kept = first + (upper ? half : 0);
    const int given = first + (upper ? 0 : half);
    to.send(vector + begin(given), begin(given + half) - begin(given), partner);
    to.recv(scratch(begin(kept)), begin(kept + half) - begin(kept), partner).round();
    if (partner < s.rank) {
      to.combine_before(scratch(begin(kept)), vector + begin(kept), begin(kept + half) - begin(kept));
    } else {
      to.combine(scratch(begin(kept)), vector + begin(kept), begin(kept + half) - begin(kept));
    }
    first = kept;
  }
  to.copy(vector + begin(s.rank), output(), b.size(s.rank));
}

}  // namespace recursive_halving
}  // namespace rma::detail::coll
