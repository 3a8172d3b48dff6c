// SPDX-License-Identifier: Apache-2.0
/// \file
/// exit() of a simulated rank ends that rank, not the process in which all of them live.
#pragma once

#include "fabric/sim/world.hpp"

namespace rma::simulator {

/// From here on, exit() and _Exit() called by a rank of this job end the rank. Null: they are the system's again.
void take_exits_of(sim::world* job) noexcept;

}  // namespace rma::simulator
