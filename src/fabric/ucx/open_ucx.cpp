// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "fabric/ucx/networks.hpp"
#include "fabric/ucx/open.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

namespace rma::ucx {

std::string lacks() { return {}; }

bool has_network() noexcept {
  try {
    return may_have_network("/") && library(library::purpose::only_to_look).has_network();
  } catch (...) {
    return false;
  }
}

std::unique_ptr<fabric::network> start(int rank, int size, fabric::directory& peers, std::string& address) {
  auto made = std::make_unique<ucx_fabric>(rank, size);
  made->use(peers);
  address = made->address();
  return made;
}

std::string address_key(int rank) { return fmt::format("ucx/{}", rank); }

}  // namespace rma::ucx
