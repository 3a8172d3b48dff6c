// SPDX-License-Identifier: Apache-2.0
/// \file
/// The protocols that carry out operations, for people: what RMA_TRACE names, and what RMA_LAYOUT can ask for.
#pragma once

#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace rma {

/// One line for each protocol of the library's table: its name, what asks for it, whether the target takes part.
///
/// Shape      local
/// Errors     none but lack of memory
/// Threads    any
[[nodiscard]] std::vector<std::string> protocols();

}  // namespace rma

#pragma GCC visibility pop
