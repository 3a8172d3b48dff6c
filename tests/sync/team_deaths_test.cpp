// SPDX-License-Identifier: Apache-2.0
// Goal: a death in the middle of a split or a shrink leaves no survivor behind: all of them meet in the end.
// Method: simulated ranks that split or shrink again and again until one is killed, with pauses and the moment of death
// drawn from a seed. Looks for deaths are 100 ms apart, so that a rank often hears of one while others are done
// already. TEAM_DEATHS_SEEDS=FIRST:END tries others.
//
// Break: in shrink, let the new team begin a line of its own; there, let the error of a death in the making of it out;
// in allgather_alike, do not wait on for the word. (That make_team watches member 0 of the old team shows nowhere here:
// what it tells all others is one step of a simulated rank, which dies before or after.)
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using namespace std::chrono_literals;
using rma::status;
using std::chrono::nanoseconds;

struct seeds {
  unsigned first = 1;
  unsigned end = 1501;
};

seeds chosen() {
  seeds s;
  if (const char* const text = std::getenv("TEAM_DEATHS_SEEDS"); text != nullptr)
    REQUIRE(std::sscanf(text, "%u:%u", &s.first, &s.end) == 2);  // NOLINT(cert-err34-c)
  return s;
}

/// The scenario that a seed stands for. Every rank draws from `common` in the same order.
struct scenario {
  explicit scenario(unsigned seed) : common(seed) {
    job.ranks = 4 + static_cast<int>(common() % 4);
    job.ranks_per_node = 1 + static_cast<int>(common() % static_cast<unsigned>(job.ranks));
    job.kills.push_back(
        {static_cast<int>(common() % static_cast<unsigned>(job.ranks)), 1ms + nanoseconds(common() % 400'000'000)});
    job.limit = 60s;
  }
  rma::sim::Config job{};
  std::mt19937 common;
};

/// One rank is late, by more than what lies between two looks for deaths at times.
void dawdle(rma::Runtime& rt, std::mt19937& common) {
  const auto late = static_cast<int>(common() % static_cast<unsigned>(rt.size()));
  const nanoseconds pause(common() % 120'000'000);
  if (rt.rank() == late) rt.compute(pause);
  rt.compute(nanoseconds((common() >> (rt.rank() % 8)) % 3000));
}

/// Until all but one of the world are left, and have met.
void shrink_by_one(rma::Runtime& rt, std::mt19937& common) {
  rma::Team team = rt.world();
  while (team.size() == rt.size() || team.try_barrier() != status::done) {
    dawdle(rt, common);
    team = team.shrink();
  }
}

void split_till_death(rma::Runtime& rt, std::mt19937& common) {
  try {
    for (;;) {
      const auto colors = static_cast<int>(1 + common() % 3);
      dawdle(rt, common);
      rma::Team part = rt.world().split(rt.rank() * 7 % colors);
      part.barrier();
      part.barrier();
    }
  } catch (const rma::Error& e) {
    if (e.code() != status::peer_failed) throw;
  }
}

template <class Play>
void try_seeds(Play&& play) {
  const seeds s = chosen();
  for (unsigned seed = s.first; seed < s.end; ++seed) {
    const scenario drawn(seed);
    const auto out = rma::sim::run(drawn.job, [&](rma::Runtime& rt) {
      std::mt19937 common = drawn.common;
      play(rt, common);
    });
    INFO("TEAM_DEATHS_SEEDS=" << seed << ":" << seed + 1 << "\n" << out.text());
    REQUIRE(out.ok());
  }
}

}  // namespace

TEST_CASE("survivors of a death in the middle of a shrink meet again", "[deaths][shrink]") {
  try_seeds([](rma::Runtime& rt, std::mt19937& common) { shrink_by_one(rt, common); });
}

TEST_CASE("survivors of a death in the middle of a split meet again", "[deaths][split]") {
  try_seeds([](rma::Runtime& rt, std::mt19937& common) {
    split_till_death(rt, common);
    shrink_by_one(rt, common);
  });
}
