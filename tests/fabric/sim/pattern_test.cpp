// SPDX-License-Identifier: Apache-2.0
// Goal: patterns take the time that the paper's formula says, wait for what they say, and fail in one clear line.
// Method: times of the susukita preset worked out by hand from the constants of the paper's table 1.
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "rma/error.hpp"
#include "rma/sim_pattern.hpp"

namespace rma::sim {
namespace {

using namespace std::chrono_literals;

constexpr picoseconds ps(std::int64_t value) { return picoseconds(value); }

// The constants of the preset; 32 bytes of control packet are the preset's own.
constexpr picoseconds across_switch = ps(2 * 600 + 4'000 + 4'000 + 4'000 + 128'000);
constexpr picoseconds wire(std::int64_t bytes) { return ps(bytes * 250); }  // 4 GB/s
constexpr picoseconds control_time = across_switch + wire(32);
constexpr picoseconds dma_4 = ps(1'429);       // 4 bytes at 2.8 GB/s
constexpr picoseconds dma_2048 = ps(731'429);  // a packet

Config machine(int ranks, int per_node = 1, std::string parameters = "susukita") {
  return {.ranks = ranks, .ranks_per_node = per_node, .topology = "switch", .parameters = std::move(parameters)};
}

std::string error_of(const Config& job, const std::function<void(PatternRank&)>& rank_main) {
  try {
    (void)run_pattern(job, rank_main);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

void sample_pattern(PatternRank& me) {
  if (me.rank() == 0) {
    me.compute(100'000ns);
    me.complete(me.put(1, 4, 0));
  } else {
    me.poll(0);
  }
}

}  // namespace

TEST_CASE("the sample pattern of the paper takes its formula's time", "[sim][pattern]") {
  const PatternOutcome out = run_pattern(machine(2), sample_pattern);
  REQUIRE(out.ok());
  const picoseconds arrived = ps(100'000'000) + dma_4 + across_switch + wire(4) + dma_4;
  CHECK(out.ranks[1].end == arrived);
  CHECK(out.quiet == arrived + control_time);
  CHECK(out.ranks[0].end == arrived + control_time);
  CHECK(out.time == out.ranks[0].end);
  CHECK(out.ranks[0].computing == 100'000ns);
  CHECK(out.network.count == 1);
  CHECK(out.network.latency == 2 * dma_4 + across_switch + wire(4) + control_time);
  CHECK(out.network.queued == ps(0));
}

TEST_CASE("the library's overhead is paid on both sides of a put", "[sim][pattern]") {
  // as a file, since a parameter differs from the preset
  const std::string path = "pattern_test_overhead.params";
  {
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs("base = susukita\nlibrary_overhead = 7 ns\n", file);
    std::fclose(file);
  }
  const PatternOutcome plain = run_pattern(machine(2), sample_pattern);
  const PatternOutcome out = run_pattern(machine(2, 1, path), sample_pattern);
  std::remove(path.c_str());
  CHECK(out.ranks[0].end == plain.ranks[0].end + 14ns);
  CHECK(out.ranks[1].end == plain.ranks[1].end + 14ns);
  CHECK(out.network.latency == plain.network.latency + 14ns);
}

TEST_CASE("a put within a node takes the DMA engine once, and puts take turns", "[sim][pattern]") {
  // Two ranks of one node put to each other: one engine, one transfer at a time.
  const PatternOutcome out = run_pattern(machine(2, 2), [](PatternRank& me) {
    const PatternHandle put = me.put(1 - me.rank(), 4096, 0);
    me.poll(0);
    me.complete(put);
  });
  CHECK(out.time == 4 * dma_2048);
  CHECK(out.intra_node.count == 2);
  CHECK(out.intra_node.queued == 2 * dma_2048);
  CHECK(out.intra_node.queued_max == 2 * dma_2048);
  CHECK(out.network.count == 0);
  REQUIRE(out.busiest_engine() != nullptr);
  CHECK(out.busiest_engine()->busy == 4 * dma_2048);
  CHECK(out.links.empty());
}

TEST_CASE("puts within a node may be copies, or nothing", "[sim][pattern]") {
  const auto exchange = [](PatternRank& me) {
    const PatternHandle put = me.put(1 - me.rank(), 6000, 3);
    me.poll(3);
    me.complete(put);
  };
  CHECK(run_pattern(machine(2, 2), exchange, IntraNode::copy).time == 1000ns);  // 6 GB/s
  CHECK(run_pattern(machine(2, 2), exchange, IntraNode::free).time == 0ns);
  CHECK(run_pattern(machine(2, 1), exchange, IntraNode::free).time > 1000ns);
}

TEST_CASE("a packet that comes in interrupts a put that goes out", "[sim][pattern]") {
  const PatternOutcome out =
      run_pattern(machine(2), [](PatternRank& me) { me.complete(me.put(1 - me.rank(), 65536, 0)); });
  CHECK(out.network.interrupted_max > 20 * dma_2048);
  CHECK(out.network.interrupted_max < 32 * dma_2048);
}

TEST_CASE("a get takes a request and the data", "[sim][pattern]") {
  const PatternOutcome out = run_pattern(machine(2), [](PatternRank& me) {
    if (me.rank() == 0) me.complete(me.get(1, 2048));
  });
  CHECK(out.ranks[0].end == control_time + 2 * dma_2048 + across_switch + wire(2048));
  CHECK(out.ranks[1].end == 0ns);
}

TEST_CASE("poll takes each put once, whatever the order of tags", "[sim][pattern]") {
  std::vector<picoseconds> seen;
  const PatternOutcome out = run_pattern(machine(2), [&](PatternRank& me) {
    if (me.rank() == 0) {
      for (const int tag : {5, 6, 5, 9}) me.put(1, 2048, tag);
      return me.complete_all();
    }
    me.poll(6);
    seen.push_back(me.now());
    me.poll(5, 2);
    seen.push_back(me.now());
    me.poll(5, 0);
    seen.push_back(me.now());
  });
  REQUIRE(out.ok());
  const picoseconds first = 2 * dma_2048 + across_switch + wire(2048);
  CHECK(seen == std::vector<picoseconds>{first + dma_2048, first + 2 * dma_2048, first + 2 * dma_2048});
  CHECK(out.ranks[1].unpolled == 1);
  CHECK(out.ranks[0].unpolled == 0);
}

TEST_CASE("data have come when the last packet has", "[sim][pattern]") {
  const PatternOutcome out = run_pattern(machine(2), [](PatternRank& me) {
    if (me.rank() == 0) me.put(1, 65536, 0);
    if (me.rank() == 1) me.poll(0);
  });
  CHECK(out.ranks[1].end == 33 * dma_2048 + across_switch + wire(2048));
  CHECK(out.ranks[1].unpolled == 0);
}

TEST_CASE("completing twice costs nothing, and later is not earlier", "[sim][pattern]") {
  const PatternOutcome out = run_pattern(machine(2), [&](PatternRank& me) {
    if (me.rank() != 0) return;
    const PatternHandle put = me.put(1, 4, 0);
    me.complete(put);
    const picoseconds once = me.now();
    me.complete(put);
    me.complete_all();
    if (me.now() != once) throw Error(status::bad_argument, "time passed");
    me.compute(5us);
    me.complete(put);
  });
  CHECK(out.ranks[0].end == 2 * dma_4 + across_switch + wire(4) + control_time + 5us);
}

TEST_CASE("nobody leaves a barrier before all have come", "[sim][pattern]") {
  for (const int ranks : {1, 2, 5, 8}) {
    CAPTURE(ranks);
    const PatternOutcome out = run_pattern(machine(ranks), [](PatternRank& me) {
      for (int turn = 1; turn <= 3; ++turn) {
        if (me.rank() == me.size() - turn % me.size() - 1) me.compute(10us);
        me.barrier();
        if (me.now() < turn * 10us) throw Error(status::bad_argument, "left too early");
      }
    });
    CHECK(out.ok());
    CHECK(out.time < 40us);
  }
}

TEST_CASE("a barrier costs its rounds", "[sim][pattern]") {
  const picoseconds dma_8 = ps(2'857);
  const picoseconds round = 2 * dma_8 + across_switch + wire(8);
  CHECK(run_pattern(machine(2), [](PatternRank& me) { me.barrier(); }).time == round);
  CHECK(run_pattern(machine(8), [](PatternRank& me) { me.barrier(); }).time == 3 * round);
}

TEST_CASE("time is counted by phase", "[sim][pattern]") {
  const PatternOutcome out = run_pattern(machine(3), [](PatternRank& me) {
    me.compute(1us);
    me.phase("pack");
    me.compute((me.rank() + 1) * 2us);
    me.phase("put");
    me.compute(3us);
    me.phase("pack");
    me.compute(1us);
    me.phase("");
    me.compute(9us);
  });
  CHECK(out.phases == std::vector<std::string>{"pack", "put"});
  CHECK(out.ranks[2].phases == std::vector<picoseconds>{7us, 3us});
  CHECK(out.phase_min("pack") == 3us);
  CHECK(out.phase_max("pack") == 7us);
  CHECK(out.phase_sum("pack") == 15us);
  CHECK(out.phase_sum("put") == 9us);
  CHECK(out.phase_sum("none") == 0us);
}

TEST_CASE("what nobody waits for arrives all the same", "[sim][pattern]") {
  const PatternOutcome out = run_pattern(machine(2), [](PatternRank& me) { me.put(1 - me.rank(), 4, 0); });
  CHECK(out.time == 0ns);
  CHECK(out.quiet == 2 * dma_4 + across_switch + wire(4) + control_time);
  CHECK(out.network.count == 2);
  CHECK(out.ranks[0].unpolled == 1);
}

TEST_CASE("a deadlock says who waits for what", "[sim][pattern]") {
  const PatternOutcome out = run_pattern(machine(4), [](PatternRank& me) {
    if (me.rank() == 0) me.poll(7);
    if (me.rank() == 1) me.put(0, 8, 6);
    if (me.rank() == 2) me.barrier();
    if (me.rank() == 3) {
      me.put(3, 8, 4);
      me.poll(4, 3);
    }
  });
  CHECK_FALSE(out.ok());
  CHECK(out.stuck.find("deadlock, nothing can happen any more at 0.0000") == 0);
  CHECK(out.stuck.substr(out.stuck.find('\n')) ==
        "\n  rank 0 waits for a put with tag 7, 0 came"
        "\n  rank 2 waits in its barrier 1 for rank 1"
        "\n  rank 3 waits for 3 puts with tag 4, 1 came");
  CHECK(out.ranks[0].fate == Fate::stuck);
  CHECK(out.ranks[1].fate == Fate::finished);
}

TEST_CASE("what cannot be meant is one line", "[sim][pattern]") {
  const auto only_first = [](auto call) {
    return [call](PatternRank& me) {
      if (me.rank() == 0) call(me);
    };
  };
  const auto said = [&](auto call) { return error_of(machine(2), only_first(call)); };
  CHECK(said([](auto& me) { me.put(2, 8, 0); }) == "rank 0: put: there is no rank 2 among 2");
  CHECK(said([](auto& me) { me.put(-1, 8, 0); }) == "rank 0: put: there is no rank -1 among 2");
  CHECK(said([](auto& me) { me.get(5, 8); }) == "rank 0: get: there is no rank 5 among 2");
  CHECK(said([](auto& me) { me.put(1, -8, 0); }) == "rank 0: put: -8 bytes are not possible");
  CHECK(said([](auto& me) { me.put(1, 8, -3); }) == "rank 0: put: tag -3 is below zero");
  CHECK(said([](auto& me) { me.poll(-3); }) == "rank 0: poll: tag -3 is below zero");
  CHECK(said([](auto& me) { me.poll(3, -1); }) == "rank 0: poll: -1 puts are not possible");
  CHECK(said([](auto& me) { me.compute(-1ns); }) == "rank 0: compute: -1000 ps are below zero");
  CHECK(said([](auto& me) { me.complete({}); }) == "rank 0: complete: rank 0 has not got this handle from put or get");
  CHECK(error_of(machine(0), [](auto&) {}).find("0 ranks") != std::string::npos);
  CHECK_FALSE(error_of(machine(2, 1, "susukit"), [](auto&) {}).empty());
  // another rank's handle
  PatternHandle handle;
  CHECK(error_of(machine(2), [&](PatternRank& me) {
          if (me.rank() == 0) handle = me.put(1, 8, 0);
          me.barrier();
          if (me.rank() == 1) me.complete(handle);
        }) == "rank 1: complete: rank 1 has not got this handle from put or get");
}

TEST_CASE("a pattern repeats itself", "[sim][pattern]") {
  const auto run = [] {
    return run_pattern(machine(16, 2), [](PatternRank& me) {
      for (int i = 1; i < me.size(); ++i) me.put((me.rank() * 7 + i) % me.size(), 3000 * i, i);
      me.barrier();
      me.complete_all();
    });
  };
  const PatternOutcome a = run();
  const PatternOutcome b = run();
  CHECK(a.events == b.events);
  for (std::size_t r = 0; r < 16; ++r) CHECK(a.ranks[r].end == b.ranks[r].end);
  CHECK(a.quiet == b.quiet);
  CHECK(a.network.latency == b.network.latency);
}

// ---- recorded patterns ------------------------------------------------------------------------------------------

TEST_CASE("a recorded pattern is read and run", "[sim][pattern][trace]") {
  const auto puts = parse_trace("# rank dest bytes tag\n0 1 4 0\n\n 1\t0 2048 7 # back\r\n", "t", 2);
  CHECK(puts == std::vector<TracePut>{{0, 1, 4, 0}, {1, 0, 2048, 7}});
  const PatternOutcome out = run_trace(machine(2), puts);
  CHECK(out.ok());
  CHECK(out.network.count == 2);
  CHECK(out.network.bytes == 2052);
  CHECK(out.ranks[0].unpolled == 0);
}

TEST_CASE("nonsense in a recorded pattern is named by its line", "[sim][pattern][trace]") {
  const auto said = [](std::string_view text) {
    try {
      (void)parse_trace(text, "t.trace", 4);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(said("0 1 8 0\n0 4 8 0\n") == "t.trace:2: dest 4: there are only 4 ranks");
  CHECK(said("9 1 8 0") == "t.trace:1: rank 9: there are only 4 ranks");
  CHECK(said("\n\n0 1 -8 0") == "t.trace:3: bytes -8 is below zero");
  CHECK(said("0 1 8 -1") == "t.trace:1: tag -1 is below zero");
  CHECK(said("0 1 x8 0") == "t.trace:1: bytes 'x8' is not a whole number");
  CHECK(said("0 1 8k 0") == "t.trace:1: bytes '8k' is not a whole number");
  CHECK(said("0 1 1.5 0") == "t.trace:1: bytes '1.5' is not a whole number");
  CHECK(said("0 1 99999999999999999999 0") == "t.trace:1: bytes '99999999999999999999' is too large");
  CHECK(said("0 1 8 9999999999") == "t.trace:1: tag 9999999999 is more than 2147483647");
  CHECK(said("0 1 8") == "t.trace:1: tag is missing; a line is `rank dest bytes tag`");
  CHECK(said("0 1 8 0 1") == "t.trace:1: '1' is one column too many; a line is `rank dest bytes tag`");
  CHECK_THROWS_AS(read_trace("no/such/file", 4), Error);
}

}  // namespace rma::sim
