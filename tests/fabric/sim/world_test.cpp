// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/sim/handle.hpp"
#include "fabric/sim/small_world.hpp"
#include "rma/error.hpp"

namespace {

using namespace rma::sim;
using namespace rma::test;

/// Sleeps as a wait of the library does: looks around every 0.1 s.
void sleep_for_news(world& w, int rank, const std::function<bool()>& ready) {
  for (;;) {
    w.arm(rank);
    if (ready()) break;
    w.park(rank, w.local_time_ps(rank) + 100'000 * us);
    if (ready()) break;
  }
  w.got_on(rank);
}

}  // namespace

TEST_CASE("ranks live through what they owe in the order of time", "[fabric][sim][world]") {
  world w(ranks(3));
  std::string order;
  w.run([&](int r) {
    for (int turn = 0; turn < 2; ++turn) {
      work(w, r, (3 - r) * 10 * us);
      order += std::to_string(r);
    }
    return 0;
  });
  CHECK(order == "212010");  // 2 at 10 and 20, 1 at 20 and 40, 0 at 30 and 60: at 20 the one that settled first
  CHECK(w.events().now_ps() == 60 * us);
  CHECK(w.record(1).ended_ps == 40 * us);
  CHECK(w.record(0).spent_ps[static_cast<std::size_t>(activity::compute)] == 60 * us);
}

TEST_CASE("a charge is no switch", "[fabric][sim][world]") {
  world w(ranks(2));
  int running = -1;
  w.run([&](int r) {
    running = r;
    w.charge(r, 5 * us, activity::copy);
    CHECK(running == r);
    CHECK(w.local_time_ps(r) == w.events().now_ps() + 5 * us);
    w.pass_charged_time(r);
    CHECK(w.events().now_ps() == 5 * us);
    CHECK(w.local_time_ps(r) == 5 * us);
    return 0;
  });
}

TEST_CASE("a wake ends a sleep, later by what it costs", "[fabric][sim][world]") {
  world w(ranks(2));
  time_ps woken_ps = 0;
  bool said = false;
  w.run([&](int r) {
    if (r == 0) {
      work(w, 0, 30 * us);
      w.charge(0, 2 * us, activity::post);  // the wake takes effect where the caller is in time
      said = true;
      w.wake(1);
    } else {
      sleep_for_news(w, 1, [&] { return said; });
      woken_ps = w.events().now_ps();
    }
    return 0;
  });
  CHECK(woken_ps == 32 * us + w.options().machine.wake_time_ps);
  CHECK(w.deadlock().empty());
}

// Goal: a rank that polls pays for a wake only if it has slept.
// Method: the same news within the time for which it polls, and after it.
// Break: take the wake's time always.
TEST_CASE("a rank polls before it sleeps", "[fabric][sim][world]") {
  for (const auto& [at_ps, polls] : {std::pair{30 * us, true}, std::pair{50 * us, false}}) {
    auto options = ranks(2);
    options.machine.spin_time_ps = 40 * us;
    world w(options);
    bool said = false;
    time_ps woken_ps = 0;
    w.run([&](int r) {
      if (r == 0) {
        work(w, 0, at_ps);
        said = true;
        w.wake(1);
      } else {
        sleep_for_news(w, 1, [&] { return said; });
        woken_ps = w.events().now_ps();
      }
      return 0;
    });
    const auto& machine = w.options().machine;
    CHECK(woken_ps == at_ps + (polls ? machine.poll_time_ps : machine.wake_time_ps));
  }
}

// Goal: what happens between arm and park is not lost.
// Method: the sleeper owes time, so that park lets others run first; one of them wakes it just then.
TEST_CASE("a wake between arm and park is not lost", "[fabric][sim][world]") {
  world w(ranks(2));
  time_ps over_ps = 0;
  w.run([&](int r) {
    if (r == 0) {
      work(w, 0, 5 * us);
      w.wake(1);
    } else {
      w.arm(1);
      w.charge(1, 10 * us, activity::poll);
      w.park(1, never_ps);
      over_ps = w.events().now_ps();
    }
    return 0;
  });
  CHECK(over_ps == 10 * us);
  CHECK(w.deadlock().empty());
}

TEST_CASE("a sleep ends at its time", "[fabric][sim][world]") {
  world w(ranks(1));
  w.run([&](int) {
    for (const time_ps until : {70 * us, 80 * us, 75 * us, 200 * us}) {
      w.arm(0);
      const time_ps before = w.events().now_ps();
      w.park(0, until);
      CHECK(w.events().now_ps() == std::max(before, until));
    }
    return 0;
  });
  CHECK(w.events().now_ps() == 200 * us);
}

TEST_CASE("a copy does not wait for that of a rank which is ahead in time", "[fabric][sim][world]") {
  world_options o = ranks(2);
  o.machine = load_parameters("susukita");
  o.today.slow_rank = 0;
  o.today.slow_times = 50;
  world w(o);
  w.run([&](int r) {
    if (r == 0) w.charge(0, 1000 * us, activity::compute);
    const time_ps before = w.local_time_ps(r);
    for (int i = 0; i < 20; ++i) w.charge_copy(r, 6000, 0, activity::copy);  // 1 us each, alone
    const time_ps took = w.local_time_ps(r) - before;
    CHECK(took >= (r == 0 ? 1000 : 20) * us);
    CHECK(took <= (r == 0 ? 1000 : 28) * us);  // behind the traffic of the other, 7 us
    return 0;
  });
}

TEST_CASE("ranks that wait for each other are reported", "[fabric][sim][world]") {
  world w(ranks(3));
  w.run([&](int r) {
    if (r == 2) return 0;
    w.enter_call(r == 0 ? "flush" : "fence", r == 0 ? 1 : -1);
    sleep_for_news(w, r, [] { return false; });
    return 0;
  });
  INFO(w.deadlock());
  CHECK(w.deadlock().find("deadlock") == 0);
  CHECK(w.deadlock().find("rank 0 waits in flush (target 1)") != std::string::npos);
  CHECK(w.deadlock().find("rank 1 waits in fence") != std::string::npos);
  CHECK(w.deadlock().find("rank 2") == std::string::npos);
  CHECK(w.record(0).what == fate::running);
  CHECK(w.record(2).what == fate::finished);
}

TEST_CASE("a long computation of one rank is no deadlock of the others", "[fabric][sim][world]") {
  world w(ranks(2));
  bool said = false;
  w.run([&](int r) {
    if (r == 0) {
      work(w, 0, 100'000'000 * us);  // 100 s: a thousand looks around
      said = true;
      w.wake(1);
    } else {
      sleep_for_news(w, 1, [&] { return said; });
    }
    return 0;
  });
  CHECK(w.deadlock().empty());
  CHECK(w.record(1).what == fate::finished);
}

TEST_CASE("a run ends when the time is up", "[fabric][sim][world]") {
  world_options o = ranks(2);
  o.limit_ps = 50 * us;
  world w(o);
  w.run([&](int r) {
    while (r == 0) work(w, r, 7 * us);
    return 0;
  });
  CHECK(w.deadlock().find("the time is up") == 0);
  CHECK(w.events().now_ps() <= 50 * us);
}

TEST_CASE("a killed rank stops where it is", "[fabric][sim][world]") {
  struct counts {
    int* destroyed;
    ~counts() { ++*destroyed; }
  };
  world w(ranks(2));
  int destroyed = 0;
  int steps = 0;
  w.kill_at(1, 35 * us);
  w.run([&](int r) {
    const counts one{&destroyed};
    for (int i = 0; i < 10; ++i) {
      work(w, r, 10 * us);
      steps += r;
    }
    return 0;
  });
  CHECK(w.record(0).what == fate::finished);
  CHECK(w.record(1).what == fate::killed);
  CHECK(w.record(1).ended_ps == 35 * us);
  CHECK(steps == 3);
  CHECK(destroyed == 1);
  CHECK_FALSE(w.alive(1));
  CHECK(w.deaths() == std::vector<int>{1});
}

TEST_CASE("a rank may kill itself and others", "[fabric][sim][world]") {
  world w(ranks(3));
  w.run([&](int r) {
    if (r == 0) {
      work(w, 0, us);
      w.kill(2);
      w.kill(0);
      FAIL("a dead rank ran on");
    }
    work(w, r, 2 * us);
    return 0;
  });
  CHECK(w.deaths() == std::vector<int>{2, 0});
  CHECK(w.record(1).what == fate::finished);
}

TEST_CASE("what an exception says is kept", "[fabric][sim][world]") {
  world w(ranks(2));
  w.run([&](int r) {
    work(w, r, us);
    if (r == 1) throw std::runtime_error("no more");
    return 7;
  });
  CHECK(w.record(0).exit_code == 7);
  CHECK(w.record(1).what == fate::threw);
  CHECK(w.record(1).error == "no more");
}

TEST_CASE("an abort ends the run", "[fabric][sim][world]") {
  world w(ranks(3));
  int after = 0;
  w.run([&](int r) {
    work(w, r, (r + 1) * us);
    if (r == 1) w.abort(9, "enough");
    ++after;
    return 0;
  });
  CHECK(w.aborted());
  CHECK(w.abort_code() == 9);
  CHECK(after == 1);
}

TEST_CASE("a helper thread is a second fiber of its rank", "[fabric][sim][world]") {
  world w(ranks(2));
  std::string trace;
  w.run([&](int r) {
    if (r == 1) return 0;
    const std::size_t second = w.spawn(0, [&] {
      CHECK(w.running() == 0);
      work(w, 0, 10 * us);
      trace += 'c';
    });
    work(w, 0, 5 * us);  // both at the same time: a second processor
    trace += 'm';
    w.join(second);
    trace += 'j';
    return 0;
  });
  CHECK(trace == "mcj");
}

// Goal: the same options give the same run.
// Method: ranks that wake each other in an order drawn by each; the whole trace is compared.
TEST_CASE("a run repeats itself", "[fabric][sim][world]") {
  const auto trace_of = [] {
    world w(ranks(7));
    std::string trace;
    std::vector<int> told(7, 0);
    w.run([&](int r) {
      std::uint64_t random = static_cast<std::uint64_t>(r) + 1;
      for (int i = 0; i < 200; ++i) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        work(w, r, static_cast<time_ps>(random >> 45));
        const int other = static_cast<int>((random >> 33) % 7);
        ++told[static_cast<std::size_t>(other)];
        w.wake(other);
        w.arm(r);
        if (told[static_cast<std::size_t>(r)] == 0) w.park(r, w.local_time_ps(r) + 3 * us);
        trace += std::to_string(r) + ":" + std::to_string(w.events().now_ps()) + " ";
      }
      return 0;
    });
    return trace;
  };
  const std::string first = trace_of();
  CHECK(first.size() > 7 * 200 * 4);
  CHECK(first == trace_of());
}

