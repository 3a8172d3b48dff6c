// SPDX-License-Identifier: Apache-2.0
// Goal: events run in order of time, at one time in order of posting, whatever their number and distances.
// Method: random posts, also from running events, against a stable sort.
#include "fabric/sim/event_queue.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace rma::sim {
namespace {

struct journal {
  struct entry {
    time_ps when_ps;
    std::uint64_t number;
    bool operator==(const entry&) const = default;
  };
  event_queue events{};
  std::vector<entry> posted{};
  std::vector<entry> ran{};
  std::mt19937_64 random{};
  int exponent_max = 0;
  std::uint64_t posts_left = 0;

  void post(time_ps when_ps) {
    posted.push_back({when_ps, posted.size()});
    events.at(when_ps, &journal::run, this, posted.size() - 1);
  }
  /// From now to far away: each power of two is as likely as the next.
  time_ps some_time() {
    const auto below = std::uint64_t{1} << (random() % static_cast<unsigned>(exponent_max + 1));
    return events.now_ps() + static_cast<time_ps>(random() % below);
  }
  static void run(void* self, std::uint64_t number) noexcept {
    auto& me = *static_cast<journal*>(self);
    me.ran.push_back({me.events.now_ps(), number});
    for (int i = 0; i < 2 && me.posts_left > 0; ++i, --me.posts_left) me.post(me.some_time());
  }
};

}  // namespace

TEST_CASE("events run in order of time, then of posting", "[sim][event_queue]") {
  const auto seed = GENERATE(take(20, random(1U, 1U << 30)));
  const auto exponent = GENERATE(0, 3, 8, 20, 45);
  const auto at_first = GENERATE(1, 7, 8, 3000);
  CAPTURE(seed, exponent, at_first);
  journal of;
  of.random.seed(seed);
  of.exponent_max = exponent;
  of.posts_left = 3000;
  for (int i = 0; i < at_first; ++i) of.post(of.some_time());
  while (of.events.pending() > 0) {
    const time_ps next_ps = of.events.next_ps();
    const time_ps before_ps = of.events.now_ps();
    if (of.random() % 4 == 0) of.events.advance(before_ps + (next_ps - before_ps) / 2);
    REQUIRE(of.events.run_one());
    REQUIRE(of.events.now_ps() == next_ps);
  }
  CHECK(of.events.next_ps() == never_ps);
  CHECK_FALSE(of.events.run_one());
  CHECK(of.events.ran() == of.posted.size());
  std::stable_sort(of.posted.begin(), of.posted.end(), [](auto& a, auto& b) { return a.when_ps < b.when_ps; });
  CHECK(of.ran == of.posted);
}

TEST_CASE("time passes without events, and posts after it are in order", "[sim][event_queue]") {
  journal of;
  of.post(1'000'000);
  of.events.advance(999'000);
  CHECK(of.events.now_ps() == 999'000);
  of.post(999'500);
  of.post(999'000);
  CHECK(of.events.next_ps() == 999'000);
  while (of.events.run_one()) continue;
  CHECK(of.ran == std::vector<journal::entry>{{999'000, 2}, {999'500, 1}, {1'000'000, 0}});
}

}  // namespace rma::sim
