// SPDX-License-Identifier: Apache-2.0
/// \file
/// Combines the elements of two operands, in the order of their ranks.
#pragma once

#include <cstddef>

#include "rma/detail/collective_call.hpp"

namespace rma::detail::coll {

[[nodiscard]] inline std::size_t element_bytes_of(const collective_operands& c) noexcept {
  return c.user ? c.user.element_bytes() : c.combines ? bytes_of(c.type) : 1;
}
[[nodiscard]] inline bool commutes(const collective_operands& c) noexcept {
  return c.user ? c.user.commutes() : c.op != operation::replace && c.op != operation::no_op;
}
/// True if the bits of the result depend on the tree by which operands are combined.
[[nodiscard]] inline bool inexact(const collective_operands& c) noexcept {
  const bool floating = c.type >= element::f32 && !is_pair(c.type);
  return c.combines && !c.user && floating && (c.op == operation::sum || c.op == operation::prod);
}
/// True if the result depends on the order: of zeros with different signs, and of NaNs, the first one is the result.
[[nodiscard]] inline bool depends_on_order(const collective_operands& c) noexcept {
  const bool selects = c.op == operation::min || c.op == operation::max || is_pair(c.type);
  return selects && c.type >= element::f32;
}
/// into = into op from, or from op into.
void combine_elements(const collective_operands& c, void* into, const void* from, std::size_t bytes,
                      bool from_is_left) noexcept;

}  // namespace rma::detail::coll
