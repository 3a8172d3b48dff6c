// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace rma::ucx {

/// True if the system has a device of a network that UCX may use besides TCP: of the kernel's RDMA subsystem
/// (InfiniBand, RoCE, Omni-Path, EFA) or Cray's. UCX is not loaded. `root` is the root of the file system.
bool may_have_network(const std::filesystem::path& root);

}  // namespace rma::ucx
