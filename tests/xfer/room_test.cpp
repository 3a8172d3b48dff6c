// SPDX-License-Identifier: Apache-2.0
// A network without room makes no caller of a non-blocking operation wait: the operations are held at the origin, keep
// their order, and go on when there is room.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "sanitizers.hpp"

namespace {

using rma::Layout;
using rma::Request;
using rma::Runtime;
using rma::Window;
using namespace std::chrono_literals;
using word = std::uint64_t;

rma::sim::Config nodes(int ranks, unsigned send_queue, std::uint64_t seed = 1) {
  rma::sim::Config job;
  job.ranks = ranks;
  job.ranks_per_node = 1;
  job.send_queue = send_queue;
  job.seed = seed;
  job.limit = 600s;
  return job;
}

void require_ok(const rma::sim::Outcome& out) {
  INFO(out.text());
  REQUIRE(out.ok());
}

void require(bool fits, const std::string& what) {
  if (!fits) throw std::runtime_error(what);
}

/// The memory of this process; 0 where a sanitizer has memory of its own for each byte.
std::size_t resident_bytes() {
#ifdef __SANITIZE_ADDRESS__
  return 0;
#else
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::getpagesize());
#endif
}

/// So many words, `count` of them `stride` apart.
Layout every(std::size_t count, std::size_t stride) {
  return Layout::vector(count, 1, static_cast<std::ptrdiff_t>(stride), Layout::contiguous<word>(1));
}

}  // namespace

