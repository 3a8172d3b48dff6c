// SPDX-License-Identifier: Apache-2.0
// Goal: messages arrive in order even if there was no room for them, and every wait ends: by what it waits for, by a
// death, by the end of the job.
// Method: two contexts in one thread; what the other rank does happens while this one would sleep.
#include "channel/context.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "channel/fakes.hpp"
#include "channel/node_barrier.hpp"
#include "heard_errors.hpp"

using namespace rma;
using namespace rma::detail;
using rma::test::fake_pair;

namespace {

/// Keeps the numbers that come in.
struct numbers {
  explicit numbers(context& ctx, message kind = message::notify) { ctx.set_handler(kind, &numbers::take, this); }
  static void take(void* self, int source, std::span<const std::byte> payload) noexcept {
    auto& me = *static_cast<numbers*>(self);
    std::uint32_t number = 0;
    if (payload.size() != sizeof number) return;
    std::memcpy(&number, payload.data(), sizeof number);
    me.came.push_back(number);
    me.source = source;
  }
  std::vector<std::uint32_t> came;
  int source = -1;
};

void send(context& ctx, int to, std::uint32_t number, message kind = message::notify) {
  const std::lock_guard guard(ctx.lock());
  ctx.send_record(to, kind, number);
}

std::vector<std::uint32_t> first_numbers(std::uint32_t count) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("messages that find no room wait and stay in order", "[channel][context]") {
  fake_pair two;
  numbers at_b(two.b.ctx);
  for (std::uint32_t i = 0; i < 50; ++i) send(two.a.ctx, 1, i);
  CHECK(two.a.ctx.value(counter::messages_sent) == 50);
  CHECK(two.a.ctx.value(counter::sends_queued) == 50 - two.a.net.room);
  while (two.b.ctx.progress() != 0) {
    const auto had = at_b.came.size();
    // A later message must not overtake those that wait, although there is room again.
    if (had < 40) send(two.a.ctx, 1, static_cast<std::uint32_t>(50 + had / 4 - 1));
    two.a.ctx.progress();
  }
  auto expected = first_numbers(static_cast<std::uint32_t>(at_b.came.size()));
  CHECK(at_b.came == expected);
  CHECK(at_b.came.size() >= 50);
  CHECK(at_b.source == 0);
}

TEST_CASE("messages that wait take no new memory when as many have waited before", "[channel][context]") {
  fake_pair two;
  numbers at_b(two.b.ctx);
  std::size_t reserved = 0;
  for (unsigned round = 0; round < 5; ++round) {
    for (std::uint32_t i = 0; i < 500; ++i) send(two.a.ctx, 1, i);
    CHECK(two.a.ctx.peer_of(1).waiting_count() == 500 - two.a.net.room);
    if (round == 0) reserved = two.a.ctx.unsent_bytes();
    while (two.b.ctx.progress() != 0) two.a.ctx.progress();
    CHECK(two.a.ctx.peer_of(1).waiting_count() == 0);
    CHECK(two.a.ctx.unsent_bytes() == reserved);
    CHECK(at_b.came == first_numbers(500));
    at_b.came.clear();
  }
  CHECK(reserved != 0);
}

TEST_CASE("messages to a rank that is gone do not pile up", "[channel][context]") {
  fake_pair two;
  for (std::uint32_t i = 0; i < 100; ++i) send(two.a.ctx, 1, i);
  const std::size_t reserved = two.a.ctx.unsent_bytes();
  two.a.around.left = {1};
  for (unsigned round = 0; round < 10; ++round) {
    two.a.ctx.progress();
    CHECK(two.a.ctx.peer_of(1).waiting_count() == 0);
    for (std::uint32_t i = 0; i < 50; ++i) send(two.a.ctx, 1, i);
  }
  CHECK(two.a.ctx.unsent_bytes() == reserved);
}

TEST_CASE("messages of no known kind are refused, and their sender gets to know", "[channel][context]") {
  fake_pair two;
  numbers at_b(two.b.ctx);
  const std::byte byte{1};
  REQUIRE(two.a.net.send(1, 0xffff, {}, {&byte, 1}) == status::done);
  REQUIRE(two.a.net.send(1, static_cast<std::uint16_t>(message::reply), {}, {&byte, 1}) == status::done);
  send(two.a.ctx, 1, 7);
  while (two.b.ctx.progress() != 0) {}
  CHECK(at_b.came == std::vector<std::uint32_t>{7});
  CHECK(two.b.ctx.value(counter::messages_received) == 3);
  CHECK(two.b.ctx.value(counter::messages_refused) == 2);
  while (two.a.ctx.progress() != 0) {}
  CHECK(two.a.ctx.value(counter::malformed_notices) == 2);
  CHECK(two.a.ctx.peer_of(1).malformed_notices.load() == 2);
}

TEST_CASE("operations done in one round are acknowledged by one message", "[channel][context]") {
  fake_pair two;
  numbers acknowledged(two.a.ctx, message::acknowledge);
  struct server {
    context* ctx;
    static void serve(void* self, int source, std::span<const std::byte>) noexcept {
      static_cast<server*>(self)->ctx->defer_ack(source);
    }
  } at_b{&two.b.ctx};
  two.b.ctx.set_handler(message::operation, &server::serve, &at_b);
  for (std::uint32_t i = 0; i < 3; ++i) send(two.a.ctx, 1, i, message::operation);
  two.b.ctx.progress();
  send(two.a.ctx, 1, 3, message::operation);
  two.b.ctx.progress();
  two.b.ctx.progress();
  two.a.ctx.progress();
  CHECK(acknowledged.came == std::vector<std::uint32_t>{3, 1});
}

TEST_CASE("what a fabric has ended goes on by itself, and may send", "[channel][context]") {
  fake_pair two;
  numbers at_b(two.b.ctx);
  struct receive : fabric::completion {
    context* ctx = nullptr;
    status result = status::not_yet;
    static void end(fabric::completion& self, status result, std::uint64_t bytes) noexcept {
      auto& me = static_cast<receive&>(self);
      me.result = result;
      me.ctx->send_record(1, message::notify, static_cast<std::uint32_t>(bytes));
    }
  };
  receive first, second;
  for (receive* const each : {&first, &second}) {
    each->run = &receive::end;
    each->ctx = &two.a.ctx;
  }
  fabric::network& net = two.a.net;
  REQUIRE(net.post_bulk_receive(1, {}, token_of(first)) == status::posted);
  REQUIRE(net.post_bulk_receive(1, {}, 0) == status::posted);  // nobody goes on
  REQUIRE(net.post_bulk_receive(1, {}, token_of(second)) == status::posted);
  two.a.net.end_next(status::done, 7);
  two.a.net.end_next(status::done, 8);
  CHECK(first.result == status::not_yet);
  CHECK(two.a.ctx.progress() == 2);
  CHECK(first.result == status::done);
  CHECK(second.result == status::not_yet);
  two.a.net.end_next(status::message_too_long, 0);
  CHECK(two.a.ctx.progress() == 1);
  CHECK(second.result == status::message_too_long);
  CHECK(two.b.ctx.progress() == 2);
  CHECK(at_b.came == std::vector<std::uint32_t>{7, 0});
}

TEST_CASE("an immediate goes to the user that its top bits name, without them", "[channel][context]") {
  fake_pair two;
  struct note {
    std::vector<std::uint32_t> values;
    static void take(void* self, int, std::uint32_t value) noexcept {
      static_cast<note*>(self)->values.push_back(value);
    }
  } fences, programs;
  two.b.ctx.set_immediate(immediate_user::fence, &note::take, &fences);
  two.b.ctx.set_immediate(immediate_user::program, &note::take, &programs);
  two.b.ctx.on_immediate(0, immediate_of(immediate_user::fence, 0));
  two.b.ctx.on_immediate(0, immediate_of(immediate_user::program, immediate_value_max));
  two.b.ctx.on_immediate(0, immediate_of(immediate_user::fence, immediate_value_max));
  two.b.ctx.on_immediate(0, immediate_of(immediate_user::program, 5));
  CHECK(fences.values == std::vector<std::uint32_t>{0, immediate_value_max});
  CHECK(programs.values == std::vector<std::uint32_t>{immediate_value_max, 5});
  CHECK(two.b.ctx.value(counter::messages_refused) == 0);
  two.b.ctx.on_immediate(0, immediate_of(immediate_user::collectives, 5));  // this rank has none
  CHECK(two.b.ctx.value(counter::messages_refused) == 1);
  CHECK(two.a.ctx.progress() == 1);
  CHECK(two.a.ctx.value(counter::malformed_notices) == 1);
}

TEST_CASE("a wait ends when what it waits for comes while it sleeps", "[channel][context]") {
  fake_pair two;
  numbers at_a(two.a.ctx);
  two.a.around.on_sleep = [&] { send(two.b.ctx, 0, 5); };
  const status s = two.a.ctx.wait({.until = [&]() noexcept { return !at_a.came.empty(); }});
  CHECK(s == status::done);
  CHECK(two.a.around.sleeps == 1);
  CHECK_FALSE(two.a.around.is_inside);
}

TEST_CASE("news between the last look and the sleep are not slept over", "[channel][context]") {
  fake_pair two;
  bool ready = false;
  SECTION("in memory") {
    two.a.around.on_arm = [&] { ready = true; };
    CHECK(two.a.ctx.wait({.until = [&]() noexcept { return ready; }, .woken_by = wakes::memory}) == status::done);
  }
  SECTION("by message") {
    numbers at_a(two.a.ctx);
    two.a.around.on_arm = [&] { send(two.b.ctx, 0, 5); };
    CHECK(two.a.ctx.wait({.until = [&]() noexcept { return !at_a.came.empty(); }, .woken_by = wakes::memory}) ==
          status::done);
  }
  CHECK(two.a.around.sleeps == 0);
  CHECK(two.a.around.retracts == 1);
}

TEST_CASE("the predicate is not called again after it was true", "[channel][context]") {
  fake_pair two;
  int tries = 0;
  int taken = 0;
  const status s = two.a.ctx.wait({.until =
                                       [&]() noexcept {
                                         if (++tries < 1000) return false;
                                         ++taken;
                                         return true;
                                       },
                                   .woken_by = wakes::memory});
  CHECK(s == status::done);
  CHECK(taken == 1);
  CHECK(tries == 1000);
}

TEST_CASE("a death ends the waits that depend on it, and the job is told", "[channel][context]") {
  fake_pair two;
  SECTION("seen by this rank") {
    two.a.around.on_sleep = [&] { two.a.around.dying = {1}; };
    CHECK(two.a.ctx.wait({.until = []() noexcept { return false; }, .peer = 1}) == status::peer_failed);
    CHECK(two.a.boot.reported == std::vector<int>{1});
  }
  SECTION("told by the job") {
    two.a.around.on_sleep = [&] { two.a.boot.dying = {1}; };
    CHECK(two.a.ctx.wait({.until = []() noexcept { return false; }, .peer = 1}) == status::peer_failed);
    CHECK(two.a.boot.reported.empty());
  }
  SECTION("seen by the fabric") {
    two.a.around.on_sleep = [&] { two.a.ctx.report_lost(1); };
    CHECK(two.a.ctx.wait({.until = []() noexcept { return false; }, .peer = 1}) == status::peer_failed);
    CHECK(two.a.boot.reported == std::vector<int>{1});
    CHECK(two.a.ctx.last_failed() == 1);
  }
  SECTION("seen twice") {
    two.a.around.dying = {1};
    two.a.boot.dying = {1};
    CHECK(two.a.ctx.wait({.until = []() noexcept { return false; }, .peer = 1}) == status::peer_failed);
    two.a.ctx.report_lost(1);
  }
  CHECK(two.a.ctx.dead(1));
  CHECK(two.a.ctx.gone(1));
  CHECK(two.a.ctx.deaths() == 1);
  CHECK(two.a.ctx.dead_ranks() == std::vector<int>{1});
  CHECK_FALSE(two.a.ctx.dead(0));
}

TEST_CASE("who left in good order is gone and not dead", "[channel][context]") {
  fake_pair two;
  two.a.around.on_sleep = [&] { two.a.around.left = {1}; };
  CHECK(two.a.ctx.wait({.until = []() noexcept { return false; }, .peer = 1}) == status::peer_failed);
  CHECK(two.a.ctx.gone(1));
  CHECK_FALSE(two.a.ctx.dead(1));
}

TEST_CASE("a message that came before its sender's death counts", "[channel][context]") {
  fake_pair two;
  numbers at_a(two.a.ctx);
  const status s = two.a.ctx.wait({.until = [&]() noexcept { return !at_a.came.empty(); },
                                   .fails_if =
                                       [&]() noexcept {
                                         send(two.b.ctx, 0, 5);
                                         return status::peer_failed;
                                       }});
  CHECK(s == status::done);
}

// The news of a departure is faster than a network may be.
TEST_CASE("what a rank said before it left is waited for", "[channel][context]") {
  rma::test::fake_rank left(1), stays(0);
  rma::test::fake_network memory(0);
  left.net.connect(0, stays.net);
  rma::detail::context ctx(stays.config, stays.boot, memory, stays.around, &stays.net);
  numbers came(ctx);
  int sleeps = 0;
  stays.around.left = {1};
  stays.net.unheard = {1};
  const std::int64_t since_ns = stays.around.peek_ns();
  const auto wait = [&] { return ctx.wait({.until = [&]() noexcept { return !came.came.empty(); }, .peer = 1}); };
  SECTION("it comes after the news") {
    stays.around.on_sleep = [&] {
      if (++sleeps == 2) send(left.ctx, 0, 5);
    };
    CHECK(wait() == status::done);
  }
  SECTION("its goodbye comes, and nothing before") {
    stays.around.on_sleep = [&] {
      if (++sleeps == 2) stays.net.unheard.clear();
    };
    CHECK(wait() == status::peer_failed);
  }
  SECTION("nothing comes") {
    CHECK(wait() == status::peer_failed);
    CHECK(stays.around.peek_ns() - since_ns < 1'000'000'000);
  }
  SECTION("the job ends") {
    stays.around.on_sleep = [&] { stays.boot.job = status::job_aborted; };
    int sleeps_after = -1;
    stays.around.on_look = [&] { sleeps_after += stays.boot.job == status::job_aborted ? 1 : 0; };
    CHECK(wait() == status::job_aborted);
    CHECK(sleeps_after == 0);
  }
  SECTION("nothing can come any more") {
    stays.net.unheard.clear();
    CHECK(wait() == status::peer_failed);
    CHECK(stays.around.sleeps == 0);
  }
}

TEST_CASE("the end of the job ends every wait", "[channel][context]") {
  fake_pair two;
  two.a.around.on_sleep = [&] { two.a.boot.job = status::job_aborted; };
  CHECK(two.a.ctx.wait({.until = []() noexcept { return false; }, .woken_by = wakes::memory}) == status::job_aborted);
  CHECK_FALSE(two.a.around.is_inside);
}

TEST_CASE("a promised message is handled before the rank leaves the library", "[channel][context]") {
  fake_pair two;
  struct server {
    rma::test::fake_network* net;
    int served = 0;
    static void serve(void* self, int, std::span<const std::byte>) noexcept {
      ++static_cast<server*>(self)->served;
      static_cast<server*>(self)->net->promise_kept();
    }
  } at_a{&two.a.net};
  two.a.ctx.set_handler(message::operation, &server::serve, &at_a);
  bool ready = false;
  SECTION("the message comes") {
    two.a.around.on_arm = [&] {
      two.a.net.promises = 1;
      send(two.b.ctx, 0, 1, message::operation);
      ready = true;
    };
    CHECK(two.a.ctx.wait({.until = [&]() noexcept { return ready; }, .woken_by = wakes::memory}) == status::done);
    CHECK(at_a.served == 1);
    CHECK_FALSE(two.a.net.owes_delivery());
  }
  SECTION("its sender has lost its core for a second") {
    const std::int64_t begin_ns = two.a.around.peek_ns();
    two.a.around.on_arm = [&] {
      two.a.net.promises = 1;
      ready = true;
    };
    two.a.around.on_yield = [&] {
      if (at_a.served == 0 && two.a.around.peek_ns() > begin_ns + 1'000'000'000)
        send(two.b.ctx, 0, 1, message::operation);
    };
    CHECK(two.a.ctx.wait({.until = [&]() noexcept { return ready; }, .woken_by = wakes::memory}) == status::done);
    CHECK(at_a.served == 1);
  }
  SECTION("its sender died: the wait ends all the same") {
    two.a.around.on_arm = [&] {
      two.a.net.promises = 1;
      two.a.around.dying = {1};
      ready = true;
    };
    two.a.around.on_look = [&] {
      if (!two.a.around.dying.empty()) two.a.net.promises = 0;  // which a fabric does when it sees a death
    };
    CHECK(two.a.ctx.wait({.until = [&]() noexcept { return ready; }, .woken_by = wakes::memory}) == status::done);
    CHECK(at_a.served == 0);
  }
}

TEST_CASE("a rank leaves the library when its answers have found room", "[channel][context]") {
  fake_pair two;
  numbers at_b(two.b.ctx, message::reply);
  bool ready = false;
  two.a.around.on_arm = [&] { ready = true; };
  const auto wait = [&] {
    return two.a.ctx.wait({.until = [&]() noexcept { return ready; }, .woken_by = wakes::memory});
  };
  SECTION("the other reads, in its own time") {
    for (std::uint32_t i = 0; i < 20; ++i) send(two.a.ctx, 1, i, message::reply);
    unsigned yields = 0;
    two.a.around.on_yield = [&] {
      if (ready && ++yields % 100 == 0) two.b.ctx.progress();
    };
    CHECK(wait() == status::done);
    while (two.b.ctx.progress() != 0) {}
    CHECK(at_b.came == first_numbers(20));
  }
  SECTION("the other dies") {
    for (std::uint32_t i = 0; i < 20; ++i) send(two.a.ctx, 1, i, message::reply);
    two.a.around.on_yield = [&] { two.a.around.left = {1}; };
    CHECK(wait() == status::done);
  }
  SECTION("its own questions keep nobody") {
    for (std::uint32_t i = 0; i < 20; ++i) send(two.a.ctx, 1, i);
    CHECK(wait() == status::done);
    two.b.ctx.progress();
    CHECK(two.a.ctx.value(counter::sends_queued) == 20 - two.a.net.room);
  }
}

TEST_CASE("what waits for room is sent at the end, however late the other reads, and not to the dead",
          "[channel][context]") {
  fake_pair two;
  numbers at_b(two.b.ctx);
  for (std::uint32_t i = 0; i < 20; ++i) send(two.a.ctx, 1, i);
  SECTION("the other reads") {
    two.a.around.on_sleep = [&] { two.b.ctx.progress(); };
    two.a.ctx.drain(true);
    while (two.b.ctx.progress() != 0) {}
    CHECK(at_b.came == first_numbers(20));
  }
  SECTION("the other reads late") {
    const std::int64_t late_ns = two.a.around.peek_ns() + 100'000'000'000;
    two.a.around.on_sleep = [&] {
      if (two.a.around.peek_ns() > late_ns) two.b.ctx.progress();
    };
    two.a.ctx.drain(true);
    while (two.b.ctx.progress() != 0) {}
    CHECK(at_b.came == first_numbers(20));
  }
  SECTION("who leaves by an exception is not kept by one that reads no more") {
    two.a.ctx.drain(false);  // comes back
    CHECK(two.a.around.sleeps > 0);
  }
  SECTION("the other is gone") {
    two.a.around.left = {1};
    two.a.ctx.drain(true);
    CHECK(two.a.around.sleeps == 0);
  }
}

TEST_CASE("progress leaves the work to who is at it", "[channel][context]") {
  fake_pair two;
  numbers at_b(two.b.ctx);
  send(two.a.ctx, 1, 1);
  {
    const std::lock_guard busy(two.b.ctx.lock());
    unsigned found = 1;
    std::thread([&] { found = two.b.ctx.progress(); }).join();
    CHECK(found == 0);
  }
  CHECK(at_b.came.empty());
  CHECK(two.b.ctx.progress() == 1);
}

namespace {

/// A rank on a network which waits for one just like it, question by question. A sleeper wakes up late.
struct mirrored_rank {
  static constexpr std::int64_t trip_ns = 7'000, wake_ns = 370'000;

  mirrored_rank() {
    around.look_ns = 1'000;
    around.wakes = true;
    around.on_sleep = [this] { around.pass(std::max<std::int64_t>(answer_ns - around.peek_ns(), 0) + wake_ns); };
  }
  /// Waits for an answer; true if it slept. The other one has slept if this one has, and computes for so long.
  bool ask(std::int64_t computes_ns = 0) {
    const int slept_before = around.sleeps;
    answer_ns = around.peek_ns() + trip_ns + computes_ns + (slept ? wake_ns : 0);
    CHECK(ctx.wait({.until = [this]() noexcept { return around.peek_ns() >= answer_ns; }}) == status::done);
    return slept = around.sleeps != slept_before;
  }

  settings config{Config{.environment = false}};
  rma::test::fake_boot boot{0};
  rma::test::fake_network near{0}, far{0};
  rma::test::fake_platform around;
  context ctx{config, boot, near, around, &far};
  std::int64_t answer_ns = 0;
  bool slept = true;
};

}  // namespace

TEST_CASE("ranks that answer each other quickly do not stay asleep because they wake up slowly", "[channel][context]") {
  mirrored_rank rank;
  (void)rank.ask(50'000'000);
  unsigned asleep = 0;
  for (unsigned i = 0; i < 100; ++i) asleep += rank.ask() ? 1 : 0;
  CHECK(asleep < 20);
}

TEST_CASE("a rank whose peers take long spins no longer than it is told", "[channel][context]") {
  mirrored_rank rank;
  for (unsigned i = 0; i < 100; ++i) (void)rank.ask();
  for (unsigned i = 0; i < 20; ++i) (void)rank.ask(50'000'000);
  std::int64_t spun_ns = -1;
  const auto sleep = rank.around.on_sleep;
  rank.around.on_sleep = [&] {
    if (spun_ns < 0) spun_ns = rank.around.peek_ns();
    sleep();
  };
  const std::int64_t since_ns = rank.around.peek_ns();
  CHECK(rank.ask(50'000'000));
  CHECK(spun_ns - since_ns < 2 * 1000 * static_cast<std::int64_t>(rank.config.number(knob::spin_us)));
}

TEST_CASE("who waits for ranks that may be running on the other cores does not let its neighbors run first",
          "[channel][context]") {
  rma::test::fake_rank rank(0, 2);
  unsigned yields = 0;
  rma::detail::last_ranks_spin spin;
  rank.around.on_yield = [&yields] { ++yields; };
  const auto yields_for = [&](std::uint64_t missing, unsigned looks) {
    yields = 0;
    unsigned looked = 0;
    const auto ready = [&looked, looks]() noexcept { return ++looked == looks; };
    if (!spin.met(missing, rank.ctx.cores(), ready))
      CHECK(rank.ctx.wait({.until = ready, .woken_by = wakes::memory}) == status::done);
    return yields;
  };
  CHECK(yields_for(1, 100) == 0);
  CHECK(yields_for(2, 100) > 0);    // one of them is on this core
  CHECK(yields_for(1, 1'000) > 0);  // nor does it wait for long
  unsigned without = 0;             // and then not at all, for a while
  while (yields_for(1, 100) > 0) ++without;
  CHECK(without > 1);
}

TEST_CASE("a sleeper is woken and waited for, but not for ever", "[channel][context]") {
  using fabric::delivery_guarantee;
  rma::test::fake_pair two;
  two.a.around.look_ns = 1'000;
  unsigned looks = 0;
  SECTION("it wakes up") {
    two.a.net.on_reserve = [&] {
      return two.a.around.rings == 0 || ++looks < 10 ? delivery_guarantee::asleep : delivery_guarantee::certain;
    };
    CHECK(two.a.ctx.reserve_delivery_awake(1, 8) == delivery_guarantee::certain);
    CHECK(two.a.around.rings == 1);
  }
  SECTION("it computes when it has woken up") {
    two.a.net.on_reserve = [&] {
      return two.a.around.rings == 0 ? delivery_guarantee::asleep : delivery_guarantee::none;
    };
    CHECK(two.a.ctx.reserve_delivery_awake(1, 8) == delivery_guarantee::none);
  }
  SECTION("it does not get a core") {
    two.a.net.on_reserve = [] { return delivery_guarantee::asleep; };
    const std::int64_t since_ns = two.a.around.peek_ns();
    CHECK(two.a.ctx.reserve_delivery_awake(1, 8) == delivery_guarantee::asleep);
    CHECK(two.a.around.peek_ns() - since_ns < 1'000'000);
  }
  SECTION("where cores are short it is left alone") {
    rma::test::fake_rank oversubscribed(0, 2);
    oversubscribed.net.connect(1, two.b.net);
    oversubscribed.net.on_reserve = [] { return delivery_guarantee::asleep; };
    CHECK(oversubscribed.ctx.reserve_delivery_awake(1, 8) == delivery_guarantee::asleep);
    CHECK(oversubscribed.around.rings == 0);
  }
}

// Goal: the line about a silent target counts from the last sign of life, not from the last sleep, which ends now and
// then by itself. Break: count from the end of the last sleep (idle_since_ns in context::wait_slow).
TEST_CASE("a wait for a silent rank is reported once, with its whole length", "[channel][context]") {
  fake_pair two;
  auto& around = two.a.around;
  unsigned asked = 0;
  around.on_sleep = [&] {
    if (around.sleeps == 2) around.look_ns = 1;  // the rest takes no time
  };
  const rma::test::heard_errors errors;
  std::string said_before_its_end;
  const auto answered = [&]() noexcept {
    if (around.sleeps < 2 || ++asked <= 2'000) return false;
    said_before_its_end = errors.text();
    return true;
  };
  CHECK(two.a.ctx.wait({.until = answered, .peer = 1}) == status::done);
  const std::string said = errors.text();
  CHECK(said.find("rma: rank 0 has waited 1") == 0);  // hundred ms: a sleep
  CHECK(said.find(": rank 1 makes no call of the library") != std::string::npos);
  CHECK(said_before_its_end == said);
  asked = 0;
  around.sleeps = 0;
  around.look_ns = 1'000'000;
  CHECK(two.a.ctx.wait({.until = answered, .peer = 1}) == status::done);
  CHECK(errors.text() == said);
}
