// SPDX-License-Identifier: Apache-2.0
/// \file
/// Named sets of ranks, as text: `NAME=RANKS;NAME=RANKS`, where RANKS are numbers and ranges, as in io=0-3,5.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rma::boot {

/// How the names of the library's own sets begin.
inline constexpr std::string_view own_sets = "rma://";

struct process_set {
  std::string name;
  std::vector<int> ranks;  ///< ascending, each once
};

/// Reads what `text` says of a job of `size` ranks. Throws Error(bad_setting) that says which part makes no sense.
std::vector<process_set> parse_process_sets(std::string_view text, int size);

}  // namespace rma::boot