TEST_CASE("a put with a request returns at once while the links are down", "[room]") {
  auto job = nodes(2, 16);
  job.outages.push_back({1ms, 200ms});
  constexpr std::size_t puts = 5000;
  std::int64_t longest_ns = 0;
  const auto out = rma::sim::run(job, [&](Runtime& rt) {
    auto win = Window<word>::allocate(rt.world(), puts);
    std::vector<word> from(puts);
    for (std::size_t i = 0; i < puts; ++i) from[i] = i + 1;
    std::vector<Request> all;
    all.reserve(puts);
    win.fence();
    if (rt.rank() == 0) {
      auto epoch = win.lock(rma::shared, 1);
      win.put(word{0}, 1, 0);
      win.flush(1);
      rt.compute(2ms);
      for (std::size_t i = 0; i < puts; ++i) {
        const auto before = rt.now();
        all.push_back(win.rput({&from[i], 1}, 1, i));
        longest_ns = std::max<std::int64_t>(longest_ns, (rt.now() - before).count());
      }
      require(rt.now() < 200ms, "the puts have waited for the links");
      for (Request& each : all) each.wait();
      require(rt.now() > 200ms, "the puts were over while the links were down");
      epoch.unlock();
    }
    rt.world().barrier();
    for (std::size_t i = 0; i < puts && rt.rank() == 1; ++i) require(win.local()[i] == i + 1, "a put is missing");
    win.free();
  });
  require_ok(out);
  CHECK(longest_ns < 10'000);
}

// Break: let a full message or queue of held operations be sent by the call that finds it full, whatever waits.
TEST_CASE("a put behind a million others returns at once", "[room]") {
  const auto [setting, value] =
      GENERATE(std::pair{"", ""}, std::pair{"RMA_AGGREGATE", "1024"}, std::pair{"RMA_SCHEDULE", "interleave"});
  CAPTURE(setting, value);
  auto job = nodes(2, 1024);
  if (*setting != 0) job.settings[setting] = value;
  job.outages.push_back({1ms, 20s});
  constexpr std::size_t puts = 1'000'000;
  std::int64_t longest_ns = 0;
  std::size_t grown = 0;
  const auto out = rma::sim::run(job, [&](Runtime& rt) {
    auto win = Window<word>::allocate(rt.world(), puts + 1);
    std::vector<word> from(puts, 7);
    win.fence();
    if (rt.rank() == 0) {
      auto epoch = win.lock(rma::shared, 1);
      win.put(word{0}, 1, 0);
      win.flush(1);
      rt.compute(2ms);
      grown = resident_bytes();
      for (std::size_t i = 0; i < puts; ++i) {
        const auto before = rt.now();
        win.put({&from[i], 1}, 1, i);
        longest_ns = std::max<std::int64_t>(longest_ns, (rt.now() - before).count());
      }
      grown = resident_bytes() - grown;
      for (std::size_t i = 0; i < 100; ++i) {
        const auto before = rt.now();
        Request request = win.rput({&from[i], 1}, 1, puts);
        longest_ns = std::max<std::int64_t>(longest_ns, (rt.now() - before).count());
        if (i == 99) {
          require(rt.now() < 20s, "the puts have waited for the links");
          request.wait();
        }
      }
      epoch.unlock();
    }
    rt.world().barrier();
    if (rt.rank() == 1) require(std::count(win.local().begin(), win.local().end(), 7) == puts + 1, "a put is missing");
    win.free();
  });
  require_ok(out);
  CHECK(longest_ns < 10'000);
  constexpr std::size_t record_bytes = 192;  // memory of each that waits, and a little for the queues of them
  if (!rma::test::address_sanitizer) CHECK(grown < puts * record_bytes * 5 / 4);
}

// Break: let a transfer over the bulk channel, or the messages of a layout, wait for room where they are issued.
TEST_CASE("requests of a million transfers with layouts return at once while the links are down", "[.][long][room]") {
  const std::string scheme = GENERATE("multi-w", "generic", "sgrs");
  CAPTURE(scheme);
  auto job = nodes(2, 1024);
  job.settings["RMA_LAYOUT"] = scheme;
  job.outages.push_back({1ms, 20s});
  constexpr std::size_t puts = 1'000'000, pieces = 3;
  std::int64_t longest_ns = 0;
  const auto out = rma::sim::run(job, [&](Runtime& rt) {
    auto win = Window<word>::allocate(rt.world(), puts * pieces * 2);
    const word from[2 * pieces] = {7, 0, 7, 0, 7, 0};
    const Layout rows = every(pieces, 2);
    win.fence();
    if (rt.rank() == 0) {
      std::vector<Request> all;
      all.reserve(puts);
      auto epoch = win.lock(rma::shared, 1);
      win.put(word{0}, 1, 0);
      win.flush(1);
      rt.compute(2ms);
      for (std::size_t i = 0; i < puts; ++i) {
        const auto before = rt.now();
        all.push_back(win.rput(from, rows, 1, i * pieces * 2, rows));
        longest_ns = std::max<std::int64_t>(longest_ns, (rt.now() - before).count());
      }
      require(rt.now() < 20s, "the puts have waited for the links");
      for (Request& each : all) each.wait();
      require(rt.now() > 20s, "the puts were over while the links were down");
      epoch.unlock();
    }
    rt.world().barrier();
    if (rt.rank() == 1)
      require(std::count(win.local().begin(), win.local().end(), 7) == puts * pieces, "a put is missing");
    win.free();
  });
  require_ok(out);
  CHECK(longest_ns < 10'000);
}

namespace {

/// Operations of all kinds by every rank on its right neighbor, more than the network takes, whose effect depends on
/// their order; each round is completed another way.
void mixed_rounds(Runtime& rt, std::uint64_t seed, bool puts_keep_order) {
  constexpr std::size_t run = 200, shaped = 60, rounds = 6;
  const int right = (rt.rank() + 1) % rt.size();
  const int left = (rt.rank() + rt.size() - 1) % rt.size();
  auto win = Window<word>::allocate(rt.world(), run + 3 * shaped + 2);
  const auto mine = win.local();
  std::vector<word> from(run), back(run), rows(shaped);
  for (std::size_t round = 0; round < rounds; ++round) {
    const word base = (seed + round) * 1000;
    for (std::size_t i = 0; i < run; ++i) from[i] = base + i;
    for (std::size_t i = 0; i < shaped; ++i) rows[i] = base + 7 * i;
    std::fill(mine.begin(), mine.end(), 0);
    win.fence();
    auto epoch = win.lock_all();
    for (std::size_t i = 0; i < run; ++i) win.put({&from[i], 1}, right, i);
    for (word i = 1; i <= 50; ++i) win.put(base + i, right, run);  // values, the last of which stays
    win.put(rows.data(), every(shaped, 1), right, run + 2, every(shaped, 3));
    for (word i = 0; i < 40; ++i) win.accumulate(i, right, run + 1, rma::sum);
    word old = ~word{0};
    if (round % 2 == 0) {
      old = win.fetch_and_op(word{1}, right, run + 1, rma::sum);
    } else {
      Request fetched = win.rfetch_and_op(word{1}, old, right, run + 1, rma::sum);
      fetched.wait();
    }
    require(old == 40 * 39 / 2, fmt::format("round {}: an update has been overtaken: {}", round, old));
    if (round % 3 == 0) {
      win.flush(right);
    } else if (round % 3 == 1) {
      win.flush_all();
    }
    if (round % 3 != 2) {
      win.get(back, right, 0);
      win.flush_local(right);
      require(back == from, fmt::format("round {}: what was put is not there", round));
    }
    epoch.unlock();
    rt.world().barrier();
    const word theirs = (seed + round) * 1000;
    for (std::size_t i = 0; i < run; ++i) require(mine[i] == theirs + i, fmt::format("round {}: put {}", round, i));
    const bool is_last = mine[run] == theirs + 50;
    require(is_last || (!puts_keep_order && mine[run] > theirs && mine[run] < theirs + 50),
            fmt::format("round {}: values of {} out of order", round, left));
    for (std::size_t i = 0; i < shaped; ++i) {
      require(mine[run + 2 + 3 * i] == theirs + 7 * i, fmt::format("round {}: row {}", round, i));
    }
    rt.world().barrier();
  }
  win.free();
}

}  // namespace

TEST_CASE("what is held for room keeps its order, and flushes, unlocks and fences wait for it", "[room]") {
  for (const char* const layout : {"auto", "generic", "multi-w"}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      auto job = nodes(3, seed % 3 == 0 ? 5 : static_cast<unsigned>(seed % 3), seed);
      job.faults = seed > 4;
      job.settings["RMA_LAYOUT"] = layout;
      if (seed % 2 == 0) job.settings["RMA_PROGRESS_THREAD"] = "1";
      if (seed % 4 == 1) job.settings["RMA_ACCUMULATE"] = "direct";
      INFO("seed " << seed << ", layout " << layout);
      require_ok(rma::sim::run(job, [&](Runtime& rt) { mixed_rounds(rt, seed, !job.faults); }));
    }
  }
}

namespace {

/// Times calls of a rank in virtual time, all of which are made while the links are down.
class timed_calls {
 public:
  explicit timed_calls(Runtime& rt) noexcept : rt_(rt) {}
  template <class Call>
  void operator()(Call&& call) {
    const auto before = rt_.now();
    call();
    longest_ns_ = std::max<std::int64_t>(longest_ns_, (rt_.now() - before).count());
  }
  void require_short() const {
    require(rt_.now() < 200ms, "the calls have waited for the links");
    require(longest_ns_ < 10'000, fmt::format("a call took {} ns", longest_ns_));
  }

 private:
  Runtime& rt_;
  std::int64_t longest_ns_ = 0;
};

}  // namespace

// Break: let operations in epochs that count (`epoch_terms::counts`) wait for room.
TEST_CASE("puts in a fence return at once while the links are down", "[room]") {
  const char* const fence = GENERATE("placed", "def", "imm-naive", "imm-opt", "imm-ri");
  const char* const layout = GENERATE("generic", "multi-w");
  CAPTURE(fence, layout);
  auto job = nodes(2, 16);
  job.settings["RMA_FENCE"] = fence;
  job.settings["RMA_LAYOUT"] = layout;
  job.outages.push_back({1ms, 200ms});
  constexpr std::size_t puts = 500, pieces = 40;
  require_ok(rma::sim::run(job, [&](Runtime& rt) {
    auto win = Window<word>::allocate(rt.world(), puts + 2 * pieces);
    std::vector<word> from(puts);
    for (std::size_t i = 0; i < puts; ++i) from[i] = i + 1;
    win.fence();
    if (rt.rank() == 0) win.put({&from[0], 1}, 1, 0);
    win.fence();
    if (rt.rank() == 0) {
      rt.compute(2ms);
      timed_calls timed(rt);
      for (std::size_t i = 0; i < puts; ++i) timed([&] { win.put({&from[i], 1}, 1, i); });
      timed([&] { win.put(from.data(), every(pieces, 1), 1, puts, every(pieces, 2)); });
      timed.require_short();
    }
    win.fence();
    if (rt.rank() == 0) require(rt.now() > 200ms, "the fence has not waited");
    for (std::size_t i = 0; i < puts && rt.rank() == 1; ++i) require(win.local()[i] == i + 1, "a put is missing");
    for (std::size_t i = 0; i < pieces && rt.rank() == 1; ++i)
      require(win.local()[puts + 2 * i] == i + 1, "a piece is missing");
    win.fence();
    win.free();
  }));
}

// Break: send a signal when its put is held; or send that of an operation without data ahead of those that are held.
TEST_CASE("puts with signals return at once while the links are down, and signals keep their order", "[room]") {
  const bool has_thread = GENERATE(false, true);
  auto job = nodes(2, 16);
  if (has_thread) job.settings["RMA_PROGRESS_THREAD"] = "1";
  job.outages.push_back({1ms, 200ms});
  constexpr std::size_t puts = 500;
  rma::Hints hints;
  hints.signals = 2;
  require_ok(rma::sim::run(job, [&](Runtime& rt) {
    auto win = Window<word>::allocate(rt.world(), puts, hints);
    std::vector<word> from(puts);
    for (std::size_t i = 0; i < puts; ++i) from[i] = i + 1;
    win.fence();
    auto epoch = win.lock_all();
    if (rt.rank() == 0) {
      win.put(word{0}, 1, 0);
      win.flush(1);
      rt.compute(2ms);
      timed_calls timed(rt);
      for (std::size_t i = 0; i < puts; ++i) {
        timed([&] { win.put_signal({&from[i], 1}, 1, i, 0); });
        timed([&] { win.put_signal(std::span<const word>{}, 1, 0, 1); });  // no data: only its signal
      }
      timed.require_short();
      win.flush(1);
      require(rt.now() > 200ms, "the flush has not waited");
    } else {
      for (std::size_t i = 0; i < puts; ++i) {
        win.wait_signal(1);
        require(win.test_signal(0), fmt::format("signal {} of an operation without data is ahead of that of a put", i));
        require(win.local()[i] == i + 1, fmt::format("signal {} is ahead of its data", i));
      }
      require(!win.test_signal(0) && !win.test_signal(1), "a signal was raised twice");
    }
    epoch.unlock();
    win.free();
  }));
}

TEST_CASE("the death of a target ends what is held for it", "[room]") {
  auto job = nodes(3, 2);
  job.outages.push_back({1ms, 50ms});
  job.kills.push_back({2, 20ms});
  const auto out = rma::sim::run(job, [&](Runtime& rt) {
    auto win = Window<word>::allocate(rt.world(), 64);
    std::vector<word> from(64, 5);
    std::vector<Request> all;
    if (rt.rank() == 0) {
      auto epoch = win.lock_all();
      for (int target = 1; target < 3; ++target) win.put(word{1}, target, 0);
      win.flush_all();
      rt.compute(2ms);
      for (std::size_t i = 0; i < 64; ++i) {
        all.push_back(win.rput({&from[i], 1}, 2, i));
        win.put({&from[i], 1}, 2, i);
        win.put({&from[i], 1}, 1, i);
      }
      std::size_t failed = 0;
      for (Request& each : all) {
        const rma::status s = each.wait_nothrow();
        require(s == rma::status::done || s == rma::status::peer_failed, "another end than by the death");
        failed += s == rma::status::peer_failed ? 1 : 0;
      }
      require(failed > 32, fmt::format("{} of 64 have failed", failed));
      require(win.try_flush(2) == rma::status::peer_failed, "the flush does not tell");
      win.flush(1);
      try {
        epoch.unlock();
      } catch (const rma::Error&) {  // as the flush said
      }
    }
    if (rt.rank() == 1) {
      while (win.local()[63] != 5) rt.compute(1ms);
    }
    if (rt.rank() == 2) rt.compute(1s);
  });
  INFO(out.text());
  CHECK(out.stuck.empty());
  CHECK(out.ranks[0].error.empty());
  CHECK(out.ranks[1].error.empty());
}

TEST_CASE("no more operations wait than RMA_WAITING_OPERATIONS says", "[room]") {
  auto job = nodes(2, 4);
  job.outages.push_back({1ms, 30ms});
  job.settings["RMA_WAITING_OPERATIONS"] = "100";
  const auto out = rma::sim::run(job, [&](Runtime& rt) {
    auto win = Window<word>::allocate(rt.world(), 300);
    std::vector<word> from(300, 9);
    if (rt.rank() == 0) {
      auto epoch = win.lock(rma::shared, 1);
      win.put(word{1}, 1, 0);
      win.flush(1);
      rt.compute(2ms);
      for (std::size_t i = 0; i < 100; ++i) win.put({&from[i], 1}, 1, i);
      require(rt.now() < 30ms, "a put has waited for room for fewer operations");
      for (std::size_t i = 100; i < 300; ++i) win.put({&from[i], 1}, 1, i);
      require(rt.now() >= 30ms, "more operations wait than are allowed");
      epoch.unlock();
    }
    rt.world().barrier();
    if (rt.rank() == 1) require(std::count(win.local().begin(), win.local().end(), 9) == 300, "a put is missing");
    win.free();
  });
  require_ok(out);
}
