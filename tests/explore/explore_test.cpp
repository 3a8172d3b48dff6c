// SPDX-License-Identifier: Apache-2.0
// The shared-memory protocols under all schedules with a bounded number of preemptions.
#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>
#include <vector>

#include "explorer.hpp"

using rma::Window;
using rma::explore::explore;
using rma::explore::player;
using rma::explore::scenario;
using rma::explore::verdict;

namespace {

/// EXPLORE_PREEMPTIONS=3 takes minutes.
unsigned preemptions() {
  const char* const text = std::getenv("EXPLORE_PREEMPTIONS");
  return text == nullptr ? 2 : static_cast<unsigned>(std::atoi(text));
}

/// The repetitions in a scenario: with three preemptions only still smaller worlds can be searched through.
std::uint64_t rounds() { return preemptions() > 2 ? 1 : 2; }
int ranks_max() { return preemptions() > 2 ? 2 : 3; }

void all_hold(const verdict& v, std::uint64_t runs_min) {
  INFO(v.failure);
  INFO(v.runs << " schedules, at most " << v.steps_max << " steps");
  CHECK(v.failure.empty());
  CHECK(v.runs >= runs_min / rounds());
  CHECK(v.runs < scenario{}.runs_max);  // all of them
}

}  // namespace

TEST_CASE("an exclusive lock has one holder", "[explore][lock]") {
  const int ranks = GENERATE(range(2, ranks_max() + 1));
  all_hold(explore({.ranks = ranks, .preemptions = preemptions()},
                   [](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), 2);
                     me.begin();
                     {
                       auto epoch = win.lock(rma::exclusive, 0);
                       auto* const word = win.pointer_to(0);
                       const std::uint64_t before = word[0]++;
                       rma::detail::explore_point();
                       me.check(word[1] == before, "two holders of an exclusive lock");
                       word[1] = before + 1;
                     }
                     me.rt.world().barrier();
                     me.check(win.pointer_to(0)[1] == static_cast<std::uint64_t>(me.rt.size()), "an update is lost");
                     win.free();
                   }),
           500);
}

// Everybody who has to wait is the heir at once, or waits for its turn to be.
TEST_CASE("an exclusive lock that is handed over has one holder", "[explore][lock]") {
  const int ranks = GENERATE(range(2, ranks_max() + 1));
  all_hold(explore({.ranks = ranks, .preemptions = preemptions(), .settings = {{"RMA_LOCK_BYPASSES", "0"}}},
                   [](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), 2);
                     me.begin();
                     for (std::uint64_t i = 0; i < rounds(); ++i) {
                       auto epoch = win.lock(rma::exclusive, 0);
                       auto* const word = win.pointer_to(0);
                       const std::uint64_t before = word[0]++;
                       rma::detail::explore_point();
                       me.check(word[1] == before, "two holders of an exclusive lock");
                       word[1] = before + 1;
                     }
                     me.rt.world().barrier();
                     me.check(win.pointer_to(0)[1] == rounds() * static_cast<std::uint64_t>(me.rt.size()),
                              "an update is lost");
                     win.free();
                   }),
           500);
}

TEST_CASE("readers and writers to whom a lock is handed over", "[explore][lock]") {
  all_hold(explore({.ranks = ranks_max(), .preemptions = preemptions(), .settings = {{"RMA_LOCK_BYPASSES", "0"}}},
                   [](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), 2);
                     if (me.rt.rank() == 0) win.lock(rma::exclusive, 0).unlock();  // readers are counted
                     me.begin();
                     auto* const word = win.pointer_to(0);
                     if (me.rt.rank() == 0) {
                       auto epoch = win.lock(rma::exclusive, 0);
                       ++word[0];
                       rma::detail::explore_point();
                       ++word[1];
                     } else {
                       auto epoch = win.lock(rma::shared, 0);
                       const std::uint64_t first = word[0];
                       rma::detail::explore_point();
                       me.check(word[1] == first, "a reader beside a writer");
                     }
                     me.rt.world().barrier();
                     win.free();
                   }),
           500);
}

TEST_CASE("readers never see half of a writer's update", "[explore][lock]") {
  all_hold(explore({.ranks = 2, .preemptions = preemptions()},
                   [](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), 2);
                     me.begin();
                     for (std::uint64_t i = 0; i < rounds(); ++i) {
                       auto* const word = win.pointer_to(0);
                       if (me.rt.rank() == 0) {
                         auto epoch = win.lock(rma::exclusive, 0);
                         ++word[0];
                         rma::detail::explore_point();
                         ++word[1];
                       } else {
                         auto epoch = win.lock(rma::shared, 0);
                         const std::uint64_t first = word[0];
                         rma::detail::explore_point();
                         me.check(word[1] == first, "a reader beside a writer");
                       }
                     }
                     me.rt.world().barrier();
                     win.free();
                   }),
           500);
}

