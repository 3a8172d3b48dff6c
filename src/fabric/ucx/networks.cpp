// SPDX-License-Identifier: Apache-2.0
#include "fabric/ucx/networks.hpp"

#include <system_error>

namespace rma::ucx {

bool may_have_network(const std::filesystem::path& root) {
  std::error_code none;
  const std::filesystem::directory_iterator rdma(root / "sys/class/infiniband", none);
  const bool has_rdma = !none && rdma != std::filesystem::directory_iterator();
  return has_rdma || std::filesystem::exists(root / "dev/kgni0", none);
}

}  // namespace rma::ucx
