// SPDX-License-Identifier: Apache-2.0
// Goal: sends and receives find each other in the order of their start, whatever comes first, and end once.
// Method: two contexts in one thread over a network of small messages and little room.
#include "p2p/messenger.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "channel/fakes.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

struct pair_of_messengers : rma::test::fake_pair {
  messenger at_a{a.ctx};
  messenger at_b{b.ctx};

  void run(int rounds = 200) {
    for (int i = 0; i < rounds; ++i) {
      a.ctx.progress();
      b.ctx.progress();
    }
  }
};

std::vector<std::byte> numbered(std::size_t bytes, unsigned salt) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256 + salt);
  return data;
}

struct counted_send : send_operation {
  counted_send(std::vector<std::byte> from, int to, int with_tag) : data(std::move(from)) {
    peer = to, tag = with_tag, at = data.data(), bytes = data.size();
    over = [](message_operation& self) noexcept { ++static_cast<counted_send&>(self).ends; };
  }
  std::vector<std::byte> data;
  int ends = 0;
};

struct counted_receive : receive_operation {
  counted_receive(std::size_t room, int from, int with_tag) : data(room) {
    peer = from, tag = with_tag, at = data.data(), bytes = room;
    over = [](message_operation& self) noexcept { ++static_cast<counted_receive&>(self).ends; };
  }
  std::vector<std::byte> data;
  int ends = 0;
};

}  // namespace

TEST_CASE("messages of any size arrive whole, whoever comes first", "[p2p][messenger]") {
  const std::size_t bytes = GENERATE(0U, 1U, 239U, 240U, 241U, 256U, 5000U, 100000U);
  const bool early = GENERATE(false, true);
  const send_mode mode = GENERATE(send_mode::standard, send_mode::synchronous);
  CAPTURE(bytes, early);
  pair_of_messengers two;
  counted_send s(numbered(bytes, 3), 1, 5);
  s.mode = mode;
  counted_receive r(bytes, 0, 5);
  if (early) REQUIRE(two.at_b.receive(r) == status::posted);
  const status sent = two.at_a.send(s);
  two.run();
  if (!early) {
    CHECK((s.ended.load() == 1) == (mode == send_mode::standard && bytes <= 240));
    (void)two.at_b.receive(r);
    two.run();
  }
  CHECK(r.ended.load() == 1);
  CHECK(r.result == status::done);
  CHECK(r.source == 0);
  CHECK(r.message_tag == 5);
  CHECK(r.message_bytes == bytes);
  CHECK(r.data == s.data);
  CHECK(s.ended.load() == 1);
  CHECK(s.ends == (sent == status::posted ? 1 : 0));
}

TEST_CASE("the first receive that matches takes the first message", "[p2p][messenger]") {
  pair_of_messengers two;
  counted_receive any(8, any_source, any_tag), exact(8, 0, 1), tagged(8, any_source, 1), last(8, 0, any_tag);
  for (auto* r : {&any, &exact, &tagged, &last}) REQUIRE(two.at_b.receive(*r) == status::posted);
  std::vector<std::unique_ptr<counted_send>> sends;
  for (unsigned i = 0; i < 4; ++i) {
    sends.push_back(std::make_unique<counted_send>(numbered(8, i), 1, 1));
    (void)two.at_a.send(*sends.back());
  }
  two.run();
  CHECK(any.data == numbered(8, 0));
  CHECK(exact.data == numbered(8, 1));
  CHECK(tagged.data == numbered(8, 2));
  CHECK(last.data == numbered(8, 3));
}

TEST_CASE("what is not expected is taken in the order of its coming", "[p2p][messenger]") {
  pair_of_messengers two;
  std::vector<std::unique_ptr<counted_send>> sends;
  for (unsigned i = 0; i < 4; ++i) {
    sends.push_back(std::make_unique<counted_send>(numbered(i == 2 ? 5000 : 8, i), 1, static_cast<int>(i % 2)));
    (void)two.at_a.send(*sends.back());
  }
  two.run();
  counted_receive first(8, any_source, any_tag), odd(8, 0, 1), even(5000, any_source, 0), rest(8, 0, any_tag);
  for (auto* r : {&first, &odd, &even, &rest}) (void)two.at_b.receive(*r);
  two.run();
  CHECK(first.data == numbered(8, 0));
  CHECK(odd.data == numbered(8, 1));
  CHECK(even.data == numbered(5000, 2));
  CHECK(rest.data == numbered(8, 3));
}

