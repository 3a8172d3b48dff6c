// SPDX-License-Identifier: Apache-2.0
// Goal: lock "auto" between nodes goes the way that has cost least, comes back when that changes, excludes others
// whatever way each takes, and survives a death at any moment of the lock's way home.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fabric/sim/fault_model.hpp"
#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using std::chrono::microseconds;
using window = rma::Window<std::uint64_t>;

rma::sim::Config job_of(int ranks, int ranks_per_node) {
  rma::sim::Config job;
  job.ranks = ranks;
  job.ranks_per_node = ranks_per_node;
  job.parameters = "dissertation-ddr";
  job.settings["RMA_PROGRESS_THREAD"] = "0";  // a target that computes does not answer
  return job;
}

double now_us(rma::Runtime& rt) { return static_cast<double>(rt.now().count()) / 1e3; }

/// The mean time of so many small epochs.
double epochs_us(rma::Runtime& rt, window& win, int target, int epochs) {
  const double begin_us = now_us(rt);
  for (int i = 0; i < epochs; ++i) {
    auto held = win.lock(rma::exclusive, target, rma::deferrable);
    win.put(std::uint64_t{1}, target, 0);
    held.unlock();
  }
  return (now_us(rt) - begin_us) / epochs;
}

}  // namespace

TEST_CASE("a lock goes where it costs least, and back", "[sync][lock_auto]") {
  double network_us = 0, manager_us = 0, away_us = 0, back_us = 0;
  std::uint64_t came = 0, went = 0;
  const auto outcome = rma::sim::run(job_of(2, 1), [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 1);
    if (rt.rank() == 0) {
      (void)epochs_us(rt, win, 1, 1);  // makes the connection
      network_us = epochs_us(rt, win, 1, 5);
      (void)epochs_us(rt, win, 1, 10);  // enough of them: it comes
      manager_us = epochs_us(rt, win, 1, 10);
      came = win.lock_counts().migrations;
    }
    rt.world().barrier();
    if (rt.rank() == 1) rt.compute(microseconds(5000));
    if (rt.rank() == 0) {
      rt.compute(microseconds(20));
      away_us = epochs_us(rt, win, 1, 1);
    }
    if (rt.rank() == 1) {
      for (int i = 0; i < 100; ++i) {
        rt.compute(microseconds(1000));
        rt.progress();
      }
    } else {
      (void)epochs_us(rt, win, 1, 4);  // these tell where the lock belongs
      back_us = epochs_us(rt, win, 1, 5);
      went = win.lock_counts().migrations;
    }
    rt.world().barrier();
    win.free();
  });
  INFO(outcome.text());
  REQUIRE(outcome.ok());
  CAPTURE(network_us, manager_us, away_us, back_us);
  CHECK(came == 1);
  CHECK(manager_us < 0.9 * network_us);  // one round trip for two
  CHECK(away_us > 10 * network_us);
  CHECK(went == 2);
  CHECK(back_us < 1.2 * network_us);
}

TEST_CASE("nobody is let in beside another, whatever way each goes", "[sync][lock_auto]") {
  constexpr std::size_t words = 4096;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    rma::sim::rng shape(seed);
    rma::sim::Config job = job_of(static_cast<int>(2 + shape.below(5)), static_cast<int>(1 + shape.below(3)));
    job.seed = seed;
    job.faults = seed % 2 == 0;
    std::uint64_t updates = 0, found = 0, migrations = 0;
    const auto outcome = rma::sim::run(job, [&](rma::Runtime& rt) {
      rma::sim::rng d(seed * 131 + static_cast<std::uint64_t>(rt.rank()));
      auto win = window::allocate(rt.world(), 1 + words);
      std::vector<std::uint64_t> bulk(words);
      for (int burst = 0; burst < 12; ++burst) {
        const int to = static_cast<int>(d.below(static_cast<std::uint64_t>(rt.size())));
        const std::uint64_t what = d.below(4);
        const int epochs = static_cast<int>(1 + d.below(24));
        for (int i = 0; i < epochs; ++i) {
          const bool deferrable = !d.one_in(4);
          auto held = win.lock(rma::exclusive, to, deferrable ? rma::deferrable : rma::assertion::none);
          // Small without a result: it may wait for its end, if deferrable. Else the lock is needed at once.
          if (what == 0) win.put(std::span<const std::uint64_t>(bulk), to, 1);
          if (what == 1) held.flush();
          if (what == 3) {
            win.accumulate(std::uint64_t{1}, to, 0, rma::sum);
          } else {
            const std::uint64_t before = win.get(to, 0);
            if (what == 2) rt.compute(microseconds(d.below(30)));
            win.put(before + 1, to, 0);
          }
          held.unlock();
          ++updates;
        }
        if (d.one_in(3)) rt.compute(microseconds(d.below(500)));
      }
      rt.world().barrier();
      found += win.local()[0];
      migrations += win.lock_counts().migrations;
      rt.world().barrier();
      win.free();
    });
    INFO("seed " << seed << "\n" << outcome.text());
    REQUIRE(outcome.ok());
    CHECK(found == updates);
    const bool is_hybrid = !job.faults || rma::sim::storm(seed).caps.atomics;  // else each lock stays with its target
    if (is_hybrid && job.ranks_per_node == 1 && job.ranks > 2) CHECK(migrations > 0);
  }
}

// Rank 0 brings the lock of rank 2 home, and dies at some moment of that; rank 1 wants it all the time.
TEST_CASE("a death on the lock's way home is mended", "[sync][lock_auto][deaths]") {
  int killed = 0;
  for (int at_us = 200; at_us < 1440; at_us += 3) {  // the window is there by then
    rma::sim::Config job = job_of(3, 1);
    job.limit = std::chrono::seconds(60);
    job.kills.push_back({0, microseconds(at_us)});
    bool served = false;
    const auto outcome = rma::sim::run(job, [&](rma::Runtime& rt) {
      auto win = window::allocate(rt.world(), 1);
      if (rt.rank() == 0) (void)epochs_us(rt, win, 2, 1000);
      if (rt.rank() == 1) {
        rt.compute(microseconds(3 * at_us % 200));
        for (int i = 0; i < 40; ++i) {
          try {
            (void)epochs_us(rt, win, 2, 1);
            rt.compute(microseconds(10));
          } catch (const rma::Error& e) {
            if (e.code() != rma::status::peer_failed) throw;
          }
        }
        (void)epochs_us(rt, win, 2, 3);  // the dead rank's holds have been given back
        served = true;
      }
      if (rt.rank() == 2) {
        while (!served) {
          rt.compute(microseconds(10));
          rt.progress();
        }
      }
    });
    INFO("dies at " << at_us << " us\n" << outcome.text());
    REQUIRE(outcome.stuck.empty());
    for (const auto& rank : outcome.ranks) killed += rank.fate == rma::sim::Fate::killed ? 1 : 0;
    CHECK(served);
  }
  CHECK(killed > 100);
}
