// SPDX-License-Identifier: Apache-2.0
/// \file
/// A barrier in memory that the ranks share.
///
///   2 ranks:  store my round in one of my two lines, wait for the other's     one line transfer each way
///   more:     add to a counter; the last one stores the round and wakes everybody
///
/// Both are reusable without reset: the words only grow. Of two ranks the rounds use a rank's lines by turns: nobody
/// looks at the one that is written next (docs/decisions/0023-stored-not-exchanged.md).
#pragma once

#include <cstdint>

#include "channel/context.hpp"
#include "rma/detail/word.hpp"

namespace rma::detail {

/// Each rank's part, zero at first.
struct barrier_lines {
  alignas(64) word64 arrival;  ///< of two ranks: odd rounds
  alignas(64) word64 release;  ///< even rounds
};

class node_barrier {
 public:
  node_barrier() = default;
  /// The lines of this rank, of member 0, and, if there are two members, of the other one.
  void attach(barrier_lines* mine, barrier_lines* first, barrier_lines* other, std::uint32_t size) noexcept {
    mine_ = mine;
    first_ = first;
    other_ = other;
    size_ = size;
  }

  /// `ring_all()` wakes the other members; `failed()` says whether one of them is lost.
  /// Memory: everything before the call happens before everything after it, on all members.
  template <class RingAll, class Failed>
  status arrive_and_wait(context& ctx, RingAll&& ring_all, Failed&& failed) noexcept {
    // Who gave up a round has arrived in it. To arrive again would stand in for the rank that is missing.
    if (broken_) [[unlikely]] {
      if (const status s = failed(); s != status::done) return s;
    }
    const std::uint64_t round = ++round_;
    if (size_ == 1) {
      full_fence();
      return status::done;
    }
    if (size_ == 2) {
      const auto word_of = [round](barrier_lines& l) noexcept -> word64& {
        return round % 2 == 0 ? l.release : l.arrival;
      };
      word_of(*mine_).publish(round);
      ring_all();
      word64& theirs = word_of(*other_);
      return settle(ctx.wait_until([&]() noexcept { return theirs.load() >= round; }, failed));
    }
    const std::uint64_t missing = round * size_ - (first_->arrival.fetch_add(1) + 1);
    if (missing == 0) {
      first_->release.publish(round);
      ring_all();
      return status::done;
    }
    return settle(ctx.wait_for_ranks(
        missing, vain_spins_, [&]() noexcept { return first_->release.load() >= round; }, failed));
  }

 private:
  status settle(status s) noexcept {
    if (s != status::done) [[unlikely]]
      broken_ = true;
    return s;
  }

  barrier_lines* mine_ = nullptr;
  barrier_lines* first_ = nullptr;
  barrier_lines* other_ = nullptr;
  std::uint32_t size_ = 1;
  std::uint64_t round_ = 0;
  unsigned vain_spins_ = 0;  ///< see context::wait_for_ranks
  bool broken_ = false;      ///< this rank has given up a round
};

}  // namespace rma::detail
