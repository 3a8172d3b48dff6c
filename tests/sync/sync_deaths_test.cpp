// SPDX-License-Identifier: Apache-2.0
// Goal: a rank that dies in the middle of a synchronization gives its peers peer_failed, never a hang; what it held of
// a target can be had again.
// Method: simulated ranks, some of which are killed at a known moment of virtual time.
// Break: leave out what waiters do when they hear of a death; leave has_to_look_ out of fail_if_lost.
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using namespace std::chrono_literals;
using window = rma::Window<std::uint64_t>;
using rma::status;

void expect(status found, status wanted, const char* what) {
  if (found == wanted) return;
  throw std::runtime_error(std::string(what) + ": " + std::string(name_of(found)) + ", not " +
                           std::string(name_of(wanted)));
}

/// Rank `victim` computes for ever and is killed at 10 ms.
void all_well(int ranks, int per_node, int victim, const std::string& fence,
              const std::function<void(rma::Runtime&)>& play) {
  rma::sim::Config job{.ranks = ranks, .ranks_per_node = per_node};
  job.settings["RMA_FENCE"] = fence;
  job.kills.push_back({victim, 10ms});
  job.limit = 20s;
  const auto out = rma::sim::run(job, play);
  INFO(out.text());
  CHECK(out.ok());
}

void live_on(rma::Runtime& rt) {
  for (;;) rt.compute(1s);
}

}  // namespace

TEST_CASE("a dead holder of a range fails its waiters once", "[deaths][range]") {
  const int per_node = GENERATE(1, 4);
  all_well(4, per_node, 1, "auto", [](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    if (rt.rank() == 1) win.lock_range(rma::exclusive, 0, 0, 16);
    rt.world().barrier();
    if (rt.rank() == 1) live_on(rt);
    if (rt.rank() == 0) {
      expect(win.wait_signal_nothrow(0, 1, 2), status::done, "the signal of who got it");  // answers meanwhile
      rt.compute(5s);  // its memory is there for the unlock
    } else if (rt.rank() == 2) {
      expect(win.lock_range_nothrow(rma::exclusive, 0, 32, 8), status::done, "a range that nobody holds");
      expect(win.lock_range_nothrow(rma::exclusive, 0, 8, 8), status::peer_failed, "a range of the dead");
      expect(win.lock_range_nothrow(rma::exclusive, 0, 8, 8), status::done, "the same again");
      const std::vector<std::uint64_t> seven(1, 7);
      win.put_signal(std::span<const std::uint64_t>(seven), 0, 1, 0);
      expect(win.try_unlock_range(0, 8, 8), status::done, "its unlock");
      expect(win.try_unlock_range(0, 32, 8), status::done, "unlock");
    }
  });
}

TEST_CASE("a death ends the wait for any of several signals, and the exchanges of a team", "[deaths][signal]") {
  const int per_node = GENERATE(1, 4);
  all_well(4, per_node, 1, "auto", [](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    rt.world().barrier();
    if (rt.rank() == 1) live_on(rt);
    const unsigned signals[] = {3, 5};
    if (rt.rank() == 2) {
      const auto hold = win.lock(rma::shared, 0);
      win.put_signal({}, 0, 0, 5);
    } else if (rt.rank() == 0) {
      std::size_t which = 0;
      expect(win.wait_any_signal_nothrow(signals, which, 1, 2), status::done, "signals of the living");
      if (which != 1) throw std::runtime_error("not the signal that was raised");
      expect(win.wait_any_signal_nothrow(signals, which, 1, 1), status::peer_failed, "signals of the dead");
    }
    const auto fails = [](const char* what, const std::function<void()>& exchange) {
      try {
        exchange();
        throw std::runtime_error(std::string(what) + " with a dead member");
      } catch (const rma::Error& e) {
        expect(e.code(), status::peer_failed, what);
      }
    };
    const std::vector<int> mine(4, rt.rank());
    fails("alltoall", [&] { (void)rt.world().alltoall(std::span(mine)); });
    fails("scan", [&] { (void)rt.world().scan(1, rma::sum); });
    fails("allgatherv", [&] { (void)rt.world().allgatherv(std::span(mine)); });
  });
}

TEST_CASE("a death ends an ifence, with each design", "[deaths][fence]") {
  const std::string fence = GENERATE("placed", "def", "imm-naive", "imm-opt", "imm-ri");
  all_well(5, 1, 2, fence, [](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    win.fence();
    if (rt.rank() == 2) live_on(rt);
    for (int r = 0; r < rt.size(); ++r) (void)win.try_put(std::uint64_t{1}, r, 0);
    rma::Request request;
    try {
      request = win.ifence();
    } catch (const rma::Error& e) {
      expect(e.code(), status::peer_failed, "ifence");
      return;
    }
    expect(request.wait_nothrow(), status::peer_failed, "wait of an ifence");
  });
}

