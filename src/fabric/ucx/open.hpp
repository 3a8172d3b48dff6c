// SPDX-License-Identifier: Apache-2.0
/// \file
/// The entry points of the UCX fabric, present with or without UCX.
#pragma once

#include <memory>
#include <string>

#include "fabric/fabric.hpp"

namespace rma::ucx {

/// The reason why this build has no UCX; empty if it has. The call is cheap: `start` loads UCX.
std::string lacks();
/// True if UCX may use a network besides TCP here. Opens UCX temporarily if the machine has such devices; false if UCX
/// cannot be opened.
bool has_network() noexcept;
/// Makes the fabric, which looks up the others in `peers`. Sets `address` to the text that others need to connect to
/// this rank. Throws Error(unreachable).
std::unique_ptr<fabric::network> start(int rank, int size, fabric::directory& peers, std::string& address);
/// The key of a rank's address in the job's store.
std::string address_key(int rank);

}  // namespace rma::ucx
