// SPDX-License-Identifier: Apache-2.0
/// \file
/// Circulant graphs: log2(n) rounds for any number of ranks, and no byte more than the ring sends.
///
///   reduce_scatter: R[i] is this rank's partial result for rank r + i. With s = n, and s' = s, s = ceil(s / 2):
///                   R[s .. s') is sent to rank r + s, which adds it to R[0 .. s' - s); at the end R[0] is done
///   allgather:      the same steps backwards: R[0 .. s' - s) is sent to rank r - s
///
/// Source: Traff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, 2024.
#include "coll/algorithms/builders.hpp"

#include <vector>

namespace rma::detail::coll::circulant {
namespace {

/// The starts of all R[i], which are consecutive: begins[i]; begins[n] is the end.
template <class Bytes>
std::vector<std::size_t> begins_of(const shape& s, Bytes&& bytes) {
  std::vector<std::size_t> begins(at(s.size) + 1);
  for (int i = 0; i < s.size; ++i) begins[at(i) + 1] = begins[at(i)] + bytes((s.rank + i) % s.size);
  return begins;
}

void reduce_rotated(const shape& s, const std::vector<std::size_t>& begins, Schedule& to) {
  const Schedule::Place spare = scratch(begins.back());
  for (int end = s.size; end > 1;) {
    const int skip = (end + 1) / 2;
    const std::size_t kept = begins[at(end - skip)];
    to.send(scratch(begins[at(skip)]), begins[at(end)] - begins[at(skip)], (s.rank + skip) % s.size);
    to.recv(spare, kept, (s.rank + s.size - skip) % s.size).round();
    to.combine(spare, scratch(), kept);
    end = skip;
  }
}

void gather_rotated(const shape& s, const std::vector<std::size_t>& begins, Schedule& to) {
  std::vector<int> ends;
  for (int end = s.size; end > 1; end = (end + 1) / 2) ends.push_back(end);
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const int skip = (*end + 1) / 2;
    to.send(scratch(), begins[at(*end - skip)], (s.rank + s.size - skip) % s.size);
    to.recv(scratch(begins[at(skip)]), begins[at(*end)] - begins[at(skip)], (s.rank + skip) % s.size).round();
  }
}

}  // namespace

void allgather(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  const auto begins = begins_of(s, [&](int r) { return b.size(r); });
  to.copy(input(), scratch(), b.size(s.rank));
  gather_rotated(s, begins, to);
  for (int i = 0; i < s.size; ++i) {
    const int r = (s.rank + i) % s.size;
    to.copy(scratch(begins[at(i)]), output(b.offset(r)), b.size(r));
  }
}

void reduce_scatter(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  const auto begins = begins_of(s, [&](int r) { return b.size(r); });
  for (int i = 0; i < s.size; ++i) {
    const int r = (s.rank + i) % s.size;
    to.copy(input(b.offset(r)), scratch(begins[at(i)]), b.size(r));
  }
  reduce_rotated(s, begins, to);
  to.copy(scratch(), output(), b.size(s.rank));
}

void allreduce(const shape& s, Schedule& to) {
  const auto begins = begins_of(s, [&](int r) { return part_of(s, s.size, r).bytes; });
  const part above = part_of(s, s.size, s.rank, s.size);  // the vector, rotated by two copies
  to.copy(input(above.offset), scratch(), above.bytes).copy(input(), scratch(above.bytes), above.offset);
  reduce_rotated(s, begins, to);
  gather_rotated(s, begins, to);
  to.copy(scratch(), output(above.offset), above.bytes).copy(scratch(above.bytes), output(), above.offset);
}

}  // namespace rma::detail::coll::circulant
