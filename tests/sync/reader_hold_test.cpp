// SPDX-License-Identifier: Apache-2.0
// Goal: a lock manager that holds the network word for its readers keeps writers out while they read, lets each of them
// in in its turn, leaves nothing behind, and gives back what a dead reader held. Method: every phase with every event
// and word; then simulated ranks. lock_agent_search_test walks all states.
#include "sync/reader_hold.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

using namespace rma;
using namespace rma::detail;
using namespace std::chrono_literals;

TEST_CASE("every phase of a lock manager's hold with every event and word", "[sync][reader_hold]") {
  using enum readers_phase;
  const std::uint64_t mine = network_hold(2, lock_kind::exclusive);
  const std::uint64_t writer = network_hold(7, lock_kind::exclusive);
  const auto in = [&](readers_phase phase) {
    readers_word r = readers_of(2);
    r.phase = phase;
    if (phase != none && phase != asking && phase != pausing) r.attempt.seen = mine;
    return r;
  };
  for (const readers_phase phase : {none, asking, pausing, held, looking, closed, leaving}) {
    const readers_word r = in(phase);
    CAPTURE(static_cast<int>(phase));
    CHECK(readers_enter(r) == (phase == held || phase == looking));
    CHECK(readers_ask(r) == (phase == asking || phase == looking || phase == leaving));
    CHECK(step(r, readers_event::wanted).phase == (phase == none ? asking : phase));
    CHECK(step(r, readers_event::unwanted).phase == (phase == pausing                   ? none
                                                     : phase == held || phase == closed ? leaving
                                                                                        : phase));
    CHECK(step(r, readers_event::turn).phase == (phase == pausing  ? asking
                                                 : phase == held   ? looking
                                                 : phase == closed ? held
                                                                   : phase));
    for (const std::uint64_t wanted : {std::uint64_t{0}, network_wanted}) {
      if (phase == asking) {
        CHECK(step(r, writer | wanted).phase == pausing);
        CHECK(step(r, wanted).phase == (wanted == 0 ? held : asking));  // the swap expects a word that nobody wants
      } else if (phase == looking) {
        CHECK(step(r, mine | wanted).phase == (wanted != 0 ? closed : held));
      } else if (phase == leaving) {
        CHECK(step(r, mine | wanted).phase == none);
        CHECK(step(r, mine | wanted).attempt.seen == wanted);
        readers_word bereft = r;
        bereft.bereft = true;
        const readers_word once = step(bereft, mine | wanted);
        CHECK(once.phase == (wanted == 0 ? none : leaving));
        const std::uint64_t left = wanted == 0 ? once.attempt.seen : step(once, mine | wanted).attempt.seen;
        CHECK(network_recoveries(left) == 1);
        CHECK((left & (network_holders_mask | network_writer)) == 0);
      } else {
        CHECK(step(r, writer | wanted).phase == phase);
      }
    }
  }
  for (const bool asked : {false, true}) {
    CHECK(readers_want(in(closed), true, asked) == readers_event::wanted);
    CHECK(readers_want(in(closed), false, asked) == readers_event::unwanted);
    CHECK(readers_want(in(held), false, asked) == (asked ? readers_event::wanted : readers_event::unwanted));
  }
  // A writer that waits when the readers leave comes first: the word is looked at, and taken when its time is over.
  readers_word r = step(in(leaving), mine | network_wanted);
  r = step(r, readers_event::wanted);
  CHECK(request_of(r).expected == request_of(r).operand);
  CHECK(step(r, writer).phase == pausing);
  CHECK(step(r, std::uint64_t{0}).phase == asking);  // it came and went
  r = step(r, network_wanted);
  CHECK(r.phase == pausing);
  CHECK(step(step(r, readers_event::turn), network_wanted).phase == pausing);  // looks again
  r = step(r, readers_event::yielded);
  CHECK(step(r, network_wanted).phase == held);
}

namespace {

void expect(status found, status wanted, const char* what) {
  if (found != wanted) throw std::runtime_error(std::string(what) + ": " + std::string(name_of(found)));
}

sim::Config job_of(const std::string& recovery) {
  sim::Config job{.ranks = 4, .ranks_per_node = 1};
  job.settings = {{"RMA_LOCK", "network:agent"}, {"RMA_LOCK_RECOVERY", recovery}};
  job.limit = 60s;
  return job;
}

}  // namespace

// Break: let serve() answer without asking reader_hold.
TEST_CASE("readers by a lock manager read together, and a writer gets between them", "[sync][reader_hold]") {
  int read = 0, before = 0, passed = 0;
  bool served = false;
  const auto outcome = sim::run(job_of("on"), [&](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 1);
    for (int i = 0; i < 3; ++i) {  // all in at once, or nobody gets out
      auto epoch = win.lock(shared, 0);
      rt.world().barrier();
    }
    if (rt.rank() >= 2) {  // two that take turns: one reads at any time
      if (rt.rank() == 3) rt.compute(20us);
      for (int i = 0; i < 20'000 && !served; ++i) {
        auto epoch = win.lock(shared, 0);
        rt.compute(40us);
        epoch.unlock();
        ++read;
      }
    } else if (rt.rank() == 1) {
      rt.compute(1ms);
      before = read;
      win.lock(exclusive, 0).unlock();
      passed = read - before;
      served = true;
    } else {
      while (!served) rt.progress();
    }
    rt.world().barrier();
    win.free();
  });
  INFO(outcome.text());
  CHECK(outcome.ok());
  CAPTURE(passed);
  CHECK(served);
  CHECK(passed <= 100);  // those of two turns, and of a writer's longest pause between two looks; 40'000 in all
}

TEST_CASE("a reader that dies is given up by the lock manager, or reported", "[sync][reader_hold][deaths]") {
  for (const char* const recovery : {"on", "off"}) {
    sim::Config job = job_of(recovery);
    job.kills.push_back({1, 10ms});
    const bool on = job.settings["RMA_LOCK_RECOVERY"] == "on";
    const auto outcome = sim::run(job, [&](Runtime& rt) {
      auto win = Window<std::uint64_t>::allocate(rt.world(), 1);
      if (rt.rank() == 1) expect(win.lock_nothrow(shared, 2), status::done, "lock");
      rt.world().barrier();
      if (rt.rank() == 1) rt.compute(100s);
      const auto until = rt.now() + 20s;
      if (rt.rank() != 3) {
        while (rt.now() < until) {
          rt.progress();
          rt.compute(1ms);
        }
        return;
      }
      expect(win.lock_nothrow(exclusive, 2), status::peer_failed, "a lock that a dead rank holds shared");
      rt.compute(1s);
      const status s = win.lock_nothrow(exclusive, 2);
      expect(s, on ? status::done : status::peer_failed, "the same again");
      if (s == status::done) expect(win.try_unlock(2), status::done, "unlock");
      const status reads = win.lock_nothrow(shared, 2);
      expect(reads, on ? status::done : status::peer_failed, "shared");
      if (reads == status::done) expect(win.try_unlock(2), status::done, "unlock");
    });
    INFO(outcome.text());
    CAPTURE(recovery);
    CHECK(outcome.ok());
  }
}
