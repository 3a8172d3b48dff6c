// SPDX-License-Identifier: Apache-2.0
// The topics of litmus_without_fence.
#include "cases.hpp"

namespace conformance {

std::vector<std::span<const test_case>> all_topics() { return {litmus_cases()}; }

}  // namespace conformance
