// SPDX-License-Identifier: Apache-2.0
/// \file
/// Dissemination: in round k each rank sends to the rank 2^k above it. Any number of ranks, log2(n) rounds.
/// Source: Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, 1988.
#include "coll/algorithms/builders.hpp"

namespace rma::detail::coll::dissemination {

void barrier(const shape& s, Schedule& to) {
  for (int distance = 1; distance < s.size; distance <<= 1) {
    to.send(scratch(), 0, (s.rank + distance) % s.size).recv(scratch(), 0, (s.rank + s.size - distance) % s.size);
    to.round();
  }
}

void signals(const shape& s, Schedule& to) {
  for (int distance = 1; distance < s.size; distance <<= 1) {
    to.put_signal(scratch(), scratch(), 0, (s.rank + distance) % s.size);
    to.wait_signal((s.rank + s.size - distance) % s.size).round();
  }
}

}  // namespace rma::detail::coll::dissemination
