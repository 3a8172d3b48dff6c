// SPDX-License-Identifier: Apache-2.0
// Goal: what segment_map proposes is free, inside, aligned, at or above the wish, and the lowest such place.
// Method: small cases by hand; then random takes and gives against a map of single bytes.
#include "fabric/shm/segment.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

using namespace rma::shm;

TEST_CASE("an empty segment gives its beginning", "[fabric][shm][segment]") {
  const segment_map map(1 << 20);
  CHECK(map.size() == 1 << 20);
  CHECK(map.in_use() == 0);
  CHECK(map.propose(4096, 0, 4096) == 0U);
  CHECK(map.propose(1 << 20, 0, 4096) == 0U);
  CHECK_FALSE(map.propose((1 << 20) + 1, 0, 4096).has_value());
  CHECK(map.propose(4096, 1, 4096) == 4096U);
  CHECK_FALSE(map.propose(4096, 1 << 20, 4096).has_value());
  CHECK_FALSE(map.propose(~std::size_t{0}, 0, 4096).has_value());
}

TEST_CASE("a proposal takes nothing", "[fabric][shm][segment]") {
  segment_map map(1 << 20);
  CHECK(map.propose(8192, 0, 4096) == 0U);
  CHECK(map.propose(8192, 0, 4096) == 0U);
  REQUIRE(map.take(0, 8192));
  CHECK(map.in_use() == 8192);
  CHECK(map.propose(8192, 0, 4096) == 8192U);
  map.give_back(0);
  CHECK(map.in_use() == 0);
  CHECK(map.propose(8192, 0, 4096) == 0U);
}

TEST_CASE("a gap is used when it fits and skipped when not", "[fabric][shm][segment]") {
  segment_map map(64 << 10);
  REQUIRE(map.take(0, 4096));
  REQUIRE(map.take(12288, 4096));
  CHECK_FALSE(map.take(0, 4096));
  CHECK_FALSE(map.take(8192, 8192));
  CHECK(map.propose(8192, 0, 4096) == 4096U);
  CHECK(map.propose(8193, 0, 4096) == 16384U);
  CHECK(map.propose(8192, 0, 8192) == 16384U);  // aligned, the gap has only half
  CHECK(map.propose(4096, 0, 8192) == 8192U);
  CHECK(map.propose(4096, 8192, 4096) == 8192U);
  CHECK(map.propose(4096, 8193, 4096) == 16384U);
}

TEST_CASE("random takes and gives agree with a map of single bytes", "[fabric][shm][segment]") {
  constexpr std::size_t size = 512;
  std::mt19937 random(20240917);
  const auto below = [&random](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  segment_map map(size);
  std::vector<bool> used(size, false);
  std::map<std::size_t, std::size_t> pieces;
  for (int turn = 0; turn < 20000; ++turn) {
    CAPTURE(turn);
    if (!pieces.empty() && below(5) < 2) {
      const auto at = std::next(pieces.begin(), static_cast<std::ptrdiff_t>(below(pieces.size())));
      map.give_back(at->first);
      std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(at->first), at->second, false);
      pieces.erase(at);
      continue;
    }
    const std::size_t bytes = 1 + below(60);
    const std::size_t from = below(3) == 0 ? below(size) : 0;
    const std::size_t alignment = std::size_t{1} << below(6);
    std::optional<std::size_t> wanted;
    for (std::size_t at = (from + alignment - 1) / alignment * alignment; at + bytes <= size; at += alignment) {
      const auto first = used.begin() + static_cast<std::ptrdiff_t>(at);
      if (std::find(first, first + static_cast<std::ptrdiff_t>(bytes), true) !=
          first + static_cast<std::ptrdiff_t>(bytes))
        continue;
      wanted = at;
      break;
    }
    const auto found = map.propose(bytes, from, alignment);
    REQUIRE(found == wanted);
    if (!found) continue;
    REQUIRE(map.take(*found, bytes));
    pieces.emplace(*found, bytes);
    std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(*found), bytes, true);
    REQUIRE(map.in_use() == static_cast<std::size_t>(std::count(used.begin(), used.end(), true)));
  }
}
