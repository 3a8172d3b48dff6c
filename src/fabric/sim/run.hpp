// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the runtime of a simulated rank is started.
#pragma once

#include <string_view>

#include "fabric/sim/handle.hpp"
#include "rma/config.hpp"

namespace rma::sim {

/// Reads what a handle says, with the settings of its job. Throws Error(bad_boot).
rma::Config config_of(std::string_view handle);

}  // namespace rma::sim
