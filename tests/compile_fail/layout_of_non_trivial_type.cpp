// SPDX-License-Identifier: Apache-2.0
// A layout's elements travel as bytes.
// expected-error: trivially copyable
#include <cstddef>
#include <string>

#include "rma/layout.hpp"

std::size_t fine() { return rma::Layout::contiguous<float>(3).bytes(); }

#ifdef RMA_COMPILE_FAIL
std::size_t refused() { return rma::Layout::contiguous<std::string>(3).bytes(); }
#endif
