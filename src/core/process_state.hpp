// SPDX-License-Identifier: Apache-2.0
/// \file
/// Texts about ranks and their processes, for reports.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rma::detail {

/// "rank 0", "ranks 0-3, 7"; ascending.
std::string names_of_ranks(const std::vector<int>& ranks);

/// "stopped by a signal" or "stopped by a debugger"; empty if it runs, or if the system does not say.
std::string why_stopped(pid_t pid);

}  // namespace rma::detail