TEST_CASE("lock_all against an exclusive lock", "[explore][lock]") {
  all_hold(explore({.ranks = 2, .preemptions = preemptions()},
                   [](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), 2);
                     me.begin();
                     if (me.rt.rank() == 0) {
                       auto epoch = win.lock(rma::exclusive, 1);
                       auto* const word = win.pointer_to(1);
                       ++word[0];
                       rma::detail::explore_point();
                       ++word[1];
                     } else {
                       auto epoch = win.lock_all();
                       const auto first = win.get(1, 0);
                       rma::detail::explore_point();
                       me.check(win.get(1, 1) == first, "a reader beside a writer");
                     }
                     me.rt.world().barrier();
                     win.free();
                   }),
           200);
}

TEST_CASE("updates under a stripe's lock are exact, and those who wait for it are counted", "[explore][atomics]") {
  std::uint64_t waits = 0;
  all_hold(explore({.ranks = 2, .preemptions = preemptions(), .settings = {{"RMA_ACCUMULATE", "striped"}}},
                   [&waits](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), 4);
                     win.fence();
                     me.begin();
                     const std::array<std::uint64_t, 4> ones{1, 1, 1, 1};
                     win.accumulate(std::span<const std::uint64_t>(ones), 0, 0, rma::sum);
                     win.accumulate(std::span<const std::uint64_t>(ones), 0, 0, rma::sum);
                     win.fence(rma::no_succeed);
                     if (me.rt.rank() == 0) me.check(win[0] == 4 && win[3] == 4, "an update is lost");
                     win.free();
                     for (const rma::Counter& each : me.rt.counters()) {
                       if (each.name == "stripe_waits") waits += each.value;
                     }
                   }),
           200);
  CHECK(waits > 0);
}

// Each begins in a stripe of its own and meets the other in the third: it may find it free, held, or free again.
TEST_CASE("bulk updates of several stripes are exact where they overlap", "[explore][atomics]") {
  constexpr std::uint64_t per_stripe =
      (std::uint64_t{1} << rma::detail::stripe_shift_unless_hinted) / sizeof(std::uint64_t);
  constexpr std::uint64_t words = 4 * per_stripe;
  const std::vector<std::uint64_t> ones(words, 1);
  all_hold(explore({.ranks = 2, .preemptions = preemptions(), .settings = {{"RMA_ACCUMULATE", "striped"}}},
                   [&ones](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), words);
                     win.fence();
                     me.begin();
                     const std::uint64_t first = me.rt.rank() == 0 ? 1 : per_stripe + 1;
                     const std::span<const std::uint64_t> mine(ones.data(), 2 * per_stripe);
                     win.accumulate(mine, 0, first, rma::sum);
                     win.fence(rma::no_succeed);
                     for (std::uint64_t i = 0; me.rt.rank() == 0 && i < words; ++i) {
                       const bool mine_too = i >= 1 && i < 2 * per_stripe + 1;
                       const bool others_too = i >= per_stripe + 1 && i < 3 * per_stripe + 1;
                       me.check(win[i] == std::uint64_t{mine_too} + std::uint64_t{others_too}, "an update is lost");
                     }
                     win.free();
                   }),
           200);
}

TEST_CASE("the first bulk update beside single ones", "[explore][atomics]") {
  const int ranks = GENERATE(range(2, ranks_max() + 1));
  all_hold(
      explore(
          {.ranks = ranks, .preemptions = preemptions(), .inlined = true, .settings = {{"RMA_ACCUMULATE", "striped"}}},
          [](player& me) {
            constexpr std::uint64_t words = 9;
            auto win = Window<std::uint64_t>::allocate(me.rt.world(), words);
            win.fence();
            me.begin();
            if (me.rt.rank() == 0) {  // begins: one preemption less
              const std::uint64_t first = win.fetch_and_op(1, 0, 0, rma::sum);
              const std::uint64_t second = win.fetch_and_op(1, 0, 0, rma::sum);
              me.check(second > first, "a fetched value does not rise");
              win.accumulate(1, 0, words - 1, rma::sum);
            } else {
              const std::vector<std::uint64_t> ones(words, 1);
              win.accumulate(std::span<const std::uint64_t>(ones), 0, 0, rma::sum);
            }
            win.fence(rma::no_succeed);
            const auto bulk = static_cast<std::uint64_t>(me.rt.size() - 1);
            if (me.rt.rank() == 0) {
              me.check(win[0] == bulk + 2 && win[1] == bulk && win[words - 1] == bulk + 1, "an update is lost");
            }
            win.free();
          }),
      200);
}

