// SPDX-License-Identifier: Apache-2.0
/// \file
/// The ranks agree before a window is made: that it can be, and that all want the same one.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/settings.hpp"
#include "rma/detail/window_ops.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail {

/// Each rank says these of the window that it wants, and all must say alike.
enum class alike : std::uint8_t { kind, unit, signals, accumulate, granularity, lock, fence, count_ };

/// All ranks need to know this of each other before anything is allocated.
struct agreement {
  std::uint64_t bytes_max = 0;
  std::uint64_t bytes_sum = 0;
  std::uint64_t mapped_max = 0;
  status worst = status::done;
  alike differs = alike::count_;  ///< the first of these that does
};

fence_kind wished_fence(const settings& config, const Hints& hints);
/// The same of layouts.
layout_scheme wished_layout(const settings& config, const Hints& hints);
/// Checks what this rank can say by itself, and how many bytes it needs.
status check_plan(const team_core& team, const window_plan& plan, const Hints& hints, std::uint64_t& bytes) noexcept;
/// Collective. `mine`: what check_plan said.
agreement agree(team_core& team, const window_plan& plan, const Hints& hints, std::uint64_t bytes, status mine);
/// Throws what they could not agree on.
void raise_plan(const team_core& team, const window_plan& plan, const Hints& hints, const agreement& all);
[[noreturn]] void reject(const window_plan& plan, const Hints& hints, status code, const std::string& why);

}  // namespace rma::detail