TEST_CASE("ranks are laid out on nodes in blocks", "[fabric][sim][world]") {
  world_options o = ranks(10);
  o.ranks_per_node = 4;
  const world w(o);
  CHECK(w.nodes() == 3);
  CHECK(w.node_of(3) == 0);
  CHECK(w.node_of(8) == 2);
  CHECK(w.ranks_of(2) == std::vector<int>{8, 9});
  o.ranks_per_node = 0;
  CHECK(world(o).nodes() == 1);
}

TEST_CASE("a job that cannot be made is refused", "[fabric][sim][world]") {
  world_options none = ranks(0);
  CHECK_THROWS_AS(world(none), rma::Error);
  world_options small = ranks(1);
  small.stack_bytes = 100;
  CHECK_THROWS_AS(world(small), rma::Error);
}

TEST_CASE("a handle is checked before it is used", "[fabric][sim][world]") {
  world w(ranks(3));
  const std::string good = make_handle(w, 2);
  CHECK(parse_handle(good).job == &w);
  CHECK(parse_handle(good).rank == 2);
  std::string wrong_rank = good;
  wrong_rank.replace(wrong_rank.find('-') + 1, 1, "1");
  for (const std::string& bad :
       {std::string(), std::string("sim://"), std::string("sim://1-2-3"), good + "0", good.substr(0, good.size() - 1),
        wrong_rank, "local://" + good, good + " ", std::string("sim://ffffffffffffffffffffff-0-0")}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_handle(bad), rma::Error);
  }
}
