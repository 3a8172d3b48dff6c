// SPDX-License-Identifier: Apache-2.0
// Goal: memory of windows and teams is given back when all members have dropped them, and not before; also if some of
// the members have died or left meanwhile.
//
// Method: simulated ranks, 1 to 9 of them on 1 to 3 nodes, drop windows in different orders. The part that a rank uses
// of its segment is compared before and after. Deaths at times drawn from a seed: the survivors shrink, and get back
// the memory of what they have made with the dead.
//
// Break: let advance not ask for all reports; let place ignore the gone; let reports count whatever they leave out.
#include "runtime/reclaimer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "runtime/team_core.hpp"

namespace {

using namespace std::chrono_literals;
using window = rma::Window<long>;
using rma::status;

/// The lines of a team for its barriers and its collectives in memory, at most, in whole pages.
constexpr std::size_t lines_bytes =
    (sizeof(rma::detail::barrier_lines) +
     std::max(rma::detail::memory_lines::all_bytes(2), rma::detail::memory_lines::all_bytes(3)) + 4095) /
    4096 * 4096;
constexpr std::size_t left_by_good_use_bytes = 2 * 4096 + lines_bytes;  ///< the last window of two, and a living team
constexpr std::size_t being_made_bytes = 5 * 4096 + lines_bytes;        ///< a window and a team, when a rank died

std::size_t in_use(rma::Runtime& rt) { return rt.world().core().rt->segment_in_use(); }

/// Two windows, made and dropped, leave as much in use as the next two do: drops are told when something is made.
void make_and_drop_two(const rma::Team& team) {
  (void)window::allocate(team, 1);
  (void)window::allocate(team, 1);
}

void must(bool yes, const char* what) {
  if (!yes) throw std::runtime_error(what);
}

void run(const rma::sim::Config& job, void (*body)(rma::Runtime&)) {
  const auto out = rma::sim::run(job, body);
  INFO(job.ranks << " ranks, " << job.ranks_per_node << " per node\n" << out.text());
  REQUIRE(out.ok());
}

/// Each rank drops the windows in an order of its own.
void drop_in_any_order(rma::Runtime& rt) {
  make_and_drop_two(rt.world());
  const std::size_t before = in_use(rt);
  std::vector<window> windows;
  for (int i = 0; i < 8; ++i) windows.push_back(window::allocate(rt.world(), 1000));
  std::mt19937 random(static_cast<unsigned>(rt.rank()));
  std::shuffle(windows.begin(), windows.end(), random);
  while (!windows.empty()) {
    windows.pop_back();
    (void)rt.world().split(0);
  }
  make_and_drop_two(rt.world());
  must(in_use(rt) == before, "memory that was not given back");
}

/// The last member keeps the window: its values stay.
void one_keeps_it(rma::Runtime& rt) {
  std::optional<window> win = window::allocate(rt.world(), 100);
  const int last = rt.size() - 1;
  for (long& each : win->local()) each = 100 + rt.rank();
  win->fence();
  if (rt.rank() != last) win.reset();
  for (int i = 0; i < 5; ++i) {
    auto other = window::allocate(rt.world(), 100);
    for (long& each : other.local()) each = -1;
    other.fence();
  }
  rt.world().barrier();
  if (rt.rank() == last) {
    must(win->get(0, 0) == 100, "memory that was given back while a member held the window");
  }
  rt.world().barrier();
}

/// Until a rank is dead: with windows of the whole world, dropped by some earlier than by others.
void play_till_death(rma::Runtime& rt, unsigned seed) {
  std::mt19937 random(seed * 64 + static_cast<unsigned>(rt.rank()));
  const auto dawdle = [&] { rt.compute(std::chrono::nanoseconds(random() % 3000)); };
  std::vector<window> held;
  try {
    for (;;) {
      held.push_back(window::allocate(rt.world(), 1000));
      dawdle();
      if (held.size() > 4) held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
      dawdle();
    }
  } catch (const rma::Error& e) {
    if (e.code() != status::peer_failed) throw;
  }
}

}  // namespace

TEST_CASE("dropped windows are given back, in whatever order", "[reclaimer]") {
  for (const int ranks : {1, 2, 3, 5, 8, 9})
    for (const int per_node : {1, 3, 9}) run({.ranks = ranks, .ranks_per_node = per_node}, drop_in_any_order);
}

TEST_CASE("a window that one member holds stays", "[reclaimer]") {
  for (const int ranks : {2, 3, 5, 8})
    for (const int per_node : {1, 3, 8}) run({.ranks = ranks, .ranks_per_node = per_node}, one_keeps_it);
}

TEST_CASE("survivors get back what the dead had a part in", "[reclaimer][deaths]") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 common(seed);
    rma::sim::Config job{.ranks = 3 + static_cast<int>(common() % 5)};
    job.ranks_per_node = 1 + static_cast<int>(common() % static_cast<unsigned>(job.ranks));
    const int dies = static_cast<int>(common() % static_cast<unsigned>(job.ranks));
    job.kills.push_back({dies, 1ms + std::chrono::nanoseconds(common() % 20'000'000)});
    job.limit = 60s;
    const auto out = rma::sim::run(job, [seed](rma::Runtime& rt) {
      play_till_death(rt, seed);
      auto team = rt.world();
      while (team.size() == rt.size() || team.try_barrier() != status::done) team = team.shrink();
      make_and_drop_two(team);
      const std::size_t here = in_use(rt);
      make_and_drop_two(team);
      must(in_use(rt) == here, "it goes on");
      must(here <= left_by_good_use_bytes + being_made_bytes, "memory of windows that the dead had a part in");
    });
    INFO("seed " << seed << "\n" << out.text());
    REQUIRE(out.ok());
  }
}
