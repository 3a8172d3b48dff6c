// SPDX-License-Identifier: Apache-2.0
/// \file
/// A handle names the simulated job of a rank: the text `sim://WORLD-RANK-CHECK` in the place of an address of the boot
/// layer. It is valid only in the process that made it.
#pragma once

#include <string>
#include <string_view>

#include "fabric/sim/world.hpp"

namespace rma::sim {

inline constexpr std::string_view handle_prefix = "sim://";
/// The argument that the launcher adds to a program's command line; the program's runtime removes it.
inline constexpr std::string_view handle_argument = "--rma-sim=";

struct handle {
  world* job = nullptr;
  int rank = 0;
};

std::string make_handle(world& job, int rank);

/// Throws Error(bad_boot) for text that make_handle has not made here. Exported for rma-sim, as are the functions of
/// world, topology and report that it calls.
[[gnu::visibility("default")]] handle parse_handle(std::string_view text);

}  // namespace rma::sim
