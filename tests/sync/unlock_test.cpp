// SPDX-License-Identifier: Apache-2.0
// Goal: an unlock of lock "network" goes out behind the epoch's writes instead of after their answers, and nothing of
// the epoch is seen too late for it, or changed too early.
// Method: simulated ranks on nodes of their own, virtual time, and faults that reorder what a network may reorder.
// Break: let the release follow gets, too (target_state::fetches), or do not wait for the writes after it.
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/sim/fault_model.hpp"
#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using window = rma::Window<std::uint64_t>;
constexpr std::size_t words = 4096;

rma::sim::Outcome play(rma::sim::Config job, const std::string& lock, const std::function<void(rma::Runtime&)>& part) {
  job.ranks_per_node = 1;
  job.limit = std::chrono::seconds(60);
  job.settings["RMA_LOCK"] = lock;
  return rma::sim::run(job, part);
}

template <class Epoch>
double mean_ns(rma::Runtime& rt, Epoch&& epoch) {
  constexpr int rounds = 20;
  epoch();  // connects
  const auto begin = rt.now();
  for (int i = 0; i < rounds; ++i) epoch();
  return std::chrono::duration<double, std::nano>(rt.now() - begin).count() / rounds;
}

/// All words of rank 0's part are the same whenever nobody else holds its lock.
void same(const std::vector<std::uint64_t>& found) {
  for (const std::uint64_t each : found) {
    if (each != found.front())
      throw std::runtime_error("of one epoch " + std::to_string(found.front()) + ", of another " +
                               std::to_string(each));
  }
}

}  // namespace

TEST_CASE("lock, put, unlock takes two round trips", "[sync][unlock]") {
  const bool all = GENERATE(false, true);
  double empty_ns = 0, written_ns = 0, read_ns = 0;
  rma::sim::Config job{.ranks = 2, .parameters = "dissertation-ddr"};
  const auto out = play(job, "network", [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), words);
    const auto epoch = [&](auto&& what) {
      if (all) {
        auto held = win.lock_all();
        what();
        held.unlock();
      } else {
        auto held = win.lock(rma::exclusive, 1);
        what();
        held.unlock();
      }
    };
    if (rt.rank() == 0) {
      std::uint64_t into[1];
      empty_ns = mean_ns(rt, [&] {
        auto held = win.lock(rma::shared, 1);
        held.unlock();
      });
      written_ns = mean_ns(rt, [&] { epoch([&] { win.put(std::uint64_t{1}, 1, 0); }); });
      read_ns = mean_ns(rt, [&] { epoch([&] { win.get(std::span(into), 1, 0); }); });
    }
    rt.world().barrier();
    win.free();
  });
  INFO(out.text());
  REQUIRE(out.ok());
  CAPTURE(empty_ns, written_ns, read_ns);
  CHECK(written_ns < 1.2 * empty_ns);
  CHECK(read_ns > 1.4 * empty_ns);  // a get is waited for first
}

TEST_CASE("an unlock_all lets go of all targets at once", "[sync][unlock]") {
  constexpr int targets = 15;
  double one_ns = 0, all_ns = 0;
  rma::sim::Config job{.ranks = 1 + targets, .parameters = "dissertation-ddr"};
  const auto out = play(job, "network", [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), words);
    const auto unlock_ns = [&](int last) {
      auto held = win.lock_all();
      for (int target = 1; target <= last; ++target) {
        (void)win.get(target, 0);  // locks it
        win.put(std::uint64_t{1}, target, 0);
      }
      const auto begin = rt.now();
      held.unlock();
      return std::chrono::duration<double, std::nano>(rt.now() - begin).count();
    };
    if (rt.rank() == 0) {
      (void)unlock_ns(targets);  // connects
      one_ns = unlock_ns(1);
      all_ns = unlock_ns(targets);
    }
    rt.world().barrier();
    if (rt.rank() != 0) {
      const auto held = win.lock(rma::exclusive, rt.rank());  // nobody is left in it
    }
    win.free();
  });
  INFO(out.text());
  REQUIRE(out.ok());
  CAPTURE(one_ns, all_ns);
  CHECK(all_ns < 4 * one_ns);
}

TEST_CASE("an unlock that follows the writes hides none of them", "[sync][unlock]") {
  const std::string lock = GENERATE("network", "hybrid:home=network", "auto");
  const auto seed = GENERATE(range(1, 9));
  if (lock != "auto" && !rma::sim::storm(static_cast<std::uint64_t>(seed)).caps.atomics) return;  // it is refused
  rma::sim::Config job{.ranks = 4};
  job.seed = static_cast<std::uint64_t>(seed);
  job.faults = true;
  const auto out = play(job, lock, [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), words);
    std::vector<std::uint64_t> mine(words), found(words);
    for (std::uint64_t round = 0; round < 8; ++round) {
      std::fill(mine.begin(), mine.end(), round * 10 + static_cast<std::uint64_t>(rt.rank()));
      {
        auto held = win.lock(rma::exclusive, 0);
        win.put(std::span<const std::uint64_t>(mine).first(words / 2), 0, 0);
        win.put(std::span<const std::uint64_t>(mine).subspan(words / 2), 0, words / 2);
        held.unlock();
      }
      {
        auto held = win.lock(round % 2 == 0 ? rma::shared : rma::exclusive, 0);
        win.get(std::span(found), 0, 0);
        held.unlock();
      }
      same(found);
    }
    rt.world().barrier();
    win.free();
  });
  INFO("lock " << lock << ", seed " << seed << "\n" << out.text());
  CHECK(out.ok());
}

TEST_CASE("an unlock that follows the writes tells of those that failed", "[sync][unlock]") {
  unsigned failed = 0;
  rma::sim::Config job{.ranks = 2};
  job.errors = true;
  const auto out = play(job, "network", [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 2);
    if (rt.rank() == 0) {
      for (std::uint64_t round = 1; round <= 400; ++round) {
        while (win.lock_nothrow(rma::exclusive, 1) != rma::status::done) {}
        rma::status s = win.try_put(round, 1, 0);
        const rma::status unlocked = win.try_unlock(1);
        if (s == rma::status::done || s == rma::status::posted) s = unlocked;
        if (s == rma::status::transfer_failed) ++failed;
        if (s != rma::status::done) continue;
        std::uint64_t found[1] = {};
        do {
          while (win.lock_nothrow(rma::exclusive, 1) != rma::status::done) {}
          s = win.try_get(std::span(found), 1, 0);
          const rma::status over = win.try_unlock(1);
          if (s == rma::status::done || s == rma::status::posted) s = over;
        } while (s != rma::status::done);
        if (found[0] != round) throw std::runtime_error("put " + std::to_string(round) + " is not there");
      }
    }
    while (rt.world().try_barrier() != rma::status::done) {}
  });
  INFO(out.text());
  CHECK(out.ok());
  CHECK(failed > 0);
}
