// SPDX-License-Identifier: Apache-2.0
// Goal: a rank's death in any step of a transfer with layouts (bulk channel, batches, held and aggregated operations,
// draining) ends the waits of the others with peer_failed, within 2 s, and nothing is written into their memory later.
// Method: simulated ranks on nodes of their own, in faults; each puts to and gets from all, and one of them dies
// at a time drawn from the seed. A survivor that is told fills what it was getting into with a pattern, remembers what
// the dead rank had put, lives on for 20 ms, or until packets that were held up have come, and compares.
// Break: let the wire write what the dead rank sent before it died. Break: leave out bulk_streams::end_peer (requests
// never end). Break: send from the end of the queue in bulk_streams::pump_sends; layout_schemes_test notices that, too,
// and a number that stands for two layouts. scheduling_test notices a call that does not issue what is held.
//
//   BULK_DEATHS_SEEDS=100:300 bulk_deaths_test        runs these seeds; a failure names its seed
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fabric/sim/fault_model.hpp"
#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using rma::Layout;
using rma::Runtime;
using rma::Window;
using rma::sim::rng;
using namespace std::chrono_literals;
using words = std::vector<std::uint64_t>;

constexpr std::size_t part_words = 4096;  ///< words of a rank's memory, for each rank that puts there
constexpr std::size_t single_words = 64;  ///< at the start of these: puts without a layout
constexpr std::uint64_t pattern = 0x5a5a'5a5a'5a5a'5a5a;

struct scenario {
  int ranks = 0, victim = 0;
  std::int64_t died_ns = 0;
  std::string layout, schedule, aggregate, fence, helper;
  bool cut_off = false;  ///< no link carries anything when it dies, so that what was under way comes after the news
};

constexpr auto outage = 100ms;

