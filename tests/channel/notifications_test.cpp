// SPDX-License-Identifier: Apache-2.0
// Goal: a round counts as reported once its sender has come to it in this turn, whatever came first and by which way.
// Method: two contexts in one thread over a network of small messages and written words.
#include "channel/notifications.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "channel/fakes.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

constexpr std::uint64_t name = 77;

/// One rank's side of an object: what its schedule does in a round, with the calls of message_barrier around it.
struct side {
  side(context& of, std::uint64_t id = name) : ctx(of), all(own.emplace(of)) { take(id); }
  side(context& of, notifications& shared, std::uint64_t id) : ctx(of), all(shared) { take(id); }
  side(const side&) = delete;
  side& operator=(const side&) = delete;
  ~side() { drop(); }

  void take(std::uint64_t id) {
    const std::lock_guard guard(ctx.lock());
    at = &all.find(id);
    at->self = this;
    at->over = [](void* self) noexcept { ++static_cast<side*>(self)->heard; };
  }
  void drop() {
    if (at == nullptr) return;
    const std::lock_guard guard(ctx.lock());
    all.give_up(*at);
    all.end_wait(*at);
    all.drop(*at);
    at = nullptr;
  }
  void notify(unsigned round, int to) {
    const std::lock_guard guard(ctx.lock());
    all.notify(*at, round, to);
  }
  /// True if it has been heard already; nothing is awaited afterwards.
  bool knows(unsigned round, int from) {
    const bool yes = begins_to_await(round, from);
    const std::lock_guard guard(ctx.lock());
    all.give_up(*at);
    return yes;
  }
  void begin_wait() {
    const std::lock_guard guard(ctx.lock());
    all.begin_wait(*at);
  }
  /// True if it has been heard already.
  bool begins_to_await(unsigned round, int from) {
    const std::lock_guard guard(ctx.lock());
    return all.await(*at, round, from);
  }
  /// A blocking wait for that round of the turn.
  status meet(unsigned round, int from) {
    const int before = heard;
    bool met = false;
    {
      const std::lock_guard guard(ctx.lock());
      all.begin_wait(*at);
      met = all.await(*at, round, from);
      if (!met && ctx.wide() != nullptr) {
        met = ctx.ready_soon([&]() noexcept {
          all.look(*at);
          return heard != before;
        });
      }
    }
    status s = status::done;
    if (!met) {
      const auto gone = [&]() noexcept { return ctx.gone(from) ? status::peer_failed : status::done; };
      s = ctx.wait({.until = [&]() noexcept { return heard != before; }, .fails_if = gone});
    }
    const std::lock_guard guard(ctx.lock());
    all.give_up(*at);
    all.end_wait(*at);
    return s;
  }
  void progress() {
    while (ctx.progress() != 0) {}
  }

  context& ctx;
  std::optional<notifications> own{};
  notifications& all;
  notifications::slots* at = nullptr;
  int heard = 0;
};

/// Rank 0's side and rank 1's, both in their first turn.
struct pair_in_turn : rma::test::fake_pair {
  pair_in_turn() {
    ++at_a.at->turn;
    ++at_b.at->turn;
  }
  side at_a{a.ctx};
  side at_b{b.ctx};
};

}  // namespace

TEST_CASE("a round is heard of once it has been reported, and no other", "[channel][notifications]") {
  pair_in_turn two;
  const unsigned round = GENERATE(0U, 1U, notifications::rounds_max - 1);
  two.at_a.notify(round, 1);
  CHECK_FALSE(two.at_b.knows(round, 0));
  two.at_b.progress();
  for (unsigned r = 0; r < notifications::rounds_max; ++r) CHECK(two.at_b.knows(r, 0) == (r == round));
  ++two.at_b.at->turn;
  CHECK_FALSE(two.at_b.knows(round, 0));
  CHECK(two.at_b.heard == 0);
}

TEST_CASE("who awaits a round is called once it has been reported", "[channel][notifications]") {
  pair_in_turn two;
  {
    const std::lock_guard guard(two.b.ctx.lock());
    REQUIRE_FALSE(two.at_b.all.await(*two.at_b.at, 1, 0));
  }
  two.at_a.notify(0, 1);
  two.at_b.progress();
  CHECK(two.at_b.heard == 0);
  two.at_a.notify(1, 1);
  two.at_a.notify(1, 1);
  two.at_b.progress();
  CHECK(two.at_b.heard == 1);
  CHECK(two.at_b.at->awaited == notifications::no_round);
}

