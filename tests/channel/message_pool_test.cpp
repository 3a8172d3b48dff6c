// SPDX-License-Identifier: Apache-2.0
// Goal: what waits for room is copied whole and stays in order, and takes no new memory when as much has waited before.
#include "channel/message_pool.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <vector>

using rma::detail::message_pool;
using bytes = std::vector<std::byte>;

namespace {

bytes pattern(std::size_t size, std::size_t seed) {
  bytes data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 31 + seed);
  return data;
}

}  // namespace

TEST_CASE("queued messages keep their bytes, kinds and order", "[channel][message_pool]") {
  message_pool pool;
  message_pool::queue waiting[2];
  const std::size_t sizes[] = {0, 1, 47, 48, 49, 112, 113, 1000, 4080, 4081, 33'000};
  for (std::size_t round = 0; round < 3; ++round) {
    std::size_t n = 0;
    for (const std::size_t header : {0U, 8U, 40U}) {
      for (const std::size_t payload : sizes) {
        waiting[n % 2].push_back(pool.take(static_cast<std::uint16_t>(n), pattern(header, n), pattern(payload, n + 1)));
        ++n;
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      message_pool::queue& from = waiting[i % 2];
      REQUIRE(from.size() == (n - i + 1) / 2);
      const std::size_t header = i < 11 ? 0 : i < 22 ? 8 : 40;
      bytes expected = pattern(header, i);
      const bytes rest = pattern(sizes[i % 11], i + 1);
      expected.insert(expected.end(), rest.begin(), rest.end());
      message_pool::record& first = from.front();
      CHECK(first.kind() == i);
      CHECK(std::equal(first.bytes().begin(), first.bytes().end(), expected.begin(), expected.end()));
      from.pop_front();
      pool.give_back(first);
    }
  }
}

TEST_CASE("records are used again, and no two that wait are one", "[channel][message_pool]") {
  message_pool pool;
  std::size_t reserved = 0;
  for (int round = 0; round < 4; ++round) {
    message_pool::queue waiting;
    std::set<const std::byte*> at;
    for (std::size_t i = 0; i < 1000; ++i) {
      message_pool::record& r = pool.take(1, {}, pattern(i % 300, i));
      at.insert(r.bytes().data());
      waiting.push_back(r);
    }
    CHECK(at.size() == 1000);
    if (round == 0) reserved = pool.reserved_bytes();
    CHECK(pool.reserved_bytes() == reserved);
    CHECK(reserved < std::size_t{1000} * 512);
    while (!waiting.empty()) {
      message_pool::record& first = waiting.front();
      waiting.pop_front();
      pool.give_back(first);
    }
  }
}
