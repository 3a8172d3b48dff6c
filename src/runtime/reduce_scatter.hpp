// SPDX-License-Identifier: Apache-2.0
/// \file
/// A reduce-scatter of sums that a window's fences run again and again: one schedule of src/coll, which is kept.
///
///   each round:  sums for the ranks [k, 2k) ahead --> to (rank + k); from (rank - k) --> added;  k = 2^i, ..., 2, 1
///
/// At the end the first value is the sum for this rank. No rank completes before all have begun.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rma/error.hpp"

namespace rma::detail {

namespace coll {
class running;
class team_state;
}  // namespace coll

struct team_core;

class reduce_scatter {
 public:
  /// `id`: the same at all members, and of no other object of the team. The team must outlive it.
  reduce_scatter(team_core& team, std::uint64_t id);
  reduce_scatter(const reduce_scatter&) = delete;
  reduce_scatter& operator=(const reduce_scatter&) = delete;
  ~reduce_scatter();

  /// values()[j] is for the member j ahead of this one; when the run has ended, values()[0] is the result. They must
  /// not be accessed in between.
  [[nodiscard]] std::span<std::uint32_t> values() noexcept { return values_; }
  /// `turn`: its number, the same at all members, used once and not 0. The last run must have ended.
  void start(std::uint64_t turn) noexcept;
  /// `not_yet`, or the result of the run; any progress moves it.
  [[nodiscard]] status state() const noexcept;
  /// Ends the run, if it has not ended.
  void give_up(status why) noexcept;

 private:
  std::vector<std::uint32_t> values_;
  std::unique_ptr<coll::team_state> state_;
  coll::running* run_;
};

}  // namespace rma::detail
