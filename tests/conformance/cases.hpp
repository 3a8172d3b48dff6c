// SPDX-License-Identifier: Apache-2.0
/// \file
/// The cases, by topic: each file ends with its table.
#pragma once

#include <span>
#include <vector>

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
std::span<const test_case> handle_cases() noexcept;
std::span<const test_case> fence_cases() noexcept;
std::span<const test_case> pscw_cases() noexcept;
std::span<const test_case> lock_cases() noexcept;
std::span<const test_case> lock_protocol_cases() noexcept;
std::span<const test_case> signal_cases() noexcept;
std::span<const test_case> signal_layout_cases() noexcept;
std::span<const test_case> word_cases() noexcept;
std::span<const test_case> litmus_cases() noexcept;
std::span<const test_case> memory_model_cases() noexcept;
std::span<const test_case> message_cases() noexcept;
std::span<const test_case> p2p_cases() noexcept;
std::span<const test_case> p2p_data_cases() noexcept;
std::span<const test_case> misuse_cases() noexcept;
std::span<const test_case> number_cases() noexcept;
std::span<const test_case> try_cases() noexcept;
std::span<const test_case> epoch_misuse_cases() noexcept;
std::span<const test_case> error_text_cases() noexcept;
std::span<const test_case> failed_window_cases() noexcept;
std::span<const test_case> synchronization_cases() noexcept;
std::span<const test_case> thread_cases() noexcept;
std::span<const test_case> collective_cases() noexcept;
std::span<const test_case> collective_request_cases() noexcept;
std::span<const test_case> collective_ahead_cases() noexcept;
std::span<const test_case> collective_in_place_cases() noexcept;
std::span<const test_case> collective_bits_cases() noexcept;

/// Every topic that this program has, in order.
std::vector<std::span<const test_case>> all_topics();

}  // namespace conformance