TEST_CASE("a fence among neighbors fails for the neighbors of the dead only", "[deaths][fence]") {
  all_well(6, 1, 2, "auto", [](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    const int other[] = {rt.rank() ^ 1};  // pairs: 0 1, 2 3, 4 5
    win.neighbors(other, other);
    win.fence_neighbors();
    rt.world().barrier();
    if (rt.rank() == 2) live_on(rt);
    (void)win.try_put(std::uint64_t{1}, other[0], 0);
    expect(win.try_fence_neighbors(), rt.rank() == 3 ? status::peer_failed : status::done, "fence_neighbors");
    rt.compute(1s);
    if (rt.rank() != 3) expect(win.try_fence_neighbors(), status::done, "a fence of others after the death");
  });
}

TEST_CASE("a start that fails leaves the posts of the living to the next one", "[deaths][start]") {
  const int per_node = GENERATE(1, 3);
  all_well(3, per_node, 2, "auto", [](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    if (rt.rank() == 2) live_on(rt);
    const int origin[] = {0}, living[] = {1}, both[] = {1, 2};
    if (rt.rank() == 1) {
      win.post(origin);
      expect(win.wait_nothrow(), status::done, "wait for an origin whose first start failed");
      expect(win[3] == 7 ? status::done : status::bad_size, status::done, "what that origin has put");
    } else {
      expect(win.try_start(both), status::peer_failed, "start towards the dead, too");
      expect(win.try_start(living), status::done, "start towards the living");
      win.put(std::uint64_t{7}, 1, 3);
      expect(win.try_complete(), status::done, "complete");
    }
  });
}

namespace {

/// wait(), or test() again and again.
status end_exposure(rma::Runtime& rt, window& win, bool by_test) {
  if (!by_test) return win.wait_nothrow();
  status s = status::not_yet;
  while ((s = win.try_test()) == status::not_yet) rt.compute(1ms);
  return s;
}

}  // namespace

// Break: in lost_origin, take whoever is gone; in exposure_state, look at the dead alone.
TEST_CASE("an origin may leave once it has completed; if it has not, the exposure fails", "[leaves][wait]") {
  const int per_node = GENERATE(1, 3);
  const bool by_test = GENERATE(false, true);
  const bool completes = GENERATE(false, true);
  const auto out = rma::sim::run({.ranks = 3, .ranks_per_node = per_node}, [=](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    const int target[] = {0}, both[] = {1, 2};
    rt.world().barrier();
    if (rt.rank() == 0) {
      expect(win.try_post(both), status::done, "post");
      expect(end_exposure(rt, win, by_test), completes ? status::done : status::peer_failed, "the exposure");
    } else if (rt.rank() == 1 || completes) {
      expect(win.try_start(target), status::done, "start");
      if (rt.rank() == 1) rt.compute(2s);  // the other one has left by then
      expect(win.try_complete(), status::done, "complete");
    }
  });
  INFO(out.text());
  CHECK(out.ok());
}

TEST_CASE("a dead origin fails one exposure, not the next", "[deaths][wait]") {
  const int per_node = GENERATE(1, 3);
  const bool by_test = GENERATE(false, true);
  all_well(3, per_node, 2, "auto", [by_test](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    if (rt.rank() == 2) live_on(rt);
    const int target[] = {0}, living[] = {1}, both[] = {1, 2};
    const auto wait = [&]() { return end_exposure(rt, win, by_test); };
    if (rt.rank() == 1) {
      for (int i = 0; i < 2; ++i) {
        expect(win.try_start(target), status::done, "start");
        expect(win.try_complete(), status::done, "complete");
      }
    } else {
      expect(win.try_post(both), status::done, "post");
      expect(wait(), status::peer_failed, "wait for the dead, too");
      expect(win.try_post(living), status::done, "post to the living");
      expect(wait(), status::done, "wait for the living");
    }
  });
}