TEST_CASE("a receive that is too short says so, and its buffer stays", "[p2p][messenger]") {
  const std::size_t bytes = GENERATE(9U, 5000U);
  const bool early = GENERATE(false, true);
  pair_of_messengers two;
  counted_send s(numbered(bytes, 3), 1, 5);
  counted_receive r(8, 0, 5);
  if (early) (void)two.at_b.receive(r);
  (void)two.at_a.send(s);
  two.run();
  if (!early) CHECK(two.at_b.receive(r) == status::message_too_long);
  two.run();
  CHECK(r.result == status::message_too_long);
  CHECK(r.message_bytes == bytes);
  CHECK(r.data == std::vector<std::byte>(8));
  CHECK(s.ended.load() == 1);
  CHECK(s.result == status::done);
}

TEST_CASE("memory for what is not expected is bounded, and nothing is lost or overtaken", "[p2p][messenger]") {
  pair_of_messengers two;
  std::vector<std::unique_ptr<counted_send>> sends;
  constexpr unsigned count = 5000;
  for (unsigned i = 0; i < count; ++i) {
    sends.push_back(std::make_unique<counted_send>(numbered(200, i), 1, 1));
    (void)two.at_a.send(*sends.back());
    if (i % 16 == 0) two.run(1);
  }
  two.run(5000);
  CHECK(two.at_b.unexpected_bytes() <= two.at_b.unexpected_bytes_max());
  for (unsigned i = 0; i < count; ++i) {
    counted_receive r(200, 0, 1);
    (void)two.at_b.receive(r);
    for (int round = 0; round < 100 && r.ended.load() == 0; ++round) two.run(1);
    REQUIRE(r.ended.load() == 1);
    REQUIRE(r.data == numbered(200, i));
  }
  two.run();
  for (const auto& s : sends) CHECK(s->ended.load() == 1);
}

TEST_CASE("what is under way with a rank that dies ends, and nothing is written any more", "[p2p][messenger]") {
  pair_of_messengers two;
  counted_send announced(numbered(5000, 0), 1, 1);
  counted_receive posted(8, 1, 2), any(8, any_source, 3), coming(5000, 1, 4);
  counted_send to_come(numbered(5000, 1), 0, 4);
  (void)two.at_b.send(to_come);
  two.b.ctx.progress();
  (void)two.at_a.send(announced);
  for (auto* r : {&posted, &any, &coming}) (void)two.at_a.receive(*r);
  two.a.ctx.progress();  // `coming` has been matched
  two.a.boot.dying = {1};
  two.a.around.look_ns = 200'000'000;
  two.a.ctx.take_news();
  two.a.ctx.progress();
  CHECK(announced.result == status::peer_failed);
  CHECK(announced.ends == 1);
  CHECK(posted.result == status::peer_failed);
  CHECK(posted.ends == 1);
  CHECK(coming.result == status::peer_failed);
  CHECK(coming.ends == 1);
  CHECK(any.ended.load() == 0);
  two.run();
  CHECK(coming.data == std::vector<std::byte>(5000));
  counted_receive late(8, 1, 2);
  CHECK(two.at_a.receive(late) == status::peer_failed);
  CHECK(two.at_a.cancel(any));
  CHECK(any.ended.load() == 1);
  CHECK(any.ends == 0);
}

TEST_CASE("an operation that is withdrawn ends the other side's", "[p2p][messenger]") {
  pair_of_messengers two;
  two.b.net.room = 1;
  counted_send s(numbered(50000, 3), 1, 5);
  counted_receive r(50000, 0, 5);
  (void)two.at_b.receive(r);
  (void)two.at_a.send(s);
  const bool receiver = GENERATE(false, true);
  two.run(4);
  REQUIRE(r.ended.load() == 0);
  CHECK((receiver ? two.at_b.withdraw(r, status::revoked) : two.at_a.withdraw(s, status::revoked)));
  two.run();
  CHECK(s.result == (receiver ? status::transfer_failed : status::revoked));
  CHECK(r.result == (receiver ? status::revoked : status::transfer_failed));
  CHECK(s.ended.load() == 1);
  CHECK(r.ended.load() == 1);
}
