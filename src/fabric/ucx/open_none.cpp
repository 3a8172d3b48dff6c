// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "fabric/ucx/open.hpp"
#include "rma/error.hpp"

namespace rma::ucx {

std::string lacks() { return "this library was built without UCX (libucx-dev was not there)"; }

bool has_network() noexcept { return false; }

std::unique_ptr<fabric::network> start(int, int, fabric::directory&, std::string&) {
  throw Error(status::unreachable, lacks());
}

std::string address_key(int rank) { return fmt::format("ucx/{}", rank); }

}  // namespace rma::ucx
