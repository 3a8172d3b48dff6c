// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string_view>

#include "rma/operation.hpp"

namespace rma {

std::string_view name_of(operation op) noexcept {
  static constexpr std::array<std::string_view, operation_count> names = {"sum",     "prod",  "min",    "max",   "land",
                                                                          "lor",     "lxor",  "band",   "bor",   "bxor",
                                                                          "replace", "no_op", "minloc", "maxloc"};
  const auto index = static_cast<std::size_t>(op);
  return index < names.size() ? names[index] : "unknown operation";
}

std::string_view name_of(element e) noexcept {
  static constexpr std::array<std::string_view, element_count> names = {
      "i8",      "i16",     "i32",     "i64",      "u8",      "u16",     "u32",     "u64",
      "f32",     "f64",     "c32",     "c64",      "f128",    "c128",    "i16_i32", "i32_i32",
      "i64_i32", "f32_i32", "f64_i32", "f128_i32", "i64_i64", "f64_i64", "f32_f32", "f64_f64"};
  const auto index = static_cast<std::size_t>(e);
  return index < names.size() ? names[index] : "unknown element";
}

}  // namespace rma
