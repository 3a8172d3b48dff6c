// SPDX-License-Identifier: Apache-2.0
/// \file
/// A team of ranks whose schedules are interpreted: their buffers, and the sequential oracle of each call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "coll/algorithm.hpp"
#include "coll/interpreter.hpp"

namespace coll_test {

using namespace rma::detail::coll;
using rma::Schedule;
using bytes = std::vector<std::byte>;

/// 2 x 2 matrices modulo 65521: associative, and nothing like commutative.
struct matrix {
  std::array<std::uint32_t, 4> a{};
  friend matrix operator*(const matrix& x, const matrix& y) {
    constexpr std::uint64_t m = 65521;
    const auto dot = [&](std::size_t i, std::size_t j) {
      return static_cast<std::uint32_t>((x.a[i] % m * (y.a[j] % m) + x.a[i + 1] % m * (y.a[j + 2] % m)) % m);
    };
    return {{dot(0, 0), dot(0, 1), dot(2, 0), dot(2, 1)}};
  }
  bool operator==(const matrix&) const = default;
};

/// into = left op right, for whole elements of 16 bytes.
inline void multiply(const std::byte* left, const std::byte* right, std::byte* into, std::size_t count) {
  for (std::size_t i = 0; i + sizeof(matrix) <= count; i += sizeof(matrix)) {
    matrix l, r;
    std::memcpy(&l, left + i, sizeof l);
    std::memcpy(&r, right + i, sizeof r);
    const matrix result = l * r;
    std::memcpy(into + i, &result, sizeof result);
  }
}
/// The same as sums of bytes, which commute.
inline void add(const std::byte* left, const std::byte* right, std::byte* into, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    into[i] = static_cast<std::byte>(static_cast<unsigned>(left[i]) + static_cast<unsigned>(right[i]));
}

inline bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  bytes all(count);
  for (std::byte& b : all) b = static_cast<std::byte>(random());
  return all;
}

/// The data that each rank gives, and must have in the end.
struct problem {
  std::vector<shape> shapes;
  std::vector<bytes> inputs, outputs;  ///< outputs: before, then what is wanted
  std::vector<bytes> wanted;
  std::vector<bool> looked_at;
  bool ordered = false;
};

/// Runs it; the ranks' outputs are left in `outputs`. False if it does not end. `in_place(r)`: where the input begins
/// in the output, or -1.
inline bool run(problem& p, const algorithm& a, const std::function<std::ptrdiff_t(int)>& in_place, std::uint64_t seed,
                std::vector<Schedule>& schedules) {
  const std::size_t n = p.shapes.size();
  schedules.assign(n, {});
  std::vector<bytes> scratch(n);
  std::vector<std::array<std::byte*, 3>> base(n);
  for (std::size_t r = 0; r < n; ++r) {
    a.build(p.shapes[r], schedules[r]);
    scratch[r].assign(schedules[r].bytes_of(Schedule::Buffer::scratch), std::byte{0xee});
    const std::ptrdiff_t inside = in_place(static_cast<int>(r));
    if (inside >= 0 && !p.inputs[r].empty())
      std::memcpy(p.outputs[r].data() + inside, p.inputs[r].data(), p.inputs[r].size());
    base[r] = {inside >= 0 ? p.outputs[r].data() + inside : p.inputs[r].data(), p.outputs[r].data(), scratch[r].data()};
  }
  interpreter all(schedules, seed);
  return all.run(
      [&](const Schedule::Step& s, int from_rank, Schedule::Place from, int into_rank, Schedule::Place into) {
        if (s.bytes == 0) return;
        const std::byte* const source =
            base[static_cast<std::size_t>(from_rank)][static_cast<std::size_t>(from.buffer)] + from.offset;
        std::byte* const target =
            base[static_cast<std::size_t>(into_rank)][static_cast<std::size_t>(into.buffer)] + into.offset;
        const auto combine = p.ordered ? multiply : add;
        switch (s.action) {
          case Schedule::Action::combine: combine(target, source, target, s.bytes); break;
          case Schedule::Action::combine_before: combine(source, target, target, s.bytes); break;
          default: std::memmove(target, source, s.bytes); break;
        }
      });
}

}  // namespace coll_test
