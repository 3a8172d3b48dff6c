// SPDX-License-Identifier: Apache-2.0
// Goal: what one rank sends to another's mailbox arrives whole, to the one who asks for it, in any order of asking.
// Method: two contexts in one thread over a network of small messages.
#include "channel/mailbox.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "channel/fakes.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

struct pair_of_mailboxes : rma::test::fake_pair {
  pair_of_mailboxes() {
    // Whenever one would sleep, the other one gets its turn.
    a.around.on_sleep = [this] { b.ctx.progress(); };
    b.around.on_sleep = [this] { a.ctx.progress(); };
  }
  mailbox at_a{a.ctx};
  mailbox at_b{b.ctx};
};

std::vector<std::byte> data_of(std::size_t bytes, unsigned salt) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256 + salt);
  return data;
}

constexpr auto nothing_fails = []() noexcept { return status::done; };

status receive(mailbox& box, const mailbox::address& from, std::vector<std::byte>& data) {
  return box.receive(from, data, nothing_fails);
}

}  // namespace

TEST_CASE("collective messages of any size arrive whole", "[channel][mailbox]") {
  const std::size_t bytes = GENERATE(0U, 1U, 215U, 216U, 217U, 256U, 1000U, 100000U);
  CAPTURE(bytes);
  pair_of_mailboxes two;
  const auto sent = data_of(bytes, 1);
  two.at_a.send(1, 7, 1, 2, sent);
  std::vector<std::byte> came(bytes);
  REQUIRE(receive(two.at_b, {7, 1, 2, 0}, came) == status::done);
  CHECK(came == sent);
}

TEST_CASE("collective messages are found by team, sequence, tag and sender, whatever came first",
          "[channel][mailbox]") {
  pair_of_mailboxes two;
  unsigned salt = 0;
  for (std::uint64_t team : {1U, 2U}) {
    for (std::uint64_t sequence : {1U, 2U}) {
      for (std::uint32_t tag : {1U, 2U}) two.at_a.send(1, team, sequence, tag, data_of(300, salt++));
    }
  }
  two.at_b.send(0, 1, 1, 1, data_of(300, 100));
  for (std::uint64_t team : {2U, 1U}) {
    for (std::uint64_t sequence : {2U, 1U}) {
      for (std::uint32_t tag : {2U, 1U}) {
        std::vector<std::byte> came(300);
        REQUIRE(receive(two.at_b, {team, sequence, tag, 0}, came) == status::done);
        CHECK(came == data_of(300, --salt));
      }
    }
  }
  std::vector<std::byte> came(300);
  REQUIRE(receive(two.at_a, {1, 1, 1, 1}, came) == status::done);
  CHECK(came == data_of(300, 100));
}

TEST_CASE("a collective message is taken once", "[channel][mailbox]") {
  pair_of_mailboxes two;
  std::vector<std::byte> came(8);
  two.at_a.send(1, 1, 1, 1, data_of(8, 1));
  REQUIRE(receive(two.at_b, {1, 1, 1, 0}, came) == status::done);
  two.b.around.left = {0};
  CHECK(receive(two.at_b, {1, 1, 1, 0}, came) == status::peer_failed);
  CHECK(two.b.ctx.last_failed() == 0);
}

TEST_CASE("a collective message whose sender has left since is still taken", "[channel][mailbox]") {
  pair_of_mailboxes two;
  two.at_a.send(1, 1, 1, 1, data_of(100, 3));
  two.b.around.left = {0};
  std::vector<std::byte> came(100);
  CHECK(receive(two.at_b, {1, 1, 1, 0}, came) == status::done);
  CHECK(came == data_of(100, 3));
}

TEST_CASE("half a collective message of a dead sender is none", "[channel][mailbox]") {
  pair_of_mailboxes two;
  two.a.net.room = 2;
  two.at_a.send(1, 1, 1, 1, data_of(10000, 3));
  two.b.around.on_sleep = [&] { two.b.around.dying = {0}; };
  std::vector<std::byte> came(10000);
  CHECK(receive(two.at_b, {1, 1, 1, 0}, came) == status::peer_failed);
}

TEST_CASE("what the caller's judge says ends the wait", "[channel][mailbox]") {
  pair_of_mailboxes two;
  std::vector<std::byte> came(1);
  CHECK(two.at_b.receive({1, 1, 1, 0}, came, []() noexcept { return status::window_failed; }) == status::window_failed);
}

TEST_CASE("pieces that make no sense are dropped", "[channel][mailbox]") {
  pair_of_mailboxes two;
  struct header {
    std::uint64_t team, sequence, total, offset;
    std::uint32_t tag, unused;
  };
  const auto post = [&](const header& h, std::size_t payload, std::size_t cut = 0) {
    const std::vector<std::byte> rest(payload);
    const std::span<const std::byte> head(reinterpret_cast<const std::byte*>(&h), sizeof h - cut);
    REQUIRE(two.a.net.send(1, static_cast<std::uint16_t>(message::collect), head, rest) == status::done);
    while (two.b.ctx.progress() != 0) {}
  };
  post({1, 1, 8, 0, 1, 0}, 0, 1);                // shorter than a header
  post({1, 1, 8, 9, 1, 0}, 0);                   // begins behind the end
  post({1, 1, 8, 4, 1, 0}, 5);                   // ends behind the end
  post({1, 1, 8, ~std::uint64_t{0}, 1, 0}, 16);  // would wrap around
  two.at_a.send(1, 1, 1, 1, data_of(8, 9));
  std::vector<std::byte> came(8);
  REQUIRE(receive(two.at_b, {1, 1, 1, 0}, came) == status::done);
  CHECK(came == data_of(8, 9));
}