TEST_CASE("who is ahead by a turn is not taken for late", "[channel][notifications]") {
  pair_in_turn two;
  two.at_a.at->turn = two.at_b.at->turn = GENERATE(1U, 0x7fffffffU, 0xffffffffU);
  two.at_a.notify(0, 1);
  ++two.at_a.at->turn;
  two.at_a.notify(0, 1);
  two.at_b.progress();
  CHECK(two.at_b.knows(0, 0));
  ++two.at_b.at->turn;
  CHECK(two.at_b.knows(0, 0));
  ++two.at_b.at->turn;
  CHECK_FALSE(two.at_b.knows(0, 0));
}

TEST_CASE("what comes before the rank has the object is kept", "[channel][notifications]") {
  rma::test::fake_pair two;
  notifications of_b{two.b.ctx};
  side early{two.a.ctx};
  ++early.at->turn;
  early.notify(0, 1);
  while (two.b.ctx.progress() != 0) {}
  side late{two.b.ctx, of_b, name};
  ++late.at->turn;
  CHECK(late.knows(0, 0));
}

TEST_CASE("objects of other names are others", "[channel][notifications]") {
  pair_in_turn two;
  side other{two.b.ctx, two.at_b.all, name + 1};
  ++other.at->turn;
  two.at_a.notify(0, 1);
  two.at_b.progress();
  CHECK(two.at_b.knows(0, 0));
  CHECK_FALSE(other.knows(0, 0));
}

TEST_CASE("a blocking wait for a round ends when its sender reports it, or is gone", "[channel][notifications]") {
  pair_in_turn two;
  two.b.around.on_sleep = [&] { two.at_a.notify(0, 1); };
  CHECK(two.at_b.meet(0, 0) == status::done);
  two.b.around.on_sleep = [&] { two.b.around.dying = {0}; };
  CHECK(two.at_b.meet(1, 0) == status::peer_failed);
}

TEST_CASE("notifications that make no sense are refused", "[channel][notifications]") {
  pair_in_turn two;
  struct {
    std::uint64_t id = name;
    std::uint32_t turn = 1, round = 0;
  } news;
  const auto post = [&](std::size_t cut) {
    const std::span<const std::byte> head(reinterpret_cast<const std::byte*>(&news), sizeof news - cut);
    REQUIRE(two.a.net.send(1, static_cast<std::uint16_t>(message::notification), head, {}) == status::done);
    while (two.b.ctx.progress() != 0) {}
  };
  post(1);
  news.round = notifications::rounds_max;
  post(0);
  CHECK(two.b.ctx.value(counter::messages_refused) == 2);
  for (unsigned r = 0; r < notifications::rounds_max; ++r) CHECK_FALSE(two.at_b.knows(r, 0));
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
          around(few_cores) {}
    settings config;
    rma::test::fake_boot boot;
    rma::test::fake_network node, net;
    rma::test::fake_platform around;
    context ctx{config, boot, node, around, &net};
    side c{ctx};
    void progress() { c.progress(); }
    [[nodiscard]] std::uint64_t sent() const { return ctx.value(counter::messages_sent); }
    void report() {
      ++c.at->turn;
      c.notify(0, 1);
    }
  } sender, waiting;

  /// The sender notifies before the receiver waits, so that no rank sleeps. True if it wrote a word.
  bool pass_awake() {
    const auto before = sender.sent();
    sender.report();
    const bool wrote = sender.sent() == before;
    CHECK(wait() == status::done);
    sender.progress();
    return wrote;
  }
  status wait() {
    ++waiting.c.at->turn;
    return waiting.c.meet(0, 0);
  }
  void come_to_write() {
    for (int turns = 0; turns < 100; ++turns) {
      if (pass_awake()) return;
    }
    FAIL("the sender has not been invited");
  }
};

}  // namespace

TEST_CASE("a sender writes its turns once enough waits for it have ended awake", "[channel][notifications]") {
  far_pair two;
  int messages = 0;
  while (!two.pass_awake() && messages < 100) ++messages;
  CHECK(messages == 16);
  for (int turn = 0; turn < 10; ++turn) CHECK(two.pass_awake());
  CHECK_FALSE(two.waiting.c.knows(1, 0));
}

TEST_CASE("none is invited to write by RMA_BARRIER=messages, nor where waits do not spin", "[channel][notifications]") {
  far_pair two(GENERATE(as<std::string>(), "messages", "auto"), 1);
  for (int turn = 0; turn < 100; ++turn) CHECK_FALSE(two.pass_awake());
}

