// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chain: a broadcast in segments; each rank forwards one while the next one arrives. n - 2 more rounds than segments.
#include "coll/algorithms/builders.hpp"

#include <algorithm>

namespace rma::detail::coll::chain {

void broadcast(const shape& s, Schedule& to) {
  constexpr std::size_t segment_bytes = 64 << 10;
  const int v = (s.rank - s.root + s.size) % s.size;
  const int next = (s.rank + 1) % s.size;
  const int previous = (s.rank + s.size - 1) % s.size;
  const std::size_t segments = std::max<std::size_t>((s.bytes + segment_bytes - 1) / segment_bytes, 1);
  const auto bytes = [&](std::size_t i) { return std::min(segment_bytes, s.bytes - i * segment_bytes); };
  for (std::size_t i = 0; i <= segments; ++i) {
    if (v != 0 && i < segments) to.recv(output(i * segment_bytes), bytes(i), previous);
    if (v + 1 < s.size && i > 0) to.send(output((i - 1) * segment_bytes), bytes(i - 1), next);
    to.round();
  }
}

}  // namespace rma::detail::coll::chain
