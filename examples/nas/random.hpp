// SPDX-License-Identifier: Apache-2.0
/// \file
/// The random numbers of the NAS parallel benchmarks (NAS report RNR-94-007, section 2.3): x' = a x mod 2^46, read as
/// x / 2^46. Any place of the sequence can be gone to directly, so that each rank makes its part.
#pragma once

#include <cstdint>

namespace nas {

class Random {
 public:
  static constexpr std::uint64_t multiplier = 1220703125;  // 5^13

  constexpr explicit Random(std::uint64_t seed = 314159265) noexcept : state_(seed) {}

  /// The next number, in (0, 1).
  constexpr double next() noexcept {
    state_ = multiplier * state_ & mask;
    return static_cast<double>(state_) * 0x1p-46;
  }
  /// Leaves out `count` numbers.
  constexpr void skip(std::uint64_t count) noexcept {
    for (std::uint64_t power = multiplier; count != 0; count >>= 1, power = power * power & mask) {
      if (count % 2 != 0) state_ = power * state_ & mask;
    }
  }

 private:
  static constexpr std::uint64_t mask = (std::uint64_t{1} << 46) - 1;  // products wrap at 2^64

  std::uint64_t state_;
};

}  // namespace nas
