// SPDX-License-Identifier: Apache-2.0
/// \file
/// The way into the UCX fabric that is there however the library was built.
#pragma once

#include <memory>
#include <string>

#include "fabric/fabric.hpp"

namespace rma::ucx {

/// Why this build has no UCX; empty if it has. Costs nothing: UCX itself is started by `start`.
std::string lacks();
/// Whether UCX may use a network besides TCP here. Opens UCX for a moment if the machine has the devices of one; false
/// if it does not open.
bool has_network() noexcept;
/// Makes the fabric, which asks `peers` where the others are. What these need to find this rank comes out in `address`.
/// Throws Error(unreachable).
std::unique_ptr<fabric::network> start(int rank, int size, fabric::directory& peers, std::string& address);
/// The key of the job's store under which a rank's address stands.
std::string address_key(int rank);

}  // namespace rma::ucx
