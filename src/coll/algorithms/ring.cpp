// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ring: n - 1 rounds with the neighbors only; each byte crosses each link once. For large vectors.
///
///   reduce_scatter: block b starts at rank b + 1 and arrives at rank b with all members' parts
///   allgather:      each block is sent once around
#include "coll/algorithms/builders.hpp"

#include <algorithm>

namespace rma::detail::coll::ring {
namespace {

/// Sends all blocks around the ring; block b lies at `part(b)` and has `bytes(b)`.
template <class Place, class Bytes>
void pass_around(const shape& s, Place&& part, Bytes&& bytes, Schedule& to) {
  const int next = (s.rank + 1) % s.size;
  const int previous = (s.rank + s.size - 1) % s.size;
  for (int k = 0; k + 1 < s.size; ++k) {
    const int out = (s.rank + s.size - k) % s.size;
    const int in = (out + s.size - 1) % s.size;
    to.send(part(out), bytes(out), next).recv(part(in), bytes(in), previous).round();
  }
}

/// Reduces the blocks around the ring: rank r adds `own(b)` to block b; the result of its own block ends in `result`.
template <class Own, class Bytes>
void reduce_around(const shape& s, Own&& own, Bytes&& bytes, Schedule::Place result, std::size_t longest,
                   Schedule::Place spare, Schedule& to) {
  const int next = (s.rank + 1) % s.size;
  const int previous = (s.rank + s.size - 1) % s.size;
  Schedule::Place out = own(previous);
  for (int k = 1; k < s.size; ++k) {
    const int sent = (s.rank + s.size - k) % s.size;
    const int received = (sent + s.size - 1) % s.size;
    const Schedule::Place in = k + 1 == s.size ? result : spare + at(k % 2) * longest;
    to.send(out, bytes(sent), next).recv(in, bytes(received), previous).round();
    to.combine(own(received), in, bytes(received));
    out = in;
  }
}

}  // namespace

void allgather(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  to.copy(input(), output(b.offset(s.rank)), b.size(s.rank));
  pass_around(
      s, [&](int r) { return output(b.offset(r)); }, [&](int r) { return b.size(r); }, to);
}

void reduce_scatter(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  std::size_t longest = 0;
  for (int r = 0; r < s.size; ++r) longest = std::max(longest, b.size(r));
  if (s.size == 1) to.copy(input(b.offset(0)), output(), b.size(0));
  // In place the result would overwrite operands that are still to be sent: it waits in scratch memory.
  const Schedule::Place result = s.in_place ? scratch(2 * longest) : output();
  reduce_around(
      s, [&](int r) { return input(b.offset(r)); }, [&](int r) { return b.size(r); }, result, longest, scratch(), to);
  if (s.in_place && s.size > 1) to.copy(result, output(), b.size(s.rank));
}

void allreduce(const shape& s, Schedule& to) {
  const std::size_t longest = part_of(s, s.size, 0).bytes;
  const auto bytes = [&](int r) { return part_of(s, s.size, r).bytes; };
  const auto offset = [&](int r) { return part_of(s, s.size, r).offset; };
  if (s.size == 1) to.copy(input(), output(), s.bytes);
  const Schedule::Place result = scratch(2 * longest);
  reduce_around(
      s, [&](int r) { return input(offset(r)); }, bytes, result, longest, scratch(), to);
  if (s.size > 1) to.copy(result, output(offset(s.rank)), bytes(s.rank));
  pass_around(
      s, [&](int r) { return output(offset(r)); }, bytes, to);
}

}  // namespace rma::detail::coll::ring
