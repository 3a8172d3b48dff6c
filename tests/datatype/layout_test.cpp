// SPDX-License-Identifier: Apache-2.0
// Goal: a layout describes exactly the bytes that its builders were told, and its queries agree with them.
// Method: random nested layouts against a list of byte offsets; known shapes by hand; refusals.
#include "rma/layout.hpp"

#include <catch2/catch.hpp>
#include <climits>
#include <vector>

#include "datatype/copy.hpp"
#include "datatype/oracle.hpp"
#include "rma/error.hpp"

using namespace rma;
using namespace rma::test;

namespace {

std::vector<std::ptrdiff_t> enumerated(const Layout& layout) {
  std::vector<std::ptrdiff_t> offsets;
  detail::for_each_block(layout, [&](std::ptrdiff_t offset, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) offsets.push_back(offset + static_cast<std::ptrdiff_t>(i));
  });
  return offsets;
}

std::size_t blocks_enumerated(const Layout& layout) {
  std::size_t count = 0;
  detail::for_each_block(layout, [&](std::ptrdiff_t, std::size_t) { ++count; });
  return count;
}

bool is_one_run(const std::vector<std::ptrdiff_t>& offsets) {
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] != offsets[i - 1] + 1) return false;
  }
  return true;
}

template <class F>
status refusal_of(F&& build) {
  try {
    static_cast<void>(build());
  } catch (const Error& e) {
    const std::string text = e.what();
    CHECK(text.find('\n') == std::string::npos);
    CHECK(text.find("Layout::") == 0);
    return e.code();
  }
  return status::done;
}

}  // namespace

TEST_CASE("random nested layouts have the bytes, bounds and extent of their description", "[datatype][layout]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 4000; ++round) {
    const pair_of_both made = random_layout(random, between(random, 1, 5));
    const auto& bytes = made.plain.bytes;
    CAPTURE(round);
    REQUIRE(made.layout.bytes() == bytes.size());
    REQUIRE(enumerated(made.layout) == bytes);
    REQUIRE(made.layout.blocks() == blocks_enumerated(made.layout));
    REQUIRE(made.layout.is_contiguous() == is_one_run(bytes));
    REQUIRE(made.layout.extent() == static_cast<std::size_t>(made.plain.extent));
    if (bytes.empty()) continue;
    REQUIRE(made.layout.extent_lower() == made.plain.extent_lower);
    REQUIRE(made.layout.lower() == *std::min_element(bytes.begin(), bytes.end()));
    REQUIRE(made.layout.upper() == *std::max_element(bytes.begin(), bytes.end()) + 1);
    REQUIRE(made.layout == Layout(made.layout));
  }
}

TEST_CASE("equal placements have one form", "[datatype][layout]") {
  const auto row = Layout::contiguous<double>(10);
  CHECK(Layout::vector<int>(5, 4, 4) == Layout::contiguous<int>(20));
  CHECK(Layout::vector(3, 2, 2, row) == Layout::contiguous<double>(60));
  CHECK(Layout::contiguous(10, Layout::contiguous<char>(8)) == row.resized(row, 0, 80));
  const std::vector<std::size_t> lengths = {2, 3, 1};
  CHECK(Layout::indexed<int>(lengths, std::vector<std::ptrdiff_t>{0, 2, 5}) == Layout::contiguous<int>(6));
  CHECK(Layout::indexed<int>(2, std::vector<std::ptrdiff_t>{0, 8, 16, 24}) == Layout::vector<int>(4, 2, 8));
  const std::vector<std::size_t> sizes = {6, 5, 4}, whole = {3, 5, 4}, box = {3, 2, 4}, starts = {0, 0, 0};
  CHECK(Layout::subarray<int>(sizes, whole, starts).is_contiguous());
  CHECK(Layout::subarray<int>(sizes, box, starts).blocks() == 3);
  const auto column = Layout::resized(Layout::vector<int>(4, 1, 8), 0, 4 * 8 * sizeof(int));
  CHECK(Layout::contiguous(3, column).blocks() == 12);
  CHECK(Layout::contiguous(3, column) == Layout::resized(Layout::vector<int>(12, 1, 8), 0, 3 * 4 * 8 * sizeof(int)));
  CHECK_FALSE(Layout::vector<int>(4, 1, 8) == Layout::vector<int>(4, 1, 9));
}

TEST_CASE("known bounds", "[datatype][layout]") {
  const auto backwards = Layout::vector<int>(3, 2, -4);
  CHECK(backwards.lower() == -32);
  CHECK(backwards.upper() == 8);
  CHECK(backwards.extent() == 40);
  CHECK(backwards.blocks() == 3);
  const auto huge = Layout::contiguous<std::byte>(PTRDIFF_MAX);
  CHECK(huge.bytes() == static_cast<std::size_t>(PTRDIFF_MAX));
  CHECK(huge.upper() == PTRDIFF_MAX);
  CHECK(Layout().bytes() == 0);
  CHECK(Layout().is_contiguous());
  CHECK(Layout::contiguous<int>(0) == Layout());
  CHECK(Layout::vector<int>(0, 3, PTRDIFF_MAX).bytes() == 0);
  CHECK(Layout::vector<int>(3, 0, PTRDIFF_MAX).bytes() == 0);
  CHECK(Layout::vector<int>(1, 3, PTRDIFF_MAX) == Layout::contiguous<int>(3));
}

