// SPDX-License-Identifier: Apache-2.0
// Goal: every operator and element type has its own name; unknown values have one too.
#include <catch2/catch.hpp>
#include <set>
#include <string_view>

#include "rma/operation.hpp"

using namespace rma;

TEST_CASE("names of operators and elements", "[datatype][names]") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < operation_count; ++i) names.insert(name_of(static_cast<operation>(i)));
  for (std::size_t i = 0; i < element_count; ++i) names.insert(name_of(static_cast<element>(i)));
  CHECK(names.size() == operation_count + element_count);
  CHECK(name_of(operation::bxor) == "bxor");
  CHECK(name_of(element::c64) == "c64");
  CHECK(name_of(static_cast<operation>(200)) == "unknown operation");
  CHECK(name_of(static_cast<element>(200)) == "unknown element");
}
