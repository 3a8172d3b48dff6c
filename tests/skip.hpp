// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a test case says that it cannot run here: `return rma::test::skip("needs two nodes");`
#pragma once

#include <string_view>

namespace rma::test {

/// Counts the running test case as skipped and prints why. A program whose test cases were all skipped exits
/// with 77, which ctest reports as skipped. Call it from the main thread and return from the test case.
void skip(std::string_view why);

}  // namespace rma::test
