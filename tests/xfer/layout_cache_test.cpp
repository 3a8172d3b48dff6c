// SPDX-License-Identifier: Apache-2.0
// Goal: the numbers of layouts at both ends of a cache. A number stands for one layout; both ends are bounded by number
// and by bytes; a layout that was evicted stays known to its origin while a message that names it is not handled.
// Method: the two caches alone. Break: reuse numbers; evict while messages wait; forget what was evicted at once.
#include "xfer/layout_cache.hpp"

#include <catch2/catch.hpp>

namespace {

using rma::Layout;
using rma::detail::layout_names;
using rma::detail::layout_table;

Layout layout_of(std::size_t i) { return Layout::vector<int>(2, 1, static_cast<std::ptrdiff_t>(i) + 2); }

}  // namespace

TEST_CASE("a number stands for one layout", "[xfer][cache]") {
  layout_names names(4);
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(names.find(layout_of(i)) == 0);
    const std::uint32_t number = names.add(layout_of(i), 10, 0, 0);
    CHECK(number > last);
    last = number;
    CHECK(names.find(layout_of(i)) == number);
  }
  CHECK(names.find(layout_of(16)) != 0);
  CHECK(names.find(layout_of(15)) == 0);
}

TEST_CASE("an evicted layout is known until the last message that names it is handled", "[xfer][cache]") {
  layout_names names(2);
  const std::uint32_t first = names.add(layout_of(0), 10, 0, 0);
  (void)names.add(layout_of(1), 10, 3, 0);
  (void)names.add(layout_of(2), 10, 5, 0);  // evicts the first, which message 5 may name
  CHECK(names.find(layout_of(0)) == 0);
  REQUIRE(names.find_number(first) != nullptr);
  CHECK(*names.find_number(first) == layout_of(0));
  (void)names.add(layout_of(3), 10, 6, 4);
  CHECK(names.find_number(first) != nullptr);
  (void)names.add(layout_of(4), 10, 6, 5);
  CHECK(names.find_number(first) == nullptr);
}

TEST_CASE("without a cache each use has a number of its own", "[xfer][cache]") {
  layout_names names(0);
  const std::uint32_t first = names.add(layout_of(0), 10, 0, 0);
  CHECK(names.find(layout_of(0)) == 0);
  CHECK(names.add(layout_of(0), 10, 1, 0) != first);
  CHECK(names.find_number(first) != nullptr);
}

TEST_CASE("descriptions are bounded by their bytes, but the last one is kept", "[xfer][cache]") {
  layout_names names(1000);
  constexpr std::size_t third = (std::size_t{256} << 10) / 3;
  for (std::size_t i = 0; i < 4; ++i) (void)names.add(layout_of(i), third, 0, 0);
  CHECK(names.find(layout_of(0)) == 0);
  CHECK(names.find(layout_of(1)) != 0);
  (void)names.add(layout_of(9), std::size_t{1} << 30, 0, 0);
  CHECK(names.find(layout_of(9)) != 0);
  CHECK(names.find(layout_of(1)) == 0);
  CHECK(names.find(layout_of(3)) == 0);

  layout_table table(1000);
  constexpr std::size_t half = std::size_t{2} << 20;
  for (std::uint32_t i = 1; i <= 3; ++i) table.add(0, i, layout_of(i), half, true);
  CHECK(table.find(0, 1) == nullptr);
  CHECK(table.size() == 2);
}

TEST_CASE("the table evicts nothing that messages wait for, and forgets a peer", "[xfer][cache]") {
  layout_table table(16);
  for (std::uint32_t i = 1; i <= 40; ++i) table.add(static_cast<int>(i % 2), i, layout_of(i), 10, false);
  CHECK(table.size() == 40);
  REQUIRE(table.find(1, 1) != nullptr);
  CHECK(*table.find(1, 1) == layout_of(1));
  CHECK(table.find(0, 1) == nullptr);
  table.forget(1);
  CHECK(table.size() == 20);
  table.add(0, 41, layout_of(41), 10, true);
  CHECK(table.size() == 16);
}
