// SPDX-License-Identifier: Apache-2.0
// Goal: nobody passes a round of a dissemination barrier before its sender has come to it, whatever came first.
// Method: two contexts in one thread over a network of small messages, which can write words, too.
#include "channel/dissemination.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <string>
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

/// Rank 0's state and rank 1's, both in their first turn.
struct pair_in_turn : pair_of_barriers {
  pair_in_turn() {
    ++of_a.turn;
    ++of_b.turn;
  }
  dissemination::barrier_handle seat_a, seat_b;
  dissemination::barrier_state& of_a = seat_a.in(at_a, name);
  dissemination::barrier_state& of_b = seat_b.in(at_b, name);
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
  dissemination::barrier_handle early;
  dissemination::barrier_state& c = early.in(two.at_a, name);
  ++c.turn;
  two.at_a.tell(c, 0, 1);
  while (two.b.ctx.progress() != 0) {}
  dissemination::barrier_handle late;
  dissemination::barrier_state& mine = late.in(two.at_b, name);
  ++mine.turn;
  CHECK(dissemination::heard(mine, 0));
  CHECK(&late.in(two.at_b, name) == &mine);
}

TEST_CASE("barriers of other names are others", "[channel][dissemination]") {
  pair_in_turn two;
  dissemination::barrier_handle other;
  dissemination::barrier_state& c = other.in(two.at_b, name + 1);
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

namespace {

/// The one that waits, rank 1, and its sender, rank 0, on two nodes; `barrier`: RMA_BARRIER.
struct far_pair {
  explicit far_pair(const std::string& barrier = "auto", unsigned few_cores = 0)
      : sender(0, barrier, few_cores), waiting(1, barrier, few_cores) {
    sender.net.connect(1, waiting.net);
    waiting.net.connect(0, sender.net);
  }

  struct far_rank {
    far_rank(int rank, const std::string& barrier, unsigned few_cores)
        : config({.environment = false, .settings = {{"RMA_BARRIER", barrier}}}),
          boot(rank),
          node(rank),
          net(rank, true),
          around(few_cores) {
      c = &barrier_handle->in(all, name);
    }
    settings config;
    rma::test::fake_boot boot;
    rma::test::fake_network node, net;
    rma::test::fake_platform around;
    context ctx{config, boot, node, around, &net};
    dissemination all{ctx};
    std::optional<dissemination::barrier_handle> barrier_handle{std::in_place};
    dissemination::barrier_state* c = nullptr;
    void progress() {
      while (ctx.progress() != 0) {}
    }
    [[nodiscard]] std::uint64_t sent() const { return ctx.value(counter::messages_sent); }
  } sender, waiting;

  /// The sender is there first, so that nobody sleeps. True if it wrote.
  bool pass_awake() {
    const auto before = sender.sent();
    ++sender.c->turn;
    sender.all.tell(*sender.c, 0, 1);
    const bool wrote = sender.sent() == before;
    CHECK(wait() == status::done);
    sender.progress();
    return wrote;
  }
  status wait() {
    ++waiting.c->turn;
    return waiting.all.meet(*waiting.c, 0, 0, 0, nothing_fails);
  }
  void come_to_write() {
    for (int turns = 0; turns < 100; ++turns) {
      if (pass_awake()) return;
    }
    FAIL("the sender has not been invited");
  }
};

}  // namespace

TEST_CASE("a sender writes its turns once enough waits for it have ended awake", "[channel][dissemination]") {
  far_pair two;
  int messages = 0;
  while (!two.pass_awake() && messages < 100) ++messages;
  CHECK(messages == 16);
  for (int turn = 0; turn < 10; ++turn) CHECK(two.pass_awake());
  CHECK_FALSE(dissemination::heard(*two.waiting.c, 1));
}

TEST_CASE("none is invited to write by RMA_BARRIER=messages, nor where waits do not spin", "[channel][dissemination]") {
  far_pair two(GENERATE(as<std::string>(), "messages", "auto"), 1);
  for (int turn = 0; turn < 100; ++turn) CHECK_FALSE(two.pass_awake());
}

TEST_CASE("RMA_BARRIER=words invites at once, and after each sleep", "[channel][dissemination]") {
  far_pair two("words", GENERATE(0U, 1U));
  CHECK_FALSE(two.pass_awake());
  for (int turn = 0; turn < 3; ++turn) CHECK(two.pass_awake());
  two.waiting.around.on_sleep = [&] {
    two.sender.progress();
    ++two.sender.c->turn;
    two.sender.all.tell(*two.sender.c, 0, 1);
  };
  CHECK(two.wait() == status::done);
  two.sender.progress();
  CHECK(two.pass_awake());
}

TEST_CASE("who goes to sleep is told by a message", "[channel][dissemination]") {
  far_pair two;
  two.come_to_write();
  int sleeps = 0;
  std::uint64_t sent = 0;
  two.waiting.around.on_sleep = [&] {
    two.sender.progress();
    if (++sleeps != 2) return;
    sent = two.sender.sent();
    ++two.sender.c->turn;
    two.sender.all.tell(*two.sender.c, 0, 1);
    ++sent;
  };
  CHECK(two.wait() == status::done);
  CHECK(sleeps == 2);
  CHECK(two.sender.sent() == sent);
  two.sender.progress();
  two.waiting.around.on_sleep = nullptr;
  int messages = 0;  // it is asked again later than for the first time
  while (!two.pass_awake() && messages < 100) ++messages;
  CHECK(messages == 32);
}

TEST_CASE("a turn that was written while the recall was on its way is heard, lost or not", "[channel][dissemination]") {
  far_pair two;
  two.come_to_write();
  two.sender.net.loses_words = GENERATE(false, true);
  const bool drops = GENERATE(false, true);  // it was the last barrier, as the sender sees it
  int sleeps = 0;
  two.waiting.around.on_sleep = [&] {
    if (++sleeps != 1) return;
    ++two.sender.c->turn;
    two.sender.all.tell(*two.sender.c, 0, 1);
    if (drops) two.sender.barrier_handle.reset();
    two.sender.progress();
  };
  CHECK(two.wait() == status::done);
  CHECK(sleeps == 1);
}

TEST_CASE("an answer to a recall brings nothing that was not said", "[channel][dissemination]") {
  far_pair two;
  two.come_to_write();
  if (GENERATE(false, true)) two.sender.c->written->out[0].tag = 0;  // it knows nothing of an invitation
  int sleeps = 0;
  two.waiting.around.on_sleep = [&] {
    two.sender.progress();
    if (++sleeps == 3) two.waiting.around.dying = {0};
  };
  CHECK(two.wait() == status::peer_failed);  // not told this turn
  CHECK_FALSE(dissemination::heard(*two.waiting.c, 0));
}

TEST_CASE("a word counts for its invitation, and for this turn and the next", "[channel][dissemination]") {
  word64 w{};
  dissemination::incoming_word in;
  in.word = &w;
  const auto write = [&](std::uint32_t tag, std::uint32_t turn) { w.store(std::uint64_t{tag} << 32 | turn); };
  const std::uint32_t turn = GENERATE(5U, 0U, 0xffffffffU);
  write(1, turn);
  CHECK_FALSE(in.shows(turn));
  in.tag = 2;
  CHECK_FALSE(in.shows(turn));
  write(2, turn);
  CHECK(in.shows(turn));
  CHECK_FALSE(in.shows(turn + 1));
  CHECK(in.shows(turn - 1));
  CHECK_FALSE(in.shows(turn - 2));
}

TEST_CASE("offers of words that make no sense are refused", "[channel][dissemination]") {
  far_pair two;
  struct {
    std::uint64_t id = name, address = 0, key = 0;
    std::uint32_t round = 0, tag = 7, turn = 1, what = 0;
  } word_grant;
  const auto post = [&](std::size_t cut) {
    const std::span<const std::byte> head(reinterpret_cast<const std::byte*>(&word_grant), sizeof word_grant - cut);
    REQUIRE(two.sender.net.send(1, static_cast<std::uint16_t>(message::barrier_word), head, {}) == status::done);
    two.waiting.progress();
  };
  post(1);
  word_grant.round = dissemination::rounds_max;
  post(0);
  word_grant.round = 0;
  word_grant.what = 3;
  post(0);
  CHECK(two.waiting.ctx.value(counter::messages_refused) == 3);
  word_grant.what = 0;
  word_grant.id = name + 1;  // of a barrier that is not there any more
  post(0);
  CHECK(two.waiting.ctx.value(counter::messages_refused) == 3);
}