TEST_CASE("what cannot be meant is refused", "[datatype][layout]") {
  const auto negative = static_cast<std::size_t>(-1);
  const auto row = Layout::vector<int>(2, 1, 2);
  const std::vector<std::size_t> two = {2, 2}, three = {3, 3, 3}, none = {}, shifted = {0, 1};
  const std::vector<std::ptrdiff_t> far = {0, PTRDIFF_MAX / 2};
  CHECK(refusal_of([&] { return Layout::contiguous<int>(negative); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::contiguous<int>(PTRDIFF_MAX / 2); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::contiguous(negative, row); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::vector<int>(3, 1, PTRDIFF_MAX / 4); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::vector<int>(3, 1, PTRDIFF_MIN / 4); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::vector<std::byte>(2, 1, PTRDIFF_MIN); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::vector<int>(negative, 1, 2); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::vector(negative, 1, 2, row); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::vector(2, 1, PTRDIFF_MAX, row); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::indexed<int>(two, far); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::indexed<int>(three, far); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::indexed<int>(negative, far); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::subarray<int>(two, three, two); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::subarray<int>(none, none, none); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::subarray<int>(two, two, shifted); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::resized(row, 0, negative); }) == status::bad_size);
  CHECK(refusal_of([&] { return Layout::shifted(row, PTRDIFF_MAX); }) == status::bad_size);
}

// Break: leave the strides, or what lies in lists, out of grain_of (src/datatype/normalize.cpp).
TEST_CASE("the grain of a layout tells what all of its blocks have in common", "[datatype][layout]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 4000; ++round) {
    const Layout layout = random_layout(random, between(random, 1, 5)).layout;
    CAPTURE(round);
    if (layout.bytes() == 0) continue;
    std::vector<std::ptrdiff_t> starts;
    std::size_t lengths = 0;
    std::size_t distances = 0;
    detail::for_each_block(layout, [&](std::ptrdiff_t offset, std::size_t bytes) {
      starts.push_back(offset);
      lengths |= bytes;
      distances |= static_cast<std::size_t>(offset - starts.front());
    });
    const detail::layout_grain grain = detail::layout_internals::grain(layout);
    REQUIRE(grain.first == starts.front());
    for (std::size_t unit = 2; unit <= 16; unit *= 2) {
      REQUIRE((grain.lengths % unit == 0) == (lengths % unit == 0));
      REQUIRE((grain.distances % unit == 0) == (distances % unit == 0));
    }
  }
}

TEST_CASE("nesting has a limit that is an error", "[datatype][layout]") {
  Layout layout = Layout::contiguous<char>(1);
  int levels = 0;
  const auto nest = [&] {
    layout = Layout::vector(2, 1, 2, Layout::resized(layout, 0, layout.extent() + 1));
    return layout;
  };
  while (levels < 40 && refusal_of(nest) == status::done) ++levels;
  CHECK(levels == 16);
  CHECK(layout.blocks() == 65536);
}

TEST_CASE("contiguous and vector layouts are cheap to hold", "[datatype][layout]") {
  CHECK(sizeof(Layout) <= 88);
  const auto a = Layout::vector<int>(64, 8, 4096);
  const auto b = a;  // NOLINT: the copy is the point
  CHECK(detail::layout_internals::node(b) == nullptr);
}

// Break: let same_as compare levels only, or leave an offset out of the hash.
TEST_CASE("equal layouts are one, however they were built", "[datatype][layout]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const pair_of_both made = random_layout(random, between(random, 0, 4));
    const std::vector<std::size_t> lengths(made.plain.bytes.size(), 1);
    const Layout bytes = Layout::indexed<char>(lengths, made.plain.bytes);
    const auto extent = static_cast<std::size_t>(made.plain.extent);
    const Layout same = Layout::resized(bytes, made.layout.extent_lower(), extent);
    REQUIRE(same == made.layout);
    REQUIRE(same.hash() == made.layout.hash());
    if (made.plain.bytes.empty()) continue;
    std::vector<std::ptrdiff_t> others = made.plain.bytes;
    others[between<std::size_t>(random, 0, others.size() - 1)] += 1;
    const Layout other = Layout::resized(Layout::indexed<char>(lengths, others), made.layout.extent_lower(), extent);
    REQUIRE_FALSE(other == made.layout);
    REQUIRE(other.hash() != made.layout.hash());
  }
  const Layout nested = Layout::vector(3, 2, 3, Layout::vector<int>(2, 1, 3));
  CHECK_FALSE(nested.hash() == Layout::shifted(nested, 4).hash());
  // Far too many blocks to be looked at one by one.
  CHECK(Layout::vector<char>(std::size_t{1} << 40, 1, 2).hash() !=
        Layout::vector<char>((std::size_t{1} << 40) - 1, 1, 2).hash());
}

TEST_CASE("structures have different layouts", "[datatype][layout]") {
  const Layout column = Layout::vector<int>(4, 1, 8);
  const Layout both = Layout::structure({{column, 0}, {Layout::contiguous<double>(2), 256}});
  CHECK(both.bytes() == 4 * sizeof(int) + 16);
  CHECK(both.blocks() == 5);
  CHECK(both.upper() == 256 + 16);
  CHECK(Layout::structure({{column, 0}, {column, 4}}) ==
        Layout::resized(Layout::vector(2, 1, 1, Layout::resized(column, 0, 4)), 0, column.extent() + 4));
  CHECK(Layout::structure({}) == Layout());
  CHECK(refusal_of([&] { return Layout::structure({{column, PTRDIFF_MAX}, {both, 0}}); }) == status::bad_size);
}
