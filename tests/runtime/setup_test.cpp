// SPDX-License-Identifier: Apache-2.0
// Goal: the collectives that make teams and windows, and the reduce-scatter of fences, for any number of ranks; nothing
// hangs when members call different ones, and what the program has pending meanwhile is not touched.
// Method: simulated ranks on one or several nodes; the members of a team call its core's collectives directly.
//
// Break: let reduce_scatter halve `ahead` once too often; give the answer to member r the turn of member r + 1; give
// the state of setup_run the team's own id.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "runtime/reduce_scatter.hpp"
#include "runtime/team_core.hpp"

namespace {

using namespace std::chrono_literals;
using rma::status;

void run(int ranks, int per_node, const std::function<void(rma::Runtime&)>& play) {
  rma::sim::Config job{.ranks = ranks, .ranks_per_node = per_node};
  job.limit = 20s;
  const auto out = rma::sim::run(job, play);
  INFO(out.text());
  CHECK(out.ok());
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

std::span<const std::byte> bytes_of(const std::uint32_t& one) { return std::as_bytes(std::span(&one, 1)); }

/// A value that differs among ranks, places and turns.
std::uint32_t value(int rank, int place, std::uint32_t turn) {
  return static_cast<std::uint32_t>(rank * 1000 + place * 10) + turn;
}

}  // namespace

TEST_CASE("setup's collectives have their results at all members", "[setup]") {
  const int ranks = GENERATE(1, 2, 3, 5, 8, 13);
  const int per_node = GENERATE(1, 4);
  run(ranks, per_node, [](rma::Runtime& rt) {
    rma::detail::team_core& team = rt.world().core();
    const int n = rt.size();
    for (std::uint32_t turn = 0; turn < 4; ++turn) {
      std::uint64_t most[] = {static_cast<std::uint64_t>(rt.rank()) + turn, 7};
      expect(team.allreduce(most, 2, rma::element::u64, rma::max) == status::done, "allreduce");
      expect(most[0] == static_cast<std::uint64_t>(n) - 1 + turn && most[1] == 7, "the result of allreduce");
      const std::uint32_t mine = value(rt.rank(), 0, turn);
      for (const bool alike : {false, true}) {
        std::vector<std::uint32_t> all(static_cast<std::size_t>(n));
        auto* const into = reinterpret_cast<std::byte*>(all.data());
        expect(
            (alike ? team.allgather_alike(bytes_of(mine), into) : team.allgather(bytes_of(mine), into)) == status::done,
            "allgather");
        for (int r = 0; r < n; ++r)
          expect(all[static_cast<std::size_t>(r)] == value(r, 0, turn), "the result of allgather");
      }
    }
  });
}

TEST_CASE("a kept reduce-scatter adds up what all members have for each", "[setup]") {
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17);
  run(ranks, 1, [](rma::Runtime& rt) {
    constexpr std::uint64_t id = 0x1234567;
    rma::detail::reduce_scatter sums(rt.world().core(), id);
    const int n = rt.size();
    for (const std::uint32_t turn : {1U, 2U, 3U, 7U, 0xffffffffU}) {
      for (int ahead = 0; ahead < n; ++ahead)
        sums.values()[static_cast<std::size_t>(ahead)] = value(rt.rank(), (rt.rank() + ahead) % n, turn);
      sums.start(turn);
      while (sums.state() == status::not_yet) rt.compute(1us), rt.progress();
      expect(sums.state() == status::done, "reduce-scatter");
      std::uint32_t wanted = 0;
      for (int r = 0; r < n; ++r) wanted += value(r, rt.rank(), turn);
      expect(sums.values()[0] == wanted, "the sum");
    }
    rt.world().barrier();
  });
}

TEST_CASE("members that make different things at the same time get an error", "[setup]") {
  const int ranks = GENERATE(2, 5);
  run(ranks, 1, [](rma::Runtime& rt) {
    rma::detail::team_core& team = rt.world().core();
    std::vector<std::uint32_t> all(static_cast<std::size_t>(rt.size()));
    std::uint64_t most[] = {1, 2, 3};
    const std::uint32_t mine = 1;
    const status s = rt.rank() == 1 ? team.allreduce(most, 3, rma::element::u64, rma::max)
                                    : team.allgather(bytes_of(mine), reinterpret_cast<std::byte*>(all.data()));
    expect(s == status::bad_size, std::string(name_of(s)));
  });
}

TEST_CASE("what the program has pending is not touched when a team or a window is made", "[setup]") {
  const int ranks = GENERATE(2, 5);
  run(ranks, 1, [](rma::Runtime& rt) {
    auto world = rt.world();
    const std::vector<int> mine(1, rt.rank());
    std::vector<int> pending(1);
    auto sum = world.iallreduce(std::span(mine), std::span(pending), rma::sum);
    const auto win = rma::Window<std::uint64_t>::allocate(world, 8);
    const auto half = world.split(rt.rank() % 2);
    sum.wait();
    expect(pending[0] == rt.size() * (rt.size() - 1) / 2, "the sum");
    expect(half.size() == (rt.size() + 1 - rt.rank() % 2) / 2, "the half");
  });
}
