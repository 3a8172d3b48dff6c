// SPDX-License-Identifier: Apache-2.0
/// \file
/// The cases, by topic: each file ends with its table.
#pragma once

#include <array>
#include <span>

#include "suite.hpp"

namespace conformance {

std::span<const test_case> runtime_cases() noexcept;
std::span<const test_case> team_cases() noexcept;
std::span<const test_case> window_cases() noexcept;
std::span<const test_case> dynamic_cases() noexcept;
std::span<const test_case> put_get_cases() noexcept;
std::span<const test_case> layout_cases() noexcept;
std::span<const test_case> huge_cases() noexcept;
std::span<const test_case> operator_cases() noexcept;
std::span<const test_case> atomic_cases() noexcept;
std::span<const test_case> request_cases() noexcept;
std::span<const test_case> fence_cases() noexcept;
std::span<const test_case> pscw_cases() noexcept;
std::span<const test_case> lock_cases() noexcept;
std::span<const test_case> signal_cases() noexcept;
std::span<const test_case> litmus_cases() noexcept;
std::span<const test_case> misuse_cases() noexcept;
std::span<const test_case> epoch_misuse_cases() noexcept;
std::span<const test_case> failed_window_cases() noexcept;

inline std::array<std::span<const test_case>, 18> all_topics() noexcept {
  return {runtime_cases(), team_cases(),         window_cases(),       dynamic_cases(), put_get_cases(),
          layout_cases(),  huge_cases(),         operator_cases(),     atomic_cases(),  request_cases(),
          fence_cases(),   pscw_cases(),         lock_cases(),         signal_cases(),  litmus_cases(),
          misuse_cases(),  epoch_misuse_cases(), failed_window_cases()};
}

}  // namespace conformance
