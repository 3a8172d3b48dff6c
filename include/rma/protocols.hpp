// SPDX-License-Identifier: Apache-2.0
/// \file
/// A readable list of the protocols that carry out operations: the names in RMA_TRACE and the values of RMA_LAYOUT.
#pragma once

#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace rma {

/// One line for each protocol: its name, the setting that selects it, and whether the target takes part.
///
/// Shape      local
/// Errors     none, except std::bad_alloc
/// Threads    any
[[nodiscard]] std::vector<std::string> protocols();

}  // namespace rma

#pragma GCC visibility pop
