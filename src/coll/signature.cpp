// SPDX-License-Identifier: Apache-2.0
#include "coll/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "coll/shape.hpp"

namespace rma::detail::coll {

std::int32_t signature_of(const collective_call& c) noexcept {
  constexpr int root_bits = 18;
  const int root = std::min(c.root, (1 << root_bits) - 1);
  const int op = c.combines ? c.user ? 15 : static_cast<int>(c.op) : 0;
  const int type = c.combines ? static_cast<int>(c.type) & 31 : 0;
  return ((static_cast<int>(c.what) << 4 | op) << 5 | type) << root_bits | root;
}

std::string text_of_signature(std::int32_t signature) {
  const int root = signature & ((1 << 18) - 1);
  const auto type = static_cast<element>(signature >> 18 & 31);
  const int op = signature >> 23 & 15;
  const auto what = static_cast<call>(signature >> 27);
  std::string text(what < call::count_ ? name_of(what) : "something else");
  const bool combines = what == call::reduce || what == call::allreduce || what == call::reduce_scatter ||
                        what == call::scan || what == call::exscan;
  if (combines && op == 15) text += " (its own operator)";
  if (combines && op < static_cast<int>(operation_count))
    text += fmt::format(" ({} of {})", rma::name_of(static_cast<operation>(op)), rma::name_of(type));
  const bool rooted = what == call::broadcast || what == call::reduce || what == call::gather || what == call::scatter;
  if (rooted) text += fmt::format(" with root {}", root);
  return text;
}

std::string text_of_place(const std::source_location& where) {
  if (where.line() == 0) return "a try_ form";
  const std::string_view path = where.file_name();
  return fmt::format("{}:{}", path.substr(path.rfind('/') + 1), where.line());
}

}  // namespace rma::detail::coll
