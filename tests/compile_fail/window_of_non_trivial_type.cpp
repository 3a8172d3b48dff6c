// SPDX-License-Identifier: Apache-2.0
// A window's elements travel as bytes, so their type must be trivially copyable.
// expected-error: trivially.copyable
#include <cstdint>
#include <string>

#include "rma/window.hpp"

using fine = rma::Window<std::uint64_t>;
static_assert(sizeof(fine) > 0);

#ifdef RMA_COMPILE_FAIL
using refused = rma::Window<std::string>;
static_assert(sizeof(refused) > 0);
#endif
