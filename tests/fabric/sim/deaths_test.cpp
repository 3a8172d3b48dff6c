// SPDX-License-Identifier: Apache-2.0
// A rank of a job on several nodes dies at a random moment, in faults: nobody hangs, and everybody who waits for
// it is told within 2 s.
//
//   DEATHS_SEEDS=100:300 sim_deaths_test        runs these seeds; a failure names its seed
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "fabric/sim/fault_model.hpp"
#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using rma::Runtime;
using rma::Window;
using rma::sim::rng;

constexpr std::int64_t told_within_ns = 2'000'000'000;
const std::vector<std::string> fences = {"auto", "placed", "def", "imm-naive", "imm-opt", "imm-ri"};

/// Goes on until somebody is found dead, or for so many rounds.
void work(Runtime& rt, std::uint64_t seed) {
  rng d(seed * 31 + static_cast<std::uint64_t>(rt.rank()));
  auto win = Window<std::uint64_t>::allocate(rt.world(), 64);
  const auto any = [&] { return static_cast<int>(d.below(static_cast<std::uint64_t>(rt.size()))); };
  for (int round = 0; round < 40; ++round) {
    {
      auto epoch = win.lock(d.one_in(2) ? rma::exclusive : rma::shared, any());
      rt.compute(std::chrono::microseconds(d.below(20)));
      epoch.unlock();
    }
    {
      auto epoch = win.lock_all();
      for (int i = 0; i < 4; ++i) win.put(std::uint64_t{1}, any(), d.below(64));
      (void)win.fetch_and_op(std::uint64_t{1}, any(), 0, rma::sum);
      epoch.unlock();  // a destructor could not say what went wrong
    }
    win.fence();
    win.put(std::uint64_t{7}, any(), 1);
    win.fence(rma::no_succeed);
  }
  win.free();
}

/// One lock for each seed in turn.
constexpr std::array<const char*, 7> locks{"auto",    "auto:deferred", "two-sided", "two-sided:deferred",
                                           "network", "cpu",           "hybrid"};

/// With the options of this turn.
std::string lock_of(std::string lock, std::uint64_t turn) {
  if (lock == "network" && turn % 4 != 0) lock += turn % 4 == 1 ? ":fompi" : ":agent";
  if (lock != "hybrid") return lock;
  lock += turn % 3 == 0 ? ":naive" : turn % 3 == 1 ? ":threshold:2" : ":adaptive";
  return lock + (turn % 2 == 0 ? ":home=cpu" : ":home=network");
}

rma::sim::Outcome run_seed(std::uint64_t seed, std::int64_t& died_ns, int& victim) {
  rng d(seed);
  rma::sim::Config job;
  job.ranks = static_cast<int>(2 + d.below(5));
  job.ranks_per_node = static_cast<int>(1 + d.below(3));
  job.seed = seed;
  job.faults = true;
  job.limit = std::chrono::seconds(60);
  const std::uint64_t turn = seed / locks.size();
  const auto caps = rma::sim::storm(seed).caps;
  const std::string lock = lock_of(locks[seed % locks.size()], turn);
  const bool needs_atomics = lock.starts_with("network") || lock.starts_with("hybrid");
  job.settings["RMA_LOCK"] = needs_atomics && !caps.atomics ? "cpu" : lock;
  if (turn % 2 == 1) job.settings["RMA_LOCK_BYPASSES"] = "0";  // whoever has to wait is the heir
  victim = static_cast<int>(d.below(static_cast<std::uint64_t>(job.ranks)));
  died_ns = static_cast<std::int64_t>(1'000 + d.below(20'000'000));
  const std::string fence = fences[d.below(fences.size())];
  job.settings["RMA_FENCE"] = fence == "imm-ri" && !caps.write_with_immediate ? "imm-opt" : fence;
  job.kills.push_back({victim, std::chrono::nanoseconds(died_ns)});
  return rma::sim::run(job, [&](Runtime& rt) { work(rt, seed); });
}

std::pair<std::uint64_t, std::uint64_t> seeds() {
  const char* const text = std::getenv("DEATHS_SEEDS");
  if (text == nullptr) return {1, 251};
  const std::string range(text);
  return {std::stoull(range), std::stoull(range.substr(range.find(':') + 1))};
}

/// By peer_failed, or by a job that has ended; or a rank that was told has dropped the window on its way out.
bool is_of_a_death(const std::string& error, const rma::sim::Outcome& out) {
  for (std::size_t r = 0; r < out.ranks.size(); ++r) {
    if (error.find(fmt::format("world rank {} has dropped this window; let all finish before it does, by a barrier",
                               r)) != std::string::npos)
      return out.ranks[r].fate == rma::sim::Fate::threw;
  }
  return error.find("peer_failed") != std::string::npos || error.find("ended") != std::string::npos;
}

/// How many ranks were killed.
unsigned all_are_told(std::uint64_t seed) {
  std::int64_t died_ns = 0;
  int victim = 0;
  unsigned killed = 0;
  const auto out = run_seed(seed, died_ns, victim);
  INFO(fmt::format("replay: DEATHS_SEEDS={}:{} sim_deaths_test\nrank {} dies at {} ns\n{}", seed, seed + 1, victim,
                   died_ns, out.text()));
  REQUIRE(out.stuck.empty());
  for (std::size_t r = 0; r < out.ranks.size(); ++r) {
    const auto& rank = out.ranks[r];
    INFO("rank " << r << " ended at " << rank.end.count() << " ns: " << rank.error);
    if (rank.fate == rma::sim::Fate::killed) {
      ++killed;
      continue;
    }
    if (rank.fate == rma::sim::Fate::finished) continue;  // it was over before
    REQUIRE(rank.fate == rma::sim::Fate::threw);
    REQUIRE(is_of_a_death(rank.error, out));
    REQUIRE(rank.end.count() - died_ns < told_within_ns);
  }
  return killed;
}

}  // namespace

TEST_CASE("a death on another node is told to everybody who waits for it", "[deaths]") {
  const auto [first, end] = seeds();
  unsigned killed = 0;
  for (std::uint64_t seed = first; seed < end; ++seed) killed += all_are_told(seed);
  CHECK(killed > (end - first) / 4);
}

TEST_CASE("deaths of which somebody was not told once are told", "[deaths]") {
  // A writer of the readers' agent; who waits for that and looks every millisecond, which was taken for a deadlock.
  const auto seed = GENERATE(as<std::uint64_t>(), 1077, 252, 11272);
  CHECK(all_are_told(seed) == 1);
}
