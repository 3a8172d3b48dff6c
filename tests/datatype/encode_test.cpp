// SPDX-License-Identifier: Apache-2.0
// Goal: a layout survives being sent, and no bytes whatsoever make decode misbehave.
// Method: round trips of random layouts; truncated, mutated and random input; hand-made hostile input.
#include "datatype/encode.hpp"

#include <catch2/catch.hpp>

#include "datatype/copy.hpp"
#include "datatype/oracle.hpp"

using namespace rma;
using namespace rma::test;

namespace {

/// Whatever was accepted must be walkable: bounded work, inside its own bounds.
void walk(const Layout& layout) {
  std::size_t left = 2000;
  for (detail::cursor at(layout); at.remaining() > 0 && left > 0; --left) {
    const detail::block b = at.front();
    REQUIRE(b.bytes > 0);
    REQUIRE(b.offset >= layout.lower());
    REQUIRE(b.offset <= layout.upper() - static_cast<std::ptrdiff_t>(b.bytes));
    at.advance_in_block(b.bytes);
  }
  if (layout.bytes() > 0) {
    const detail::block last = detail::cursor(layout, layout.bytes() - 1).front();
    REQUIRE(last.bytes == 1);
    REQUIRE(last.offset >= layout.lower());
    REQUIRE(last.offset < layout.upper());
  }
}

void try_decode(std::span<const std::byte> bytes) {
  status outcome = status::posted;
  const Layout layout = detail::decode(bytes, outcome);
  if (outcome == status::done) {
    walk(layout);
  } else {
    REQUIRE((outcome == status::bad_argument || outcome == status::bad_size));
    REQUIRE(layout == Layout());
  }
}

std::vector<std::byte> bytes_of_numbers(std::initializer_list<std::uint64_t> numbers) {
  std::vector<std::byte> bytes;
  for (std::uint64_t n : numbers) {
    do {
      bytes.push_back(static_cast<std::byte>((n & 0x7f) | (n > 0x7f ? 0x80 : 0)));
      n >>= 7;
    } while (n != 0);
  }
  return bytes;
}

}  // namespace

TEST_CASE("layouts survive the round trip", "[datatype][encode]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    const Layout layout = random_layout(random, between(random, 0, 5)).layout;
    const auto bytes = detail::encode(layout);
    status outcome = status::posted;
    REQUIRE(detail::decode(bytes, outcome) == layout);
    REQUIRE(outcome == status::done);
    std::vector<std::byte> small(bytes.size() / 2);
    REQUIRE(detail::encode(layout, small) == bytes.size());
  }
  CHECK(detail::encode(Layout::vector<int>(64, 8, 4096)).size() < 20);
}

TEST_CASE("truncated, mutated and random bytes are survived", "[datatype][encode][fuzz]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 6000; ++round) {
    CAPTURE(round);
    auto bytes = detail::encode(random_layout(random, between(random, 1, 5)).layout);
    if (round % 3 == 0) bytes.resize(between<std::size_t>(random, 0, bytes.size()));
    for (int i = between(random, 0, 4); i > 0 && !bytes.empty(); --i) {
      bytes[between<std::size_t>(random, 0, bytes.size() - 1)] = static_cast<std::byte>(random());
    }
    try_decode(bytes);
  }
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(between<std::size_t>(random, 0, 40));
    for (std::byte& b : bytes) b = static_cast<std::byte>(between(random, 0, 3) == 0 ? random() : random() % 4);
    if (!bytes.empty()) bytes[0] = std::byte{1};
    try_decode(bytes);
  }
}

TEST_CASE("hostile layouts are refused", "[datatype][encode][fuzz]") {
  const auto outcome_of = [](const std::vector<std::byte>& bytes) {
    status outcome = status::posted;
    static_cast<void>(detail::decode(bytes, outcome));
    return outcome;
  };
  constexpr std::uint64_t most = ~std::uint64_t{0};
  CHECK(outcome_of({}) == status::bad_argument);
  CHECK(outcome_of(bytes_of_numbers({2, 0, 0, 0, 0, 1})) == status::bad_argument);                 // version
  CHECK(outcome_of(bytes_of_numbers({1, 17, 0, 0, 0, 1})) == status::bad_argument);                // levels
  CHECK(outcome_of(bytes_of_numbers({1, 0, 0, 0, most, 1})) == status::bad_argument);              // extent
  CHECK(outcome_of(bytes_of_numbers({1, 0, 0, 0, 1, 1, 0})) == status::bad_argument);              // too long
  CHECK(outcome_of(bytes_of_numbers({1, 0, 0, 0, 1, most})) == status::bad_size);                  // block
  CHECK(outcome_of(bytes_of_numbers({1, 0, most - 1, 0, 1, 8})) == status::bad_size);              // offset
  CHECK(outcome_of(bytes_of_numbers({1, 1, 0, 0, 1, 0, most, 2, 8})) == status::bad_size);         // count
  CHECK(outcome_of(bytes_of_numbers({1, 1, 0, 0, 1, 1, 1 << 30, 2, 8})) == status::bad_argument);  // entries
  CHECK(outcome_of(std::vector<std::byte>(12, std::byte{0xff})) == status::bad_argument);
  CHECK(outcome_of(bytes_of_numbers({1, 0, 0, 0, 8, 8})) == status::done);
}
