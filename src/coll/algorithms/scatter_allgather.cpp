// SPDX-License-Identifier: Apache-2.0
/// \file
/// Broadcast of a large vector: a binomial scatter of its parts, then an allgather in a ring (van de Geijn). Twice the
/// bytes of a bare copy, whatever the number of ranks.
#include "coll/algorithms/builders.hpp"

#include <algorithm>

namespace rma::detail::coll::scatter_allgather {

void broadcast(const shape& s, Schedule& to) {
  const int v = (s.rank - s.root + s.size) % s.size;
  const auto real = [&](int relative) { return (relative + s.root) % s.size; };
  int bit = 1;
  while (bit < s.size && (v & bit) == 0) bit <<= 1;
  if (v != 0) {
    const part mine = part_of(s, s.size, v, std::min(v + bit, s.size));
    to.recv(output(mine.offset), mine.bytes, real(v - bit)).round();
  }
  for (int b = bit >> 1; b > 0; b >>= 1) {
    if (v + b >= s.size) continue;
    const part theirs = part_of(s, s.size, v + b, std::min(v + 2 * b, s.size));
    send_in_turn(output(theirs.offset), theirs.bytes, real(v + b), to);
  }
  to.round();
  // The parts of the subtree are here already: only the missing ones are received in the ring.
  const int have = v == 0 ? s.size : std::min(bit, s.size - v);
  const int next = (v + 1) % s.size;
  const int next_bit = next == 0 ? s.size : next & -next;
  const int next_has = next == 0 ? s.size : std::min(next_bit, s.size - next);
  for (int k = 0; k + 1 < s.size; ++k) {
    const int out = (v + s.size - k) % s.size;
    const int in = (out + s.size - 1) % s.size;
    const part given = part_of(s, s.size, out);
    const part taken = part_of(s, s.size, in);
    if (out < next || out >= next + next_has) to.send(output(given.offset), given.bytes, real(next));
    if (in < v || in >= v + have) to.recv(output(taken.offset), taken.bytes, real((v + s.size - 1) % s.size));
    to.round();
  }
}

}  // namespace rma::detail::coll::scatter_allgather
