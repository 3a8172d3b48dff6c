// SPDX-License-Identifier: Apache-2.0
// Goal: the bulk channel of a node fills receives in order, and says at both ends if one is too short.
// Method: a rank sends to itself.
#include <catch2/catch.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fabric/shm/node.hpp"
#include "fabric/shm/shm.hpp"

namespace rma::shm {
namespace {

struct notes final : fabric::sink {
  void on_completion(std::uint64_t token, status result, std::uint64_t bytes) noexcept override {
    results[token] = result;
    got[token] = bytes;
  }
  void on_message(int, std::uint16_t, std::span<const std::byte>) noexcept override {}
  void on_immediate(int, std::uint32_t) noexcept override {}
  std::map<std::uint64_t, status> results;
  std::map<std::uint64_t, std::uint64_t> got;
};

}  // namespace

TEST_CASE("bulk sends fill receives in order; one that is too long is an error at both ends", "[fabric][shm][bulk]") {
  const test::lone_board alone;
  shm_fabric fabric(*alone.node);
  std::vector<std::uint64_t> from{1, 2, 3, 4};
  std::vector<std::uint64_t> into(4, 0);
  const fabric::local_slice pieces[] = {{&from[2], 16}, {&from[0], 8}};
  const fabric::local_slice halves[] = {{&into[0], 8}, {&into[1], 24}};
  const fabric::local_slice whole{from.data(), 32}, word{&into[0], 8};
  notes seen;
  CHECK(fabric.send_bulk(0, pieces, 1) == status::posted);
  CHECK(fabric.send_bulk(0, {&whole, 1}, 2) == status::posted);
  (void)fabric.poll(seen, 10);
  CHECK(seen.results.empty());
  CHECK(fabric.post_bulk_receive(0, halves, 11) == status::posted);
  CHECK(fabric.post_bulk_receive(0, {&word, 1}, 12) == status::posted);
  for (int i = 0; i < 5; ++i) (void)fabric.poll(seen, 10);
  CHECK(seen.results ==
        std::map<std::uint64_t, status>{
            {1, status::done}, {2, status::message_too_long}, {11, status::done}, {12, status::message_too_long}});
  CHECK(seen.got == std::map<std::uint64_t, std::uint64_t>{{1, 0}, {2, 0}, {11, 24}, {12, 0}});  // of 32 bytes of room
  CHECK(into == std::vector<std::uint64_t>{3, 4, 1, 0});
  const std::vector<fabric::local_slice> many(fabric.caps().gather_max + 1, word);
  CHECK(fabric.send_bulk(0, many, 3) == status::bad_argument);
  CHECK(fabric.send_bulk(0, std::span(many).first(fabric.caps().gather_max), 3) == status::posted);
}

}  // namespace rma::shm