TEST_CASE("RMA_BARRIER=words invites at once, and after each sleep", "[channel][notifications]") {
  far_pair two("words", GENERATE(0U, 1U));
  CHECK_FALSE(two.pass_awake());
  for (int turn = 0; turn < 3; ++turn) CHECK(two.pass_awake());
  two.waiting.around.on_sleep = [&] {
    two.sender.progress();
    two.sender.report();
  };
  CHECK(two.wait() == status::done);
  two.sender.progress();
  CHECK(two.pass_awake());
}

TEST_CASE("who goes to sleep is told by a message", "[channel][notifications]") {
  far_pair two;
  two.come_to_write();
  int sleeps = 0;
  std::uint64_t sent = 0;
  two.waiting.around.on_sleep = [&] {
    two.sender.progress();
    if (++sleeps != 2) return;
    sent = two.sender.sent();
    two.sender.report();
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

TEST_CASE("a turn that was written while the recall was on its way is heard, lost or not", "[channel][notifications]") {
  far_pair two;
  two.come_to_write();
  two.sender.net.loses_words = GENERATE(false, true);
  const bool drops = GENERATE(false, true);  // it was the last run, as the sender sees it
  int sleeps = 0;
  two.waiting.around.on_sleep = [&] {
    if (++sleeps != 1) return;
    two.sender.report();
    if (drops) two.sender.c.drop();
    two.sender.progress();
  };
  CHECK(two.wait() == status::done);
  CHECK(sleeps == 1);
}

TEST_CASE("an answer to a recall brings nothing that was not said", "[channel][notifications]") {
  far_pair two;
  two.come_to_write();
  if (GENERATE(false, true)) two.sender.c.at->written->out[0].tag = 0;  // it knows nothing of an invitation
  int sleeps = 0;
  two.waiting.around.on_sleep = [&] {
    two.sender.progress();
    if (++sleeps == 3) two.waiting.around.dying = {0};
  };
  CHECK(two.wait() == status::peer_failed);  // not told this turn
  CHECK_FALSE(two.waiting.c.knows(0, 0));
}

TEST_CASE("progress finds a word that is written during a wait", "[channel][notifications]") {
  far_pair two;
  two.come_to_write();
  ++two.waiting.c.at->turn;
  two.waiting.c.begin_wait();
  REQUIRE_FALSE(two.waiting.c.begins_to_await(0, 0));
  const int before = two.waiting.c.heard;
  two.sender.report();
  two.waiting.progress();
  CHECK(two.waiting.c.heard == before + 1);
}

TEST_CASE("a rank that does not look at words is notified by a message", "[channel][notifications]") {
  far_pair two;
  two.come_to_write();
  ++two.waiting.c.at->turn;
  REQUIRE_FALSE(two.waiting.c.begins_to_await(0, 0));  // and recalls the invitation
  const int before = two.waiting.c.heard;
  const bool is_recalled_late = GENERATE(false, true);  // its answer names the turn that it has written
  if (is_recalled_late) two.sender.report();
  two.sender.progress();
  two.waiting.progress();
  CHECK(two.waiting.c.heard == before + (is_recalled_late ? 1 : 0));
  if (!is_recalled_late) two.sender.report();
  two.waiting.progress();
  CHECK(two.waiting.c.heard == before + 1);
}

TEST_CASE("a word counts for its invitation, and for this turn and the next", "[channel][notifications]") {
  word64 w{};
  notifications::incoming_word in;
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

TEST_CASE("offers of words that make no sense are refused", "[channel][notifications]") {
  far_pair two;
  struct {
    std::uint64_t id = name, address = 0, key = 0;
    std::uint32_t round = 0, tag = 7, turn = 1, what = 0;
  } word_grant;
  const auto post = [&](std::size_t cut) {
    const std::span<const std::byte> head(reinterpret_cast<const std::byte*>(&word_grant), sizeof word_grant - cut);
    REQUIRE(two.sender.net.send(1, static_cast<std::uint16_t>(message::notification_word), head, {}) == status::done);
    two.waiting.progress();
  };
  post(1);
  word_grant.round = notifications::rounds_max;
  post(0);
  word_grant.round = 0;
  word_grant.what = 3;
  post(0);
  CHECK(two.waiting.ctx.value(counter::messages_refused) == 3);
  word_grant.what = 0;
  word_grant.id = name + 1;  // name of an object that is not there any more
  post(0);
  CHECK(two.waiting.ctx.value(counter::messages_refused) == 3);
}
