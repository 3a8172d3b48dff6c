// SPDX-License-Identifier: Apache-2.0
// Goal: nobody passes a round of a dissemination barrier before its sender has come to it, whatever came first.
// Method: two contexts in one thread over a network of small messages.
#include "channel/dissemination.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "channel/fakes.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

constexpr std::uint64_t name = 77;
constexpr auto nothing_fails = []() noexcept { return status::done; };

struct pair_of_barriers : rma::test::fake_pair {
  dissemination at_a{a.ctx};
  dissemination at_b{b.ctx};
};

/// Rank 0's circle and rank 1's, both in their first turn.
struct pair_in_turn : pair_of_barriers {
  pair_in_turn() {
    ++of_a.turn;
    ++of_b.turn;
  }
  dissemination::seat seat_a, seat_b;
  dissemination::circle& of_a = seat_a.in(at_a, name);
  dissemination::circle& of_b = seat_b.in(at_b, name);
};

}  // namespace

TEST_CASE("a round is heard of once it has been told, and no other", "[channel][dissemination]") {
  pair_in_turn two;
  const unsigned round = GENERATE(0U, 1U, dissemination::rounds_max - 1);
  two.at_a.tell(two.of_a, round, 1);
  CHECK_FALSE(dissemination::heard(two.of_b, round));
  while (two.b.ctx.progress() != 0) {}
  for (unsigned r = 0; r < dissemination::rounds_max; ++r) CHECK(dissemination::heard(two.of_b, r) == (r == round));
  ++two.of_b.turn;
  CHECK_FALSE(dissemination::heard(two.of_b, round));
}

TEST_CASE("who is ahead by a turn is not taken for late", "[channel][dissemination]") {
  pair_in_turn two;
  two.of_a.turn = two.of_b.turn = GENERATE(1U, 0x7fffffffU, 0xffffffffU);
  two.at_a.tell(two.of_a, 0, 1);
  ++two.of_a.turn;
  two.at_a.tell(two.of_a, 0, 1);
  while (two.b.ctx.progress() != 0) {}
  CHECK(dissemination::heard(two.of_b, 0));
  ++two.of_b.turn;
  CHECK(dissemination::heard(two.of_b, 0));
  ++two.of_b.turn;
  CHECK_FALSE(dissemination::heard(two.of_b, 0));
}

TEST_CASE("what comes before the rank knows of the barrier is kept", "[channel][dissemination]") {
  pair_of_barriers two;
  dissemination::seat early;
  dissemination::circle& c = early.in(two.at_a, name);
  ++c.turn;
  two.at_a.tell(c, 0, 1);
  while (two.b.ctx.progress() != 0) {}
  dissemination::seat late;
  dissemination::circle& mine = late.in(two.at_b, name);
  ++mine.turn;
  CHECK(dissemination::heard(mine, 0));
  CHECK(&late.in(two.at_b, name) == &mine);
}

TEST_CASE("barriers of other names are others", "[channel][dissemination]") {
  pair_in_turn two;
  dissemination::seat other;
  dissemination::circle& c = other.in(two.at_b, name + 1);
  ++c.turn;
  two.at_a.tell(two.of_a, 0, 1);
  while (two.b.ctx.progress() != 0) {}
  CHECK(dissemination::heard(two.of_b, 0));
  CHECK_FALSE(dissemination::heard(c, 0));
}

TEST_CASE("a round ends when its sender comes, or is gone, or the caller's judge says so", "[channel][dissemination]") {
  pair_in_turn two;
  two.b.around.on_sleep = [&] { two.at_a.tell(two.of_a, 0, 1); };
  CHECK(two.at_b.meet(two.of_b, 0, 0, 0, nothing_fails) == status::done);
  while (two.a.ctx.progress() != 0) {}
  CHECK(dissemination::heard(two.of_a, 0));
  two.b.around.on_sleep = [&] { two.b.around.dying = {0}; };
  CHECK(two.at_b.meet(two.of_b, 1, 0, 0, nothing_fails) == status::peer_failed);
  CHECK(two.b.ctx.last_failed() == 0);
  CHECK(two.at_b.meet(two.of_b, 2, 0, 0, []() noexcept { return status::window_failed; }) == status::window_failed);
}

TEST_CASE("news of a barrier that make no sense are refused", "[channel][dissemination]") {
  pair_in_turn two;
  struct {
    std::uint64_t id = name;
    std::uint32_t turn = 1, round = 0;
  } news;
  const auto post = [&](std::size_t cut) {
    const std::span<const std::byte> head(reinterpret_cast<const std::byte*>(&news), sizeof news - cut);
    REQUIRE(two.a.net.send(1, static_cast<std::uint16_t>(message::barrier), head, {}) == status::done);
    while (two.b.ctx.progress() != 0) {}
  };
  post(1);
  news.round = dissemination::rounds_max;
  post(0);
  CHECK(two.b.ctx.value(counter::messages_refused) == 2);
  for (unsigned r = 0; r < dissemination::rounds_max; ++r) CHECK_FALSE(dissemination::heard(two.of_b, r));
}
