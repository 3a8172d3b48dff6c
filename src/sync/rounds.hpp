// SPDX-License-Identifier: Apache-2.0
/// \file
/// Small collectives in rounds, for fences: O(log ranks) messages of each rank, any number of ranks. Step by step, so
/// that a request can stand for them.
///
///   each round:  send to (rank + k) --> receive from (rank - k) --> next k
///
///   barrier         k = 1, 2, 4, ... below the number of ranks; dissemination
///   reduce_scatter  k = the largest power of two below it, ..., 2, 1: sums for the ranks [k, 2k) ahead of the
///                   sender travel k ahead; what is left in the end is the sum for oneself. No rank ends before
///                   all have begun.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "channel/dissemination.hpp"
#include "rma/error.hpp"

namespace rma::detail {

struct team_core;

class rounds {
 public:
  void begin_barrier(team_core& team, dissemination::barrier_state& barrier_state) noexcept;
  /// `id` and `turn` name this collective among all: the same on all ranks, used once. `sums[j]`: for the rank j ahead
  /// of this one; as many as there are ranks. `sums[0]` is the result.
  void begin_reduce_scatter(team_core& team, std::uint64_t id, std::uint64_t turn,
                            std::span<std::uint32_t> sums) noexcept;
  /// `not_yet` or `done`.
  status advance(team_core& team) noexcept;
  /// The rank of the team that this one waits for.
  [[nodiscard]] int from(const team_core& team) const noexcept;

 private:
  [[nodiscard]] unsigned round() const noexcept { return static_cast<unsigned>(std::countr_zero(distance_)); }
  [[nodiscard]] std::span<std::uint32_t> part(std::uint32_t first) const noexcept;
  void send(team_core& team) noexcept;

  dissemination::barrier_state* circle_ = nullptr;  ///< of a barrier
  std::uint64_t id_ = 0;
  std::uint64_t turn_ = 0;
  std::uint32_t distance_ = 0;
  bool sent_ = false;
  bool over_ = true;
  std::span<std::uint32_t> sums_;
  std::vector<std::uint32_t> other_;  ///< what comes
};

}  // namespace rma::detail
