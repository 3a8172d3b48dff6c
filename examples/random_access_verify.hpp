// SPDX-License-Identifier: Apache-2.0
/// \file
/// HPCC's check: make all updates once more, safely; what does not hold its index again is an error.
#pragma once

#include <chrono>
#include <rma/rma.hpp>
#include <string_view>

#include "random_access_table.hpp"

namespace random_access {

/// The way in which the updates are made once more.
enum class Verification {
  replay,  ///< each rank its own, by atomic accumulates: HPCC's way
  local,   ///< each rank those of all ranks that hit its part, by plain stores: owes nothing to the library
  none,
};

inline constexpr std::string_view verification_names[] = {"replay", "local", "none"};

struct Verdict {
  word wrong = 0;    ///< words, in the whole table
  word allowed = 0;  ///< how many there may be
  std::chrono::nanoseconds time{};
  [[nodiscard]] bool passed() const noexcept { return wrong <= allowed; }
};

/// Collective. `updates` says which of them each rank made.
Verdict verify(rma::Runtime& rt, Table& table, Variant variant, const Partition& updates, Verification how);

}  // namespace random_access
