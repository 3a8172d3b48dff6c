// SPDX-License-Identifier: Apache-2.0
/// \file
/// A window's state of range locks: the table of this rank's part, and this rank's locks on other parts.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "window/range_table.hpp"

namespace rma::detail {

/// A range that this rank holds or waits for.
struct own_range {
  int target;
  range_entry entry;
};

struct range_state {
  range_table table{};                                ///< ranges of this rank's part; guarded by the progress lock
  std::unordered_map<std::uint32_t, bool> answers{};  ///< by ticket; guarded by the progress lock
  std::vector<own_range> held{};
  std::uint32_t last_ticket = 0;
};

}  // namespace rma::detail
