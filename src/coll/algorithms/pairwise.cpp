// SPDX-License-Identifier: Apache-2.0
/// \file
/// Pairwise exchange: in round k each rank sends to the rank k above and receives from the one k below: one message
/// each way at a time, no rank is ever the target of two.
#include "coll/algorithms/builders.hpp"

namespace rma::detail::coll::pairwise {

void alltoall(const shape& s, Schedule& to) {
  const auto source = s.in_place ? scratch() : input();
  const blocks& sent = s.in_place ? s.received : s.sent;
  if (s.in_place) {
    for (int r = 0; r < s.size; ++r) to.copy(output(sent.offset(r)), source + sent.offset(r), sent.size(r));
    to.round();
  }
  const auto own = [&] {
    to.copy(source + sent.offset(s.rank), output(s.received.offset(s.rank)), s.received.size(s.rank));
  };
  if (s.size == 1) own();
  for (int k = 1; k < s.size; ++k) {
    const int above = (s.rank + k) % s.size;
    const int below = (s.rank + s.size - k) % s.size;
    to.recv(output(s.received.offset(below)), s.received.size(below), below);
    to.send(source + sent.offset(above), sent.size(above), above);
    if (k == 1) own();  // while the first messages are in transit
    to.round();
  }
}

// The parts of this rank's block from all members are kept, and combined by the tree of `reproducible` at the end.
void reduce_scatter(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  const std::size_t own = b.size(s.rank);
  to.copy(input(b.offset(s.rank)), scratch(at(s.rank) * own), own);
  for (int k = 1; k < s.size; ++k) {
    const int above = (s.rank + k) % s.size;
    const int below = (s.rank + s.size - k) % s.size;
    to.recv(scratch(at(below) * own), own, below).send(input(b.offset(above)), b.size(above), above).round();
  }
  combine_tree(scratch(), own, s.size, to);
  to.copy(scratch(), output(), own);
}

}  // namespace rma::detail::coll::pairwise
