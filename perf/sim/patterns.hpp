// SPDX-License-Identifier: Apache-2.0
/// \file
/// Communication patterns by name, for the simulator: what each rank does.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "rma/sim_pattern.hpp"

namespace perf {

/// The parameters that the patterns have in common.
struct pattern_choice {
  int ranks = 32;
  std::int64_t bytes = 65536;  ///< length of a put
  int messages = 10;           ///< puts of a rank, or rounds
  std::uint64_t seed = 1;
  bool wait_first = false;  ///< ring: the ranks wait before they put, all of them
};

using pattern_main = std::function<void(rma::sim::PatternRank&)>;

struct named_pattern {
  std::string_view name;
  std::string_view what;
  pattern_main (*make)(const pattern_choice& chosen);
};

/// All but recorded ones.
const std::vector<named_pattern>& named_patterns();
/// Null if there is none of that name.
const named_pattern* find_pattern(std::string_view name);

/// The sides of a box of that many ranks, as near to a cube as they go; the longest first.
struct box {
  int x = 1, y = 1, z = 1;
};
box box_of(int ranks);

/// A random order of 0 ... count - 1.
std::vector<int> permutation(int count, std::uint64_t seed);

}  // namespace perf
