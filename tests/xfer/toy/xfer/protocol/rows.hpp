// SPDX-License-Identifier: Apache-2.0
/// \file
/// The production table with one row more.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>

#define protocol_rows production_rows
#include "src/xfer/protocol/rows.hpp"
#undef protocol_rows

namespace rma::detail {

extern const protocol toy_protocol;

inline constexpr auto protocol_rows = [] {
  std::array<const protocol*, std::size(production_rows) + 1> all{};
  *std::copy(std::begin(production_rows), std::end(production_rows), all.begin()) = &toy_protocol;
  return all;
}();

}  // namespace rma::detail
