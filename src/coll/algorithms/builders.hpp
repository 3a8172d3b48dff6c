// SPDX-License-Identifier: Apache-2.0
/// \file
/// Building blocks that several algorithms share: groups of ranks, parts of vectors, and trees.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "coll/algorithm.hpp"

namespace rma::detail::coll {

/// Some members, by their ranks in the team; this rank is one of them.
struct group {
  std::vector<int> ranks;
  int me = 0;  ///< index
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks.size()); }
  [[nodiscard]] int rank(int index) const noexcept { return ranks[static_cast<std::size_t>(index)]; }
};
[[nodiscard]] group everybody(const shape& s);

struct part {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};
/// Parts [first, last) of a vector that is cut between elements into `parts` of almost the same size.
[[nodiscard]] part part_of(const shape& s, int parts, int first, int last);
[[nodiscard]] inline part part_of(const shape& s, int parts, int index) { return part_of(s, parts, index, index + 1); }

/// Messages of that many bytes that a rank sends together share its link, and each arrives when all of them do.
/// Children in a tree are served one after the other, so that the first ones forward while the last ones wait.
inline constexpr std::size_t one_by_one_bytes = 16 * 1024;
inline void send_in_turn(Schedule::Place from, std::size_t bytes, int child, Schedule& to) {
  to.send(from, bytes, child);
  if (bytes >= one_by_one_bytes) to.round();
}

/// The binomial tree over a group, from or to the member with index `root`. The reduction starts with the operand in
/// `own`, accumulates in `at` (a rank that only sends leaves `own` unchanged) and receives into `spare`.
void binomial_broadcast(const group& g, int root, Schedule::Place at, std::size_t bytes, Schedule& to);
void binomial_reduce(const group& g, int root, Schedule::Place own, Schedule::Place at, Schedule::Place spare,
                     std::size_t bytes, Schedule& to);

/// Combines `count` consecutive vectors at `first` into the first of them. This is the tree of `reproducible`: block i
/// of 2^k ranks is combined with the block after it, for k = 0, 1, ..., as in binomial_reduce to index 0.
void combine_tree(Schedule::Place first, std::size_t bytes, int count, Schedule& to);

/// Ranks beyond a power of two stand aside: of the first 2 * rest ranks the even ones send their operands to their
/// neighbors, and get the result in the end.
struct folded {
  int power = 1;  ///< ranks that take part
  int rest = 0;
  int me = -1;  ///< number among those; -1: stands aside
  explicit folded(const shape& s) noexcept;
  [[nodiscard]] int rank_of(int number) const noexcept { return number < rest ? 2 * number + 1 : number + rest; }
};
/// Ranks that stand aside send `at`; the others combine it, before their own operand.
void fold(const shape& s, const folded& f, Schedule::Place at, Schedule::Place spare, Schedule& to);
void unfold(const shape& s, const folded& f, Schedule::Place at, Schedule& to);

[[nodiscard]] inline int log2_ceil(int n) noexcept {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
}
[[nodiscard]] inline std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

namespace linear {
void barrier(const shape& s, Schedule& to);
void broadcast(const shape& s, Schedule& to);
void reduce(const shape& s, Schedule& to);
void allreduce(const shape& s, Schedule& to);
void reduce_scatter(const shape& s, Schedule& to);
void scan(const shape& s, Schedule& to);
void exscan(const shape& s, Schedule& to);
void gather(const shape& s, Schedule& to);
void scatter(const shape& s, Schedule& to);
void allgather(const shape& s, Schedule& to);
void alltoall(const shape& s, Schedule& to);
void neighbor_allgather(const shape& s, Schedule& to);
void neighbor_alltoall(const shape& s, Schedule& to);
}  // namespace linear
namespace binomial {
void barrier(const shape& s, Schedule& to);
void broadcast(const shape& s, Schedule& to);
void reduce(const shape& s, Schedule& to);
void allreduce(const shape& s, Schedule& to);
void gather(const shape& s, Schedule& to);
void scatter(const shape& s, Schedule& to);
}  // namespace binomial
namespace recursive_doubling {
void barrier(const shape& s, Schedule& to);
void allreduce(const shape& s, Schedule& to);
void scan(const shape& s, Schedule& to);
void exscan(const shape& s, Schedule& to);
void allgather(const shape& s, Schedule& to);
}  // namespace recursive_doubling
namespace dissemination {
void barrier(const shape& s, Schedule& to);
/// The same by signals instead of messages.
void signals(const shape& s, Schedule& to);
}  // namespace dissemination
namespace bruck {
void allgather(const shape& s, Schedule& to);
void alltoall(const shape& s, Schedule& to);
}  // namespace bruck
namespace ring {
void allgather(const shape& s, Schedule& to);
void allreduce(const shape& s, Schedule& to);
void reduce_scatter(const shape& s, Schedule& to);
}  // namespace ring
namespace pairwise {
void alltoall(const shape& s, Schedule& to);
void reduce_scatter(const shape& s, Schedule& to);
}  // namespace pairwise
namespace rabenseifner {
void reduce(const shape& s, Schedule& to);
void allreduce(const shape& s, Schedule& to);
}  // namespace rabenseifner
namespace recursive_halving {
void reduce_scatter(const shape& s, Schedule& to);
}
namespace circulant {
void allgather(const shape& s, Schedule& to);
void reduce_scatter(const shape& s, Schedule& to);
void allreduce(const shape& s, Schedule& to);
}  // namespace circulant
namespace scatter_allgather {
void broadcast(const shape& s, Schedule& to);
}
namespace chain {
void broadcast(const shape& s, Schedule& to);
}
namespace hierarchical {
void barrier(const shape& s, Schedule& to);
void broadcast(const shape& s, Schedule& to);
void reduce(const shape& s, Schedule& to);
void allreduce(const shape& s, Schedule& to);
}  // namespace hierarchical
namespace one_sided {
inline constexpr std::string_view name = "one-sided";
/// The name of the schedule that has the puts, for this shape.
[[nodiscard]] std::string_view schedule_of(const shape& s) noexcept;
void any(const shape& s, Schedule& to);
[[nodiscard]] effort estimate(const shape& s) noexcept;
}  // namespace one_sided

}  // namespace rma::detail::coll
