// SPDX-License-Identifier: Apache-2.0
// Goal: the duties, looks before a sleep and reports of several users do not disturb each other.
// Method: one context; the users are counters.
#include "channel/hooks.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "channel/fakes.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

/// A user of every kind of hook.
struct hook_user {
  hook_user(context& c, std::string name) : ctx(c), called(std::move(name)) {
    ctx.add_duty(&hook_user::serve, this);
    ctx.add_before_sleep(&hook_user::sleep, this);
    ctx.add_describer(&hook_user::describe, this);
  }
  static unsigned serve(void* self) noexcept {
    auto& me = *static_cast<hook_user*>(self);
    ++me.served;
    me.ctx.on_duty(&me, me.stays);
    if (me.due_ns != 0) me.ctx.call_duty_at(me.due_ns);
    return me.finds;
  }
  static void sleep(void* self) noexcept { ++static_cast<hook_user*>(self)->slept; }
  static std::string describe(void* self) { return static_cast<hook_user*>(self)->called; }

  context& ctx;
  std::string called;
  bool stays = false;
  unsigned finds = 0;
  std::int64_t due_ns = 0;
  int served = 0, slept = 0;
};

}  // namespace

TEST_CASE("each duty is called while its own user has one", "[channel][context]") {
  rma::test::fake_rank rank(0);
  hook_user a(rank.ctx, "a"), b(rank.ctx, "b");
  CHECK(rank.ctx.progress() == 0);
  CHECK(a.served + b.served == 0);
  a.stays = true;
  a.finds = 2;
  b.finds = 3;
  rank.ctx.on_duty(&b, true);
  CHECK(rank.ctx.progress() == 3);
  rank.ctx.on_duty(&a, true);
  rank.ctx.on_duty(&b, true);
  CHECK(rank.ctx.progress() == 5);  // b's ends by itself
  CHECK(rank.ctx.progress() == 2);
  CHECK(a.served == 2);
  CHECK(b.served == 2);
  rank.ctx.on_duty(&a, false);
  CHECK(rank.ctx.progress() == 0);
}

TEST_CASE("a sleep is no longer than the earliest duty wants, and all are told of it", "[channel][context]") {
  rma::test::fake_rank rank(0);
  hook_user a(rank.ctx, "a"), b(rank.ctx, "b"), gone(rank.ctx, "gone");
  rank.ctx.remove_before_sleep(&gone);
  rank.ctx.remove_before_sleep(&gone);  // it has none any more
  std::int64_t slept_at_ns = 0;
  rank.around.on_sleep = [&] { slept_at_ns = slept_at_ns == 0 ? rank.around.peek_ns() : slept_at_ns; };
  for (hook_user* const each : {&a, &b}) {
    each->stays = true;
    rank.ctx.on_duty(each, true);
  }
  const std::int64_t since_ns = rank.around.peek_ns();
  a.due_ns = since_ns + 90'000'000;
  b.due_ns = since_ns + 50'000'000;
  const auto fails = []() noexcept { return status::done; };
  CHECK(rank.ctx.wait(
            {.until = [&]() noexcept { return slept_at_ns != 0; }, .fails_if = fails, .woken_by = wakes::memory}) ==
        status::done);
  CHECK(slept_at_ns <= b.due_ns);
  CHECK(rank.around.sleeps == 1);
  CHECK(a.slept == 1);
  CHECK(b.slept == 1);
  CHECK(gone.slept == 0);
}

TEST_CASE("a rank that is in calls of several users says all of them", "[channel][context]") {
  rma::test::fake_rank rank(0);
  hook_user a(rank.ctx, "a fence"), b(rank.ctx, ""), c(rank.ctx, "a receive");
  rank.ctx.set_call("a barrier");
  CHECK(rank.ctx.where() == "a fence; a receive");
  a.called = c.called = "";
  CHECK(rank.ctx.where() == "a barrier");
}
