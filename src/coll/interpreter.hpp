// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs the schedules of all ranks of a team in one process, in an order drawn from a seed: the checker's engine, and
/// what tests compare with the sequential oracle.
///
/// A round ends when each of its sends has been matched with its receive: nothing is buffered between ranks, as with
/// the slowest rendezvous. A schedule that completes here completes on every transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rma/schedule.hpp"

namespace rma::detail::coll {

class interpreter {
 public:
  /// Moves `bytes` of the step from one rank's place to another's (the same rank's, for local steps).
  using effect = std::function<void(const Schedule::Step& step, int from_rank, Schedule::Place from, int into_rank,
                                    Schedule::Place into)>;

  interpreter(std::span<const Schedule> ranks, std::uint64_t seed) : ranks_(ranks), random_(seed) {}

  /// Returns true if all ranks have completed; otherwise `stuck` describes the position of each.
  bool run(const effect& apply);
  [[nodiscard]] const std::vector<std::string>& stuck() const noexcept { return stuck_; }

 private:
  struct message {
    std::size_t step;
    bool met = false;
  };
  struct state {
    std::size_t first = 0;  ///< first step of the round
    std::size_t next = 0;   ///< first step that has not begun
    std::vector<message> open{};
    std::vector<int> signals{};  ///< signals that have arrived and were not waited for, by rank
    [[nodiscard]] bool over(const Schedule& s) const noexcept { return next == s.steps().size() && open.empty(); }
  };
  bool move(std::size_t rank, const effect& apply);
  bool meet(std::size_t rank, message& mine, const effect& apply);
  void begin(std::size_t rank, const effect& apply);
  std::string where(std::size_t rank) const;

  std::span<const Schedule> ranks_;
  std::mt19937_64 random_;
  std::vector<state> states_;
  std::vector<std::string> stuck_;
};

}  // namespace rma::detail::coll
