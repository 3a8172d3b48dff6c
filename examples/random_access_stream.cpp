// SPDX-License-Identifier: Apache-2.0
#include "random_access_stream.hpp"

#include <array>

namespace random_access {

word starts(std::int64_t n) noexcept {
  n %= period;
  if (n < 0) n += period;
  if (n == 0) return 1;

  // squares[i] = x^(2i): what the term x^i of a polynomial contributes to its square.
  std::array<word, 64> squares{};
  word power = 1;
  for (word& square : squares) {
    square = power;
    power = next(next(power));
  }

  int bit = 62;
  while (((n >> bit) & 1) == 0) --bit;
  word x = 2;
  while (bit > 0) {
    word squared = 0;
    for (unsigned i = 0; i < 64; ++i) {
      if (((x >> i) & 1) != 0) squared ^= squares[i];
    }
    x = squared;
    --bit;
    if (((n >> bit) & 1) != 0) x = next(x);
  }
  return x;
}

}  // namespace random_access
