// SPDX-License-Identifier: Apache-2.0
/// \file
/// Breadth-first search, level by level. A rank tells the owners of the next vertices their level by accumulates (min),
/// which an Aggregator collects: few large messages instead of one for each edge.
///
/// \code
/// rmarun -n 4 12_bfs
/// rmarun -n 4 --nodes 2 12_bfs
/// \endcode

#include <cstdint>
#include <rma/rma.hpp>

#include <fmt/format.h>

namespace {

constexpr std::uint64_t vertices = 1 << 13;
constexpr std::uint64_t edges_of_vertex = 3;
constexpr std::uint32_t unreached = 1 << 30;

/// The graph, which every rank can compute: the `edge`-th successor of a vertex.
std::uint64_t successor(std::uint64_t vertex, std::uint64_t edge) {
  std::uint64_t x = (vertex * edges_of_vertex + edge + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  return (x ^ (x >> 31)) % vertices;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  const auto ranks = static_cast<std::uint64_t>(rt.size());
  const auto me = static_cast<std::uint64_t>(rt.rank());
  const auto owner = [&](std::uint64_t vertex) { return static_cast<int>(vertex % ranks); };
  const std::size_t mine = (vertices - me + ranks - 1) / ranks;

  auto levels = rma::Window<std::uint32_t>::allocate(world, mine);  // vertex v is at v / ranks of its owner
  for (std::size_t i = 0; i < mine; ++i) levels[i] = unreached;
  if (owner(0) == rt.rank()) levels[0] = 0;
  world.barrier();

  std::uint32_t level = 0;
  for (int found = 1; found != 0; ++level) {
    {
      rma::Aggregator next(levels);  // collective, and so is its end: then every update has been applied
      for (std::size_t i = 0; i < mine; ++i) {
        if (levels[i] != level) continue;
        for (std::uint64_t edge = 0; edge < edges_of_vertex; ++edge) {
          const std::uint64_t to = successor(i * ranks + me, edge);
          next.accumulate(level + 1, owner(to), to / ranks, rma::min);
        }
      }
    }
    world.barrier();  // nobody begins the next level before all have left this one
    found = 0;
    for (std::size_t i = 0; i < mine; ++i) found |= levels[i] == level + 1 ? 1 : 0;
    found = world.allreduce(found, rma::max);
  }

  std::uint64_t reached = 0, sum = 0;
  for (std::size_t i = 0; i < mine; ++i) {
    if (levels[i] == unreached) continue;
    ++reached;
    sum += levels[i];
  }
  reached = world.allreduce(reached, rma::sum);
  sum = world.allreduce(sum, rma::sum);
  if (rt.rank() == 0)
    fmt::print("{} of {} vertices reached in {} levels, {} edges away in all\n", reached, vertices, level - 1, sum);
  return 0;
}
