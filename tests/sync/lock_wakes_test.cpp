// SPDX-License-Identifier: Apache-2.0
// Goal: who waits for a lock of memory has it soon after it is free, though nobody rings it: a writer that readers have
// kept for so long that it let others in again (src/sync/lock_cpu.hpp), by itself or by a lock manager; and a rank
// whose wake has gone to another one, which computes while its ilock is pending.
//
// Method: simulated ranks; the lock is held for times around which the writer comes and goes; virtual time tells how
// long after the last holder it was got. A sleeper looks by itself after 100 ms.
//
// Break: let cpu_machine wait for a bell only, withdrawn or not; call no duty of a
// lock manager whose wait is out; let will_look be true of all.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using namespace std::chrono_literals;

/// When the last holder let go, and when who waited had the lock.
struct moments {
  std::chrono::nanoseconds free_at{}, had_at{};

  void check(const rma::sim::Outcome& outcome, std::chrono::nanoseconds most) const {
    INFO(outcome.text());
    REQUIRE(outcome.ok());
    CAPTURE(free_at.count(), had_at.count());
    CHECK(had_at >= free_at);
    CHECK(had_at - free_at < most);
  }
};

}  // namespace

TEST_CASE("a writer that has let readers in again has the lock soon after them", "[sync][lock_wakes]") {
  const std::chrono::nanoseconds kept = GENERATE(200us, 900us, 1100us, 1500us, 2200us, 3700us, 30ms, 230ms);
  const int readers = GENERATE(1, 3);
  const bool by_request = GENERATE(false, true);
  moments seen;
  const rma::sim::Config job{.ranks = readers + 1};
  const auto outcome = rma::sim::run(job, [&](rma::Runtime& rt) {
    auto win = rma::Window<std::uint64_t>::allocate(rt.world(), 1);
    std::optional<rma::Epoch> held;
    const bool reads = rt.rank() != 0;
    if (reads) held.emplace(win.lock(rma::shared, 0));
    rt.world().barrier();
    if (reads) {
      rt.compute(kept * rt.rank());
      held.reset();
      if (rt.rank() == readers) seen.free_at = rt.now();
    } else {
      if (by_request) {
        win.ilock(rma::exclusive, 0).wait();
      } else {
        held.emplace(win.lock(rma::exclusive, 0));
      }
      seen.had_at = rt.now();
      if (by_request) win.iunlock(0).wait();
    }
    held.reset();
    rt.world().barrier();
    win.free();
  });
  CAPTURE(readers, by_request, kept.count());
  seen.check(outcome, 2ms);  // it comes back after 1 ms
}

TEST_CASE("so has a lock manager that waits for a rank of another node", "[sync][lock_wakes]") {
  const std::chrono::nanoseconds kept = GENERATE(200us, 900us, 1500us, 3700us, 30ms, 230ms);
  const int readers = GENERATE(1, 3);
  const std::string lock = GENERATE("cpu", "hybrid");
  moments seen;
  rma::sim::Config job{.ranks = readers + 2, .ranks_per_node = readers + 1};
  job.settings["RMA_LOCK"] = lock;
  const auto outcome = rma::sim::run(job, [&](rma::Runtime& rt) {
    auto win = rma::Window<std::uint64_t>::allocate(rt.world(), 1);
    std::optional<rma::Epoch> held;
    const bool reads = rt.rank() >= 1 && rt.rank() <= readers;
    if (reads) held.emplace(win.lock(rma::shared, 0));
    rt.world().barrier();
    if (reads) {
      rt.compute(kept * rt.rank());
      held.reset();
      if (rt.rank() == readers) seen.free_at = rt.now();
    } else if (rt.rank() != 0) {
      held.emplace(win.lock(rma::exclusive, 0));
      win.fetch_and_op(1, 0, 0, rma::sum);
      seen.had_at = rt.now();
    }
    held.reset();
    rt.world().barrier();
    win.free();
  });
  CAPTURE(lock, readers, kept.count());
  seen.check(outcome, 2ms);
}

TEST_CASE("a rank that computes while its ilock is pending keeps the wake from nobody", "[sync][lock_wakes]") {
  const int pending = GENERATE(1, 3);  // ranks that compute; the last one waits
  const rma::lock_kind first = GENERATE(rma::exclusive, rma::shared);
  moments seen;
  const rma::sim::Config job{.ranks = pending + 2};
  const auto outcome = rma::sim::run(job, [&](rma::Runtime& rt) {
    auto win = rma::Window<std::uint64_t>::allocate(rt.world(), 1);
    std::optional<rma::Epoch> held;
    if (rt.rank() == 0) {
      win.lock(rma::exclusive, 0).unlock();  // readers are counted from here on
      held.emplace(win.lock(first, 0));
    }
    rt.world().barrier();
    if (rt.rank() == 0) {
      rt.compute(500us);
      held.reset();
      seen.free_at = rt.now();
    } else if (rt.rank() <= pending) {
      rma::Request wanted = win.ilock(rma::exclusive, 0);
      for (int i = 0; i < 100; ++i) (void)wanted.test();
      rt.compute(40ms);
      wanted.wait();
      win.iunlock(0).wait();
    } else {
      rt.compute(100us);
      held.emplace(win.lock(rma::exclusive, 0));
      seen.had_at = rt.now();
      held.reset();
    }
    rt.world().barrier();
    win.free();
  });
  CAPTURE(pending, first == rma::shared);
  seen.check(outcome, 1ms);
}