TEST_CASE("a barrier holds everybody back", "[explore][barrier]") {
  const int ranks = GENERATE(range(2, ranks_max() + 1));
  all_hold(explore({.ranks = ranks, .preemptions = preemptions()},
                   [](player& me) {
                     auto win = Window<std::uint64_t>::allocate_shared(me.rt.world(), 1);
                     me.begin();
                     for (std::uint64_t round = 1; round <= rounds(); ++round) {
                       win[0] = round;
                       me.rt.world().barrier();
                       for (int r = 0; r < me.rt.size(); ++r) {
                         me.check(*win.pointer_to(r) >= round, "a rank left a barrier that another has not reached");
                       }
                     }
                     win.free();
                   }),
           100);
}

TEST_CASE("messages through a ring come whole, in order, and wake who sleeps", "[explore][ring]") {
  all_hold(explore({.ranks = 2, .preemptions = preemptions(), .settings = {{"RMA_ACCUMULATE", "handler"}}},
                   [](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), 2, {});
                     me.begin();
                     if (me.rt.rank() == 0) {
                       auto epoch = win.lock(rma::shared, 1);
                       for (std::uint64_t i = 0; i < rounds(); ++i) {
                         const auto before = win.fetch_and_op(std::uint64_t{1}, 1, 0, rma::sum);
                         me.check(before == i, "a message was lost or handled twice");
                       }
                       const std::array<std::uint64_t, 1> five{5};
                       win.put_signal(std::span<const std::uint64_t>(five), 1, 1, 0);
                     } else {
                       win.wait_signal(0);
                       me.check(win[0] == rounds() && win[1] == 5, "a signal came before its data");
                     }
                     win.free();
                   }),
           100);
}

TEST_CASE("post, start, complete and wait", "[explore][pscw]") {
  all_hold(explore({.ranks = 2, .preemptions = preemptions()},
                   [](player& me) {
                     auto win = Window<std::uint64_t>::allocate(me.rt.world(), 1);
                     me.begin();
                     const std::array<int, 1> other{1 - me.rt.rank()};
                     for (std::uint64_t round = 1; round <= rounds(); ++round) {
                       win.post(other);
                       win.start(other);
                       win.put(round, other[0], 0);
                       win.complete();
                       win.wait();
                       me.check(win[0] == round, "an epoch ended before its put, or a put came after it");
                     }
                     win.free();
                   }),
           200);
}

TEST_CASE("schedules that come to the same are left out, and no others", "[explore]") {
  using seen = std::array<std::uint64_t, 4>;
  std::set<seen> found[2];
  verdict v[2];
  for (const bool all : {false, true}) {
    seen now{};
    v[all] = explore({.ranks = 2, .preemptions = 2, .all = all}, [&](player& me) {
      auto win = Window<std::uint64_t>::allocate_shared(me.rt.world(), 2);
      const auto word = [&win](int rank, std::size_t at) -> rma::detail::word64& {
        return reinterpret_cast<rma::detail::word64*>(win.pointer_to(rank))[at];
      };
      const auto mine = static_cast<std::size_t>(me.rt.rank());
      const int other = 1 - me.rt.rank();
      me.begin();
      word(me.rt.rank(), 0).store(1);
      word(me.rt.rank(), 1).fetch_add(1);  // nobody else's
      now[2 * mine] = word(other, 0).load();
      word(me.rt.rank(), 0).store(2);
      now[2 * mine + 1] = word(0, 0).fetch_add(10);
      me.end();
      me.rt.world().barrier();
      if (me.rt.rank() == 0) found[all].insert(now);
      win.free();
    });
    CHECK(v[all].failure.empty());
  }
  CHECK(found[0] == found[1]);
  CHECK(found[0].size() > 8);
  CHECK(v[0].equal > 0);
  CHECK(v[0].runs < v[1].runs);
}

// The search can fail: a lock that looks and then takes, and a flag that is set without a look at who sleeps.
TEST_CASE("a lock that is looked at before it is taken is found out", "[explore][mutation]") {
  const verdict v = explore({.ranks = 2, .preemptions = 2}, [](player& me) {
    auto win = Window<std::uint64_t>::allocate_shared(me.rt.world(), 2);
    auto& lock = *reinterpret_cast<rma::detail::word64*>(win.pointer_to(0));
    std::uint64_t& holders = win.pointer_to(0)[1];
    me.begin();
    while (lock.load() != 0) continue;
    lock.store(1);
    me.check(++holders == 1, "two holders");
    rma::detail::explore_point();
    --holders;
    lock.store(0);
    me.rt.world().barrier();
    win.free();
  });
  CHECK(v.failure.find("two holders") != std::string::npos);
  CHECK(v.failure.find("schedule: preempted before steps") != std::string::npos);
}
