// SPDX-License-Identifier: Apache-2.0
/// \file
/// Linear: one round in which all messages are sent directly to their destinations. The fewest rounds, the most
/// messages; scans are a chain. Operands that one rank combines are combined by the tree of `reproducible`.
///
///   rank 0   1   2   3
///        <---+---+---+     gather, reduce: n - 1 messages at the root
///        +-->--->--->      scatter, broadcast
#include "coll/algorithms/builders.hpp"

namespace rma::detail::coll::linear {

void barrier(const shape& s, Schedule& to) {
  if (s.rank == 0) {
    for (int r = 1; r < s.size; ++r) to.recv(scratch(), 0, r);
    to.round();
    for (int r = 1; r < s.size; ++r) to.send(scratch(), 0, r);
  } else {
    to.send(scratch(), 0, 0).recv(scratch(), 0, 0);
  }
}

void broadcast(const shape& s, Schedule& to) {
  if (s.rank != s.root) {
    to.recv(output(), s.bytes, s.root);
    return;
  }
  for (int r = 0; r < s.size; ++r) {
    if (r != s.root) to.send(output(), s.bytes, r);
  }
}

namespace {

/// Collects this rank's vector and all others' in rank order in scratch memory, in one round.
void collect(const shape& s, Schedule::Place own, std::size_t bytes, Schedule& to) {
  for (int r = 0; r < s.size; ++r) {
    if (r == s.rank) {
      to.copy(own, scratch(at(r) * bytes), bytes);
    } else {
      to.recv(scratch(at(r) * bytes), bytes, r);
    }
  }
}

}  // namespace

void reduce(const shape& s, Schedule& to) {
  if (s.rank != s.root) {
    to.send(input(), s.bytes, s.root);
    return;
  }
  collect(s, input(), s.bytes, to);
  to.round();
  combine_tree(scratch(), s.bytes, s.size, to);
  to.copy(scratch(), output(), s.bytes);
}

void allreduce(const shape& s, Schedule& to) {
  collect(s, input(), s.bytes, to);
  for (int i = 1; i < s.size; ++i) to.send(input(), s.bytes, (s.rank + i) % s.size);
  to.round();
  combine_tree(scratch(), s.bytes, s.size, to);
  to.copy(scratch(), output(), s.bytes);
}

void reduce_scatter(const shape& s, Schedule& to) {
  const std::size_t own = s.received.size(s.rank);
  collect(s, input(s.received.offset(s.rank)), own, to);
  for (int i = 1; i < s.size; ++i) {
    const int r = (s.rank + i) % s.size;
    to.send(input(s.received.offset(r)), s.received.size(r), r);
  }
  to.round();
  combine_tree(scratch(), own, s.size, to);
  to.copy(scratch(), output(), own);
}

void scan(const shape& s, Schedule& to) {
  to.copy(input(), output(), s.bytes);
  if (s.rank > 0) to.recv(scratch(), s.bytes, s.rank - 1).round().combine_before(scratch(), output(), s.bytes);
  if (s.rank + 1 < s.size) to.send(output(), s.bytes, s.rank + 1);
}

void exscan(const shape& s, Schedule& to) {
  to.copy(input(), scratch(), s.bytes).round();
  if (s.rank > 0) to.recv(output(), s.bytes, s.rank - 1).round().combine_before(output(), scratch(), s.bytes);
  if (s.rank + 1 < s.size) to.send(scratch(), s.bytes, s.rank + 1);
}

void gather(const shape& s, Schedule& to) {
  if (s.rank != s.root) {
    to.send(input(), s.sent.size(s.rank), s.root);
    return;
  }
  for (int r = 0; r < s.size; ++r) {
    const Schedule::Place part = output(s.received.offset(r));
    if (r == s.root) {
      to.copy(input(), part, s.received.size(r));
    } else {
      to.recv(part, s.received.size(r), r);
    }
  }
}

void scatter(const shape& s, Schedule& to) {
  if (s.rank != s.root) {
    to.recv(output(), s.received.size(s.rank), s.root);
    return;
  }
  for (int r = 0; r < s.size; ++r) {
    const Schedule::Place part = input(s.sent.offset(r));
    if (r == s.root) {
      to.copy(part, output(), s.sent.size(r));
    } else {
      to.send(part, s.sent.size(r), r);
    }
  }
}

void allgather(const shape& s, Schedule& to) {
  const blocks& b = s.received;
  for (int i = 1; i < s.size; ++i) {
    const int from = (s.rank + s.size - i) % s.size;
    to.recv(output(b.offset(from)), b.size(from), from);
  }
  for (int i = 1; i < s.size; ++i) to.send(input(), b.size(s.rank), (s.rank + i) % s.size);
  to.copy(input(), output(b.offset(s.rank)), b.size(s.rank));
}

void alltoall(const shape& s, Schedule& to) {
  const auto source = s.in_place ? scratch() : input();
  const blocks& sent = s.in_place ? s.received : s.sent;
  if (s.in_place) {
    for (int r = 0; r < s.size; ++r) to.copy(output(sent.offset(r)), source + sent.offset(r), sent.size(r));
  }
  for (int i = 1; i < s.size; ++i) {
    const int from = (s.rank + s.size - i) % s.size;
    to.recv(output(s.received.offset(from)), s.received.size(from), from);
  }
  for (int i = 1; i < s.size; ++i) {
    const int r = (s.rank + i) % s.size;
    to.send(source + sent.offset(r), sent.size(r), r);
  }
  to.copy(source + sent.offset(s.rank), output(s.received.offset(s.rank)), s.received.size(s.rank));
}

// A neighbor may be named several times, and this rank may be its own: messages of a pair match in order.
void neighbor_allgather(const shape& s, Schedule& to) {
  for (std::size_t i = 0; i < s.sources.size(); ++i) {
    const int index = static_cast<int>(i);
    to.recv(output(s.received.offset(index)), s.received.size(index), s.sources[i]);
  }
  for (const int r : s.targets) to.send(input(), s.bytes, r);
}

void neighbor_alltoall(const shape& s, Schedule& to) {
  for (std::size_t i = 0; i < s.sources.size(); ++i) {
    const int index = static_cast<int>(i);
    to.recv(output(s.received.offset(index)), s.received.size(index), s.sources[i]);
  }
  for (std::size_t i = 0; i < s.targets.size(); ++i) {
    const int index = static_cast<int>(i);
    to.send(input(s.sent.offset(index)), s.sent.size(index), s.targets[i]);
  }
}

}  // namespace rma::detail::coll::linear