TEST_CASE("a split in which a rank dies that has done its part ends alike on the others", "[deaths][team]") {
  const int per_node = GENERATE(1, 4);
  const bool alone = GENERATE(true, false);  // in the new team; else with the others
  all_well(4, per_node, 2, "auto", [alone](rma::Runtime& rt) {
    rma::Team world = rt.world();
    // The data that rank 0 has gathered go to rank 3 after rank 2 has died in there, and before that is news.
    if (rt.rank() == 3) rt.compute(20ms);
    rma::Team part = world.split(alone || rt.rank() == 2 ? rt.rank() : 0);
    part.barrier();
    rma::Team alive = world.shrink();
    rma::Team again = world.shrink();
    expect(alive.size() == 3 && again.size() == 3 ? status::done : status::bad_size, status::done, "shrink");
    alive.barrier();
    again.barrier();
    alive.barrier();
  });
}

TEST_CASE("whoever is told of a death by an operation is told whose it was", "[deaths][transfer]") {
  const bool held = GENERATE(true, false);          // a value that is fetched in a lock's epoch goes a shorter way
  const bool wide = held && GENERATE(true, false);  // a get of many values is ended by its flush
  all_well(3, 1, 1, "auto", [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 1000);
    win.fence();
    if (rt.rank() == 1) live_on(rt);
    if (held) expect(win.lock_all_nothrow(), status::done, "lock_all");
    std::vector<std::uint64_t> values(1000);
    try {
      for (;;) {
        if (!wide) (void)win.get(1, 3);
        if (wide) win.get(std::span(values), 1, 0);
        if (wide) win.flush(1);
      }
    } catch (const rma::Error& e) {
      expect(e.code(), status::peer_failed, "get");
      if (e.rank() != 1) throw std::runtime_error(std::string("told of another one: ") + e.what());
    }
  });
}

TEST_CASE("a dead holder fails an ilock", "[deaths][lock]") {
  const int per_node = GENERATE(1, 3);
  all_well(3, per_node, 1, "auto", [](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    if (rt.rank() == 1) expect(win.lock_nothrow(rma::exclusive, 0), status::done, "lock");
    rt.world().barrier();
    if (rt.rank() == 1) live_on(rt);
    if (rt.rank() == 0) rt.compute(5s);
    if (rt.rank() != 2) return;
    rma::Request request = win.ilock(rma::exclusive, 0);
    expect(request.wait_nothrow(), status::peer_failed, "ilock of what a dead rank holds");
  });
}

TEST_CASE("a dead waiter is not woken instead of one that lives", "[deaths][lock]") {
  std::chrono::nanoseconds unlocked{}, locked{};
  all_well(3, 3, 1, "auto", [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8);
    if (rt.rank() == 0) expect(win.lock_nothrow(rma::exclusive, 0), status::done, "lock");
    rt.world().barrier();
    if (rt.rank() == 0) {
      rt.compute(350ms);  // sleepers look again every 100 ms: not now
      unlocked = rt.now();
      expect(win.try_unlock(0), status::done, "unlock");
    } else {
      expect(win.lock_nothrow(rma::exclusive, 0), status::done, "a lock whose other waiter has died");
      locked = rt.now();
    }
  });
  CHECK(unlocked.count() > 0);
  CHECK(locked - unlocked < 1ms);
}

// The waiter sees the hold in the word, pauses, and hears of the death before it looks again.
TEST_CASE("who lets go of a network lock and dies at once fails nobody", "[deaths][lock]") {
  const std::string scheme = GENERATE("word", "fompi");
  const bool by_request = GENERATE(false, true);
  int failed = 0;
  for (std::chrono::nanoseconds dies_at = 99ms; dies_at < 108ms; dies_at += 53us) {
    rma::sim::Config job{.ranks = 3, .ranks_per_node = 1};
    job.settings["RMA_LOCK"] = "network:" + scheme;
    job.kills.push_back({1, dies_at});
    job.limit = 20s;
    const auto out = rma::sim::run(job, [&](rma::Runtime& rt) {
      auto win = window::allocate(rt.world(), 8);
      if (rt.rank() == 1) expect(win.lock_nothrow(rma::exclusive, 0), status::done, "lock");
      rt.world().barrier();
      if (rt.rank() == 1) {
        rt.compute(dies_at - 30us - rt.now());
        expect(win.try_unlock(0), status::done, "unlock");
        live_on(rt);
      } else if (rt.rank() == 2) {
        const status s = by_request ? win.ilock(rma::exclusive, 0).wait_nothrow() : win.lock_nothrow(rma::exclusive, 0);
        if (s != status::done) ++failed;
        if (s == status::done) expect(win.try_unlock(0), status::done, "unlock");
      } else {
        rt.compute(300ms);
      }
    });
    INFO(out.text());
    CHECK(out.ok());
  }
  CHECK(failed == 0);
}
