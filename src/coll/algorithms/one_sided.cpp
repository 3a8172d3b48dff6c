// SPDX-License-Identifier: Apache-2.0
/// \file
/// One-sided collectives: schedules with fixed partners whose messages are puts with a signal into landing memory
/// (put_channels.hpp), for fabrics that write without the target's processor. A put costs its copies at both ends, and
/// needs neither matching nor a rendezvous: short data go in the fewest rounds, long ones with the fewest bytes.
///
///                    few ranks and bytes | short vectors | long ones
///   barrier          dissemination
///   broadcast        binomial
///   reduce           linear              | binomial
///   allreduce        linear              | recursive doubling, or binomial where the tree is fixed | Rabenseifner
///   reduce_scatter   linear              | pairwise
///   allgather        linear              | Bruck         | ring
///   alltoall         linear              | pairwise
///   scan, exscan     recursive doubling, or linear where they are a chain
///   gather, scatter  linear
#include "coll/algorithms/builders.hpp"

namespace rma::detail::coll::one_sided {
namespace {

constexpr std::size_t short_bytes = 16 * 1024;    ///< limit of a short vector, or of all blocks
constexpr std::size_t at_once_bytes = 64 * 1024;  ///< limit of one rank's link, in a round with all others
constexpr int ranks_at_once = 16;
constexpr int ranks_of_exchange = 64;  ///< blocks for all others in one round fill the links

std::size_t bytes_of_blocks(const blocks& b, int count) noexcept {
  std::size_t bytes = 0;
  for (int r = 0; r < count; ++r) bytes += b.size(r);
  return bytes;
}

/// True if messages between all ranks at once cost less than more rounds with fewer messages.
bool at_once(const shape& s) noexcept {
  if (s.size > ranks_at_once) return false;
  const bool vectors = s.what == call::reduce || s.what == call::allreduce;
  return (vectors ? s.bytes * at(s.size) : bytes_of_blocks(s.received, s.size)) <= at_once_bytes;
}

}  // namespace

std::string_view schedule_of(const shape& s) noexcept {
  switch (s.what) {
    case call::barrier: return "dissemination";
    case call::reduce: return at_once(s) ? "linear" : "binomial";
    case call::allreduce:
      if (at_once(s)) return "linear";
      if (s.bytes > short_bytes && s.any_order()) return "rabenseifner";
      return s.reproducible && !s.power_of_two() ? "binomial" : "recursive-doubling";
    case call::reduce_scatter: return at_once(s) ? "linear" : "pairwise";
    case call::scan:
    case call::exscan: return s.inexact || s.reproducible ? "linear" : "recursive-doubling";
    case call::gather:
    case call::scatter: return "linear";
    case call::allgather:
      if (at_once(s)) return "linear";
      return bytes_of_blocks(s.received, s.size) <= short_bytes ? "bruck" : "ring";
    case call::alltoall: return s.size <= ranks_of_exchange ? "linear" : "pairwise";
    default: return "binomial";
  }
}

void any(const shape& s, Schedule& to) { find_algorithm(s.what, schedule_of(s))->build(s, to); }

effort estimate(const shape& s) noexcept { return find_algorithm(s.what, schedule_of(s))->estimate(s); }

}  // namespace rma::detail::coll::one_sided
