// SPDX-License-Identifier: Apache-2.0
/// \file
/// Configures the runtime of a simulated rank.
#pragma once

#include <string_view>

#include "fabric/sim/handle.hpp"
#include "rma/config.hpp"

namespace rma::sim {

/// The configuration for a handle's rank, with the settings of its job. Throws Error(bad_boot).
rma::Config config_of(std::string_view handle);

}  // namespace rma::sim