scenario scenario_of(std::uint64_t seed) {
  constexpr std::array layouts{"sgrs", "host-assisted", "generic", "multi-w", "write-gather", "auto"};
  constexpr std::array schedules{"in-order", "interleave", "gets-first", "gets-first+interleave"};
  constexpr std::array fences{"auto", "def", "imm-opt"};
  rng d(seed * 77 + 5);
  scenario s;
  s.ranks = static_cast<int>(2 + d.below(3));
  s.victim = static_cast<int>(d.below(static_cast<std::uint64_t>(s.ranks)));
  s.died_ns = static_cast<std::int64_t>(300'000 + d.below(3'000'000));
  s.layout = layouts[seed % 2 == 0 ? 0 : d.below(layouts.size())];
  s.schedule = schedules[d.below(schedules.size())];
  s.aggregate = d.one_in(2) ? "1024" : "off";
  s.fence = fences[d.below(fences.size())];
  s.helper = s.layout == "host-assisted" ? "1" : "0";
  s.cut_off = seed % 4 == 1;
  return s;
}

/// The memory of one rank's transfers. It outlives all that may write into it.
struct memory {
  explicit memory(int ranks) : out(part_words, 1), in(static_cast<std::size_t>(ranks), words(part_words, 0)) {}
  words out;
  std::vector<words> in;        ///< got from each rank
  bool in_fence_epoch = false;  ///< which an exception does not end: gets from the living go on
};

/// Goes on until somebody is found dead, or for so many rounds.
void transfers(Runtime& rt, Window<std::uint64_t>& win, memory& mine, std::uint64_t seed) {
  rng d(seed * 31 + static_cast<std::uint64_t>(rt.rank()));
  const auto place = static_cast<std::uint64_t>(rt.rank()) * part_words;
  const auto shape = [&] {
    return Layout::vector<std::uint64_t>(2 + d.below(120), 1 + d.below(8),
                                         static_cast<std::ptrdiff_t>(8 + d.below(24)));
  };
  const auto some = [&](bool aggregated) {
    auto batch = aggregated ? std::optional(win.aggregate()) : std::nullopt;
    for (int i = 0; i < 6; ++i) {
      const int to = static_cast<int>(d.below(static_cast<std::uint64_t>(rt.size())));
      const Layout l = shape();
      if (batch) {
        batch->put(std::uint64_t{1}, to, place + d.below(single_words));
      } else if (d.one_in(2)) {
        win.put(mine.out.data(), l, to, place, l);
      } else {
        win.get(mine.in[static_cast<std::size_t>(to)].data(), l, to, 0, l);
      }
    }
  };
  for (int round = 0; round < 25; ++round) {
    mine.in_fence_epoch = true;
    win.fence();
    some(false);
    win.fence(rma::no_succeed);
    mine.in_fence_epoch = false;
    auto epoch = win.lock_all();
    some(d.one_in(3));
    if (d.one_in(2)) win.flush_all();
    const int to = static_cast<int>(d.below(static_cast<std::uint64_t>(rt.size())));
    const Layout l = shape();
    auto put = win.rput(mine.out.data(), l, to, place, l);
    auto get = win.rget(mine.in[static_cast<std::size_t>(to)].data(), l, to, 0, l);
    some(false);
    put.wait();
    get.wait();
    epoch.unlock();  // a destructor could not say what went wrong
  }
}

/// After the dead rank's news: what may not be written any more.
void check_nothing_comes(Runtime& rt, Window<std::uint64_t>& win, memory& mine, const scenario& s) {
  const auto victim = static_cast<std::size_t>(s.victim);
  for (words& each : mine.in) std::fill(each.begin(), each.end(), pattern);
  const auto theirs = win.local().subspan(victim * part_words + single_words, part_words - single_words);
  const words before(theirs.begin(), theirs.end());
  const auto until = rt.now() + (s.cut_off ? outage + 20ms : 20ms);  // a slow rank computes longer than it says
  while (rt.now() < until) {
    rt.compute(1ms);
    rt.progress();
  }
  for (std::size_t r = 0; r < mine.in.size(); ++r) {
    if (mine.in_fence_epoch && r != victim) continue;
    if (std::ranges::count(mine.in[r], pattern) != static_cast<std::ptrdiff_t>(part_words))
      throw std::runtime_error("a get has written after its end");
  }
  if (!std::ranges::equal(before, theirs))
    throw std::runtime_error("a put of the dead rank has come after the news of its death");
}

rma::sim::Outcome run_seed(std::uint64_t seed, const scenario& s) {
  rma::sim::Config job;
  job.ranks = s.ranks;
  job.ranks_per_node = 1;
  job.seed = seed;
  job.faults = seed % 3 != 0;
  job.limit = 60s;
  job.settings = {{"RMA_LAYOUT", s.layout},
                  {"RMA_SCHEDULE", s.schedule},
                  {"RMA_AGGREGATE", s.aggregate},
                  {"RMA_PROGRESS_THREAD", s.helper},
                  {"RMA_FENCE", s.fence}};
  const std::chrono::nanoseconds died(s.died_ns);
  job.kills.push_back({s.victim, died});
  if (s.cut_off) job.outages.push_back({died - 20us, died + outage});
  return rma::sim::run(job, [&](Runtime& rt) {
    memory mine(rt.size());
    auto win = Window<std::uint64_t>::allocate(rt.world(), part_words * static_cast<std::size_t>(rt.size()));
    try {
      transfers(rt, win, mine, seed);
    } catch (const rma::Error&) {
      check_nothing_comes(rt, win, mine, s);
      throw;
    }
    win.free();
  });
}

std::pair<std::uint64_t, std::uint64_t> seeds() {
  const char* const text = std::getenv("BULK_DEATHS_SEEDS");
  if (text == nullptr) return {1, 121};
  const std::string range(text);
  return {std::stoull(range), std::stoull(range.substr(range.find(':') + 1))};
}

bool is_of_a_death(const std::string& error) {
  return error.find("peer_failed") != std::string::npos || error.find("ended") != std::string::npos ||
         error.find("has dropped this window") != std::string::npos;
}

}  // namespace

TEST_CASE("a death in any step of a transfer with layouts ends everything, and nothing is written later",
          "[xfer][sgrs][deaths]") {
  constexpr std::int64_t told_within_ns = 2'000'000'000;
  const auto [first, end] = seeds();
  unsigned killed = 0;
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const scenario s = scenario_of(seed);
    const auto out = run_seed(seed, s);
    INFO(fmt::format(
        "replay: BULK_DEATHS_SEEDS={}:{} bulk_deaths_test\n{} of {} dies at {} ns; {}, {}, {}, fence {}\n{}", seed,
        seed + 1, s.victim, s.ranks, s.died_ns, s.layout, s.schedule, s.aggregate, s.fence, out.text()));
    REQUIRE(out.stuck.empty());
    for (const auto& rank : out.ranks) {
      if (rank.fate == rma::sim::Fate::killed) ++killed;
      if (rank.fate != rma::sim::Fate::threw) continue;
      INFO(rank.error);
      REQUIRE(is_of_a_death(rank.error));
      REQUIRE(rank.end.count() - s.died_ns < told_within_ns);
    }
  }
  CHECK(killed > (end - first) / 2);
}
