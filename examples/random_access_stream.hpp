// SPDX-License-Identifier: Apache-2.0
/// \file
/// The random numbers of HPCC RandomAccess, and who owns which word of the table.
///
/// The stream is x(k+1) = 2 x(k) over GF(2) modulo x^64 + x^2 + x + 1, the same as in the HPC Challenge benchmark,
/// so that the updates of a run do not depend on how many ranks share them.
#pragma once

#include <bit>
#include <cstdint>

namespace random_access {

using word = std::uint64_t;

/// Taps of the polynomial below x^64.
inline constexpr word polynomial = 7;
/// Numbers until the stream repeats.
inline constexpr std::int64_t period = 1317624576693539401;

constexpr word next(word x) noexcept { return (x << 1) ^ (static_cast<std::int64_t>(x) < 0 ? polynomial : 0); }

/// The number at position `n` of the stream, by doubling: HPCC's starts().
word starts(std::int64_t n) noexcept;

/// `total` things shared out to `ranks` ranks in order; the first `total % ranks` ranks have one more.
class Partition {
 public:
  struct Place {
    int rank;
    word offset;
  };

  constexpr Partition(word total, int ranks) noexcept
      : total_(total), least_(total / static_cast<word>(ranks)), longer_(total % static_cast<word>(ranks)) {
    // Divisions cost as much as an update: powers of two, the usual case, do without.
    if (std::has_single_bit(least_) && longer_ == 0) shift_ = std::countr_zero(least_);
  }

  [[nodiscard]] constexpr word total() const noexcept { return total_; }
  [[nodiscard]] constexpr word first(int rank) const noexcept {
    const word r = static_cast<word>(rank);
    return r * least_ + (r < longer_ ? r : longer_);
  }
  [[nodiscard]] constexpr word count(int rank) const noexcept {
    return least_ + (static_cast<word>(rank) < longer_ ? 1 : 0);
  }
  [[nodiscard]] constexpr Place locate(word index) const noexcept {
    if (shift_ >= 0) return {static_cast<int>(index >> shift_), index & (least_ - 1)};
    const word in_longer_parts = (least_ + 1) * longer_;
    if (index < in_longer_parts) return {static_cast<int>(index / (least_ + 1)), index % (least_ + 1)};
    return {static_cast<int>((index - longer_) / least_), (index - longer_) % least_};
  }

 private:
  word total_;
  word least_;   ///< words that every rank has
  word longer_;  ///< number of ranks that have one more
  int shift_ = -1;
};

static_assert(Partition(10, 4).first(3) == 8 && Partition(10, 4).count(1) == 3 && Partition(10, 4).count(3) == 2);
static_assert(Partition(10, 4).locate(6).rank == 2 && Partition(10, 4).locate(9).offset == 1);

/// The updates that one rank makes: a piece of the stream.
class Stream {
 public:
  Stream(word first, word count) noexcept : x_(starts(static_cast<std::int64_t>(first))), left_(count) {}

  [[nodiscard]] word left() const noexcept { return left_; }
  word draw() noexcept {
    --left_;
    return x_ = next(x_);
  }

 private:
  word x_;
  word left_;
};

}  // namespace random_access
