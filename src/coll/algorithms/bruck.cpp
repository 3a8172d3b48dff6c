// SPDX-License-Identifier: Apache-2.0
/// \file
/// Bruck: log2(n) rounds for any number of ranks, at the cost of a rotation before or after.
///
///   allgather: round k sends all blocks that are present to the rank 2^k below
///   alltoall:  round k sends the blocks whose distance (target - source) has bit k to the rank 2^k above
///
/// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for all-to-all communications, 1997.
#include "coll/algorithms/builders.hpp"

#include <algorithm>
#include <vector>

namespace rma::detail::coll::bruck {

void allgather(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  std::vector<std::size_t> begins(at(s.size) + 1);  // begin of block (rank + i) % size, in scratch memory
  for (int i = 0; i < s.size; ++i) begins[at(i) + 1] = begins[at(i)] + b.size((s.rank + i) % s.size);
  to.copy(input(), scratch(), b.size(s.rank));
  for (int have = 1; have < s.size; have <<= 1) {
    const int more = std::min(have, s.size - have);
    const int below = (s.rank + s.size - have) % s.size;
    const int above = (s.rank + have) % s.size;
    to.send(scratch(), begins[at(more)], below);
    to.recv(scratch(begins[at(have)]), begins[at(have + more)] - begins[at(have)], above);
    to.round();
  }
  for (int i = 0; i < s.size; ++i) {
    const int r = (s.rank + i) % s.size;
    to.copy(scratch(begins[at(i)]), output(b.offset(r)), b.size(r));
  }
}

namespace {

/// Calls `run(first, count)` for each sequence of blocks whose numbers have this bit.
template <class Run>
void runs_with(int bit, int size, Run&& run) {
  for (int first = bit; first < size; first += 2 * bit) run(first, std::min(bit, size - first));
}

}  // namespace

void alltoall(const shape& s, Schedule& to) {
  const std::size_t bytes = s.received.each;
  const std::size_t all = at(s.size) * bytes;
  const auto source = s.in_place ? output() : input();
  to.copy(source + at(s.rank) * bytes, scratch(), at(s.size - s.rank) * bytes);
  if (s.rank != 0) to.copy(source, scratch(at(s.size - s.rank) * bytes), at(s.rank) * bytes);
  const Schedule::Place out = scratch(all);
  const Schedule::Place in = scratch(2 * all);
  for (int bit = 1; bit < s.size; bit <<= 1) {
    std::size_t packed = 0;
    runs_with(bit, s.size, [&](int first, int count) {
      to.copy(scratch(at(first) * bytes), out + packed, at(count) * bytes);
      packed += at(count) * bytes;
    });
    to.send(out, packed, (s.rank + bit) % s.size).recv(in, packed, (s.rank + s.size - bit) % s.size).round();
    packed = 0;
    runs_with(bit, s.size, [&](int first, int count) {
      to.copy(in + packed, scratch(at(first) * bytes), at(count) * bytes);
      packed += at(count) * bytes;
    });
  }
  for (int i = 0; i < s.size; ++i)
    to.copy(scratch(at(i) * bytes), output(at((s.rank + s.size - i) % s.size) * bytes), bytes);
}

}  // namespace rma::detail::coll::bruck
