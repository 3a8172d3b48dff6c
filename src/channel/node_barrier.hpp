// SPDX-License-Identifier: Apache-2.0
/// \file
/// A barrier in memory that the ranks share.
///
///   2 ranks:  store the round in one of two own lines, wait for the other's   one line transfer each way
///   more:     add to a counter; the last rank stores the round and wakes the others
///
/// Both are reusable without reset: the words only grow. With two ranks the rounds alternate between a rank's lines, so
/// that no rank polls the line that is written next (docs/decisions/0023-stored-not-exchanged.md).
#pragma once

#include <cstdint>

#include "channel/context.hpp"
#include "rma/detail/word.hpp"

namespace rma::detail {

/// Each rank's part, zero at first.
struct barrier_lines {
  alignas(64) word64 arrival;  ///< with two ranks: odd rounds
  alignas(64) word64 release;  ///< with two ranks: even rounds
};

/// Decides whether a wait with too few cores spins first: if there are enough cores for the missing ranks, they may all
/// be running, and yielding to this core's other ranks would cost two switches for nothing. If the missing rank shared
/// this core after all, the next waits do not spin.
class last_ranks_spin {
 public:
  /// `cores`: the cores that the ranks share, if there are too few.
  template <class Ready>
  bool met(std::uint64_t missing, unsigned cores, const Ready& ready) noexcept {
    constexpr unsigned spins_for_last = 128;  // about as long as a switch
    constexpr unsigned waits_without = 32;
    if (missing >= cores) return false;
    if (without_spin_ > 0) {
      --without_spin_;
      return false;
    }
    for (unsigned i = 0; i < spins_for_last; ++i) {
      if (ready()) return true;
      spin_pause();
    }
    without_spin_ = waits_without;
    return false;
  }

 private:
  unsigned without_spin_ = 0;  ///< number of waits that do not spin
};

class node_barrier {
 public:
  node_barrier() = default;
  /// The lines of this rank, of member 0, and, if there are two members, of the other one.
  void attach(barrier_lines* mine, barrier_lines* first, barrier_lines* other, std::uint32_t size) noexcept {
    RMA_ASSERT(size != 0 && (size == 1 || (mine != nullptr && first != nullptr)));
    RMA_ASSERT(size != 2 || (other != nullptr && other != mine));
    mine_ = mine;
    first_ = first;
    other_ = other;
    size_ = size;
  }

  /// `ring_all()` wakes the other members; `failed()` reports whether one of them is lost.
  /// Memory: all accesses before the call happen before all accesses after it, on all members.
  template <class RingAll, class Failed>
  status arrive_and_wait(context& ctx, RingAll&& ring_all, Failed&& failed) noexcept {
    // A rank that gave up a round has arrived in it. A second arrival would count for the rank that is missing.
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
      const auto arrived = [&]() noexcept { return theirs.load() >= round; };
      return finish(arrived() ? status::done
                              : ctx.wait({.until = arrived, .fails_if = failed, .woken_by = wakes::memory}));
    }
    const std::uint64_t missing = round * size_ - (first_->arrival.fetch_add(1) + 1);
    if (missing == 0) {
      first_->release.publish(round);
      ring_all();
      return status::done;
    }
    const auto released = [&]() noexcept { return first_->release.load() >= round; };
    if (spin_for_last_.met(missing, ctx.cores(), released)) return status::done;
    return finish(ctx.wait({.until = released, .fails_if = failed, .woken_by = wakes::memory}));
  }

 private:
  status finish(status s) noexcept {
    if (s != status::done) [[unlikely]]
      broken_ = true;
    return s;
  }

  barrier_lines* mine_ = nullptr;
  barrier_lines* first_ = nullptr;
  barrier_lines* other_ = nullptr;
  std::uint32_t size_ = 1;
  std::uint64_t round_ = 0;
  last_ranks_spin spin_for_last_;
  bool broken_ = false;  ///< this rank has given up a round
};

}  // namespace rma::detail
