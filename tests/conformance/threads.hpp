// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks as threads of this process, each with a runtime of its own: how the thread sanitizer sees all of them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rma {
class Runtime;
}

namespace conformance {

/// Runs `rank_main` on `ranks` threads, each with its own Runtime of one job, and returns the greatest result. An
/// exception of a rank is printed and counts as 1.
int run_as_threads(int ranks, const std::vector<std::pair<std::string, std::string>>& settings,
                   const std::function<int(rma::Runtime&)>& rank_main);

}  // namespace conformance
