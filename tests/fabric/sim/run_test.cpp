// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "skip.hpp"

namespace {

namespace sim = rma::sim;
using namespace std::chrono_literals;
using Catch::Contains;

/// Puts, atomics and a lock of every rank on every other.
void exercise(rma::Runtime& rt, std::vector<std::uint64_t>& seen) {
  rma::Team world = rt.world();
  auto win = rma::Window<std::uint64_t>::allocate(world, 8);
  win.fence();
  win.put(100 + static_cast<std::uint64_t>(rt.rank()), (rt.rank() + 1) % rt.size(), 3);
  win.fence();
  for (int turn = 0; turn < 20; ++turn) {
    const auto hold = win.lock(rma::exclusive, turn % rt.size());
    win.put(win.get(turn % rt.size(), 1) + 1, turn % rt.size(), 1);
  }
  world.barrier();
  seen[static_cast<std::size_t>(rt.rank())] = win[3] + 1000 * win[1];
  win.free();
}

}  // namespace

// Goal: a program with windows runs in the simulator as it does elsewhere.
TEST_CASE("four simulated ranks put, lock and fence", "[fabric][sim][run]") {
  std::vector<std::uint64_t> seen(4, 0);
  const sim::Outcome out = sim::run({.ranks = 4}, [&](rma::Runtime& rt) { exercise(rt, seen); });
  INFO(out.text());
  CHECK(out.ok());
  CHECK(seen == std::vector<std::uint64_t>{20103, 20100, 20101, 20102});
  CHECK(out.time > 0ns);
}

// Goal: a rank that loops without a call of the library is named, while it does so; the run goes on after that.
// Method: rank 1 loops until the report has come. Break: in watchdog::look, compare no turns.
TEST_CASE("the watchdog names a rank that does not let others run", "[fabric][sim][run]") {
  std::mutex lock;
  std::string line;
  std::atomic<bool> reported = false;
  sim::Config job{.ranks = 3, .watchdog = 20ms};
  job.on_stall = [&](const std::string& text) {
    const std::lock_guard guard(lock);
    line = text;
    reported.store(true);
  };
  const sim::Outcome out = sim::run(job, [&](rma::Runtime& rt) {
    rt.world().barrier();
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    while (rt.rank() == 1 && !reported.load() && std::chrono::steady_clock::now() < give_up) continue;
    rt.world().barrier();
  });
  INFO(out.text());
  CHECK(out.ok());
  CHECK_THAT(line, Contains("rank 1 has run for") && Contains("gdb -p"));
}

TEST_CASE("the same job gives the same run", "[fabric][sim][run]") {
  std::vector<std::uint64_t> seen(5, 0);
  const sim::Config job{.ranks = 5, .settings = {{"RMA_PROGRESS_THREAD", "1"}}};
  const auto once = [&] { return sim::run(job, [&](rma::Runtime& rt) { exercise(rt, seen); }); };
  const sim::Outcome first = once();
  const sim::Outcome second = once();
  INFO(first.text());
  CHECK(first.ok());
  CHECK(first.time == second.time);
  CHECK(first.events == second.events);
  for (std::size_t r = 0; r < 5; ++r) CHECK(first.ranks[r].waiting == second.ranks[r].waiting);
}

TEST_CASE("a loop that waits for a time comes to an end", "[fabric][sim][run]") {
  std::uint64_t looks = 0;
  std::uint64_t seen = 0;
  const sim::Outcome out = sim::run({.ranks = 2}, [&](rma::Runtime& rt) {
    auto win = rma::Window<std::uint64_t>::allocate(rt.world(), 1);
    const auto end = rt.now() + 100us;
    if (rt.rank() == 1) {
      rt.compute(20us);
      const auto hold = win.lock(rma::exclusive, 0);
      win.put(1, 0, 0);
    }
    while (rt.now() < end) {
      if (rt.rank() != 0) continue;
      ++looks;
      seen += win[0];  // others go on meanwhile
    }
    rt.world().barrier();
    win.free();
  });
  INFO(out.text());
  CHECK(out.ok());
  CHECK(looks > 1000);
  CHECK(seen > 1000);
}

TEST_CASE("a program gives a Config beside its command line", "[fabric][sim][run]") {
  std::vector<rma::thread_level> levels;
  std::vector<std::string> spins;
  const auto program = [&](int argc, char** argv) {
    rma::Runtime rt(
        argc, argv,
        {.threads = rma::thread_level::funneled, .settings = {{"RMA_SPIN_US", "7"}, {"RMA_LOCK_BYPASSES", "3"}}});
    levels.push_back(rt.threads());
    for (const rma::Setting& s : rt.settings()) {
      if (s.name == "RMA_SPIN_US" || s.name == "RMA_STALL_REPORT_S") spins.push_back(s.value);
    }
    return argc == 2 && std::string(argv[1]) == "--mine" && rt.size() == 2 ? 0 : 1;
  };
  const sim::Config job{.ranks = 2, .settings = {{"RMA_SPIN_US", "9"}, {"RMA_STALL_REPORT_S", "5"}}};
  const sim::Outcome out = sim::run_program(job, {"program", "--mine"}, program);
  INFO(out.text());
  CHECK(out.ok());
  CHECK(levels == std::vector<rma::thread_level>(2, rma::thread_level::funneled));
  CHECK(spins == std::vector<std::string>{"7", "5", "7", "5"});
}

TEST_CASE("time is virtual", "[fabric][sim][run]") {
  std::chrono::nanoseconds passed{};
  const sim::Outcome out = sim::run({.ranks = 2}, [&](rma::Runtime& rt) {
    const auto before = rt.now();
    if (rt.rank() == 1) rt.compute(3h);
    rt.world().barrier();
    if (rt.rank() == 0) passed = rt.now() - before;
  });
  INFO(out.text());
  CHECK(out.ok());
  CHECK(passed >= 3h);
  CHECK(passed < 3h + 1s);
  CHECK(out.ranks[1].computing == 3h);
  CHECK(out.ranks[0].waiting > 2h);
}

TEST_CASE("a loop of tests lets the others get on", "[fabric][sim][run]") {
  const sim::Outcome out = sim::run({.ranks = 2}, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), 1, {.signals = 1});
    win.fence();
    if (rt.rank() == 0) {
      rt.compute(50us);
      const auto hold = win.lock(rma::shared, 1);
      win.put_signal({}, 1, 0, 0);
    } else {
      while (!win.test_signal(0)) {}
    }
    rt.world().barrier();
    const auto hold = win.lock_all();
    while (rt.rank() == 1 && win.get(0, 0) == 0) win.put(1, 0, 0);
  });
  INFO(out.text());
  CHECK(out.ok());
}

TEST_CASE("a deadlock is reported with what each rank waits for, and where", "[fabric][sim][run]") {
  const int line = __LINE__;
  const sim::Outcome out = sim::run({.ranks = 3}, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), 1);
    if (rt.rank() == 0) {
      rt.world().barrier();
    } else {
      win.fence();
    }
  });
  INFO(out.stuck);
  CHECK_FALSE(out.ok());
  CHECK(out.exit_code() == 2);
  CHECK_THAT(out.stuck, Contains("deadlock") && Contains("rank 0 waits in barrier") &&
                            Contains("rank 1 waits in fence") && Contains("rank 2 waits in fence"));
  if (std::system("addr2line --version >/dev/null 2>&1") != 0) return rma::test::skip("addr2line is not installed");
  for (const int call : {line + 4, line + 6}) {
    CHECK_THAT(out.stuck, Contains(", called at ") && Contains("/run_test.cpp:" + std::to_string(call)));
  }
}

TEST_CASE("who waits for a killed rank learns of it", "[fabric][sim][run]") {
  std::vector<std::string> told(3);
  const sim::Outcome out = sim::run({.ranks = 3, .kills = {{1, 5ms}}}, [&](rma::Runtime& rt) {
    rma::Team world = rt.world();
    try {
      for (;;) {
        rt.compute(1ms);
        world.barrier();
      }
    } catch (const rma::Error& e) {
      told[static_cast<std::size_t>(rt.rank())] = name_of(e.code());
    }
  });
  INFO(out.text());
  CHECK(out.ok());
  CHECK(told == std::vector<std::string>{"peer_failed", "", "peer_failed"});
  CHECK(out.ranks[1].fate == sim::Fate::killed);
  CHECK(out.ranks[1].end == 5ms);
  CHECK(out.time < 3s);
}

TEST_CASE("the error of a window's call names the rank that has died, and says what to do", "[fabric][sim][run]") {
  std::string said;
  const sim::Outcome out = sim::run({.ranks = 2, .kills = {{1, 5ms}}}, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), 1, {.name = "torn"});
    try {
      for (;;) {
        rt.compute(1ms);
        win.fence();
      }
    } catch (const rma::Error& e) {
      said = e.what();
    }
  });
  INFO(out.text() << said);
  CHECK(out.ok());
  CHECK(said.find("fence (window 'torn')") != std::string::npos);
  CHECK(said.find("; go on without it, or team.shrink()") != std::string::npos);
}

TEST_CASE("a killed rank's lock is recovered", "[fabric][sim][run]") {
  int got = 0;
  const sim::Outcome out = sim::run({.ranks = 3, .kills = {{1, 5ms}}}, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), 1);
    if (rt.rank() == 1) {
      const auto hold = win.lock(rma::exclusive, 0);
      rt.compute(1h);
    }
    rt.compute(1ms);
    for (;;) {
      try {
        const auto hold = win.lock(rma::exclusive, 0);
        ++got;
        break;
      } catch (const rma::Error& e) {
        if (e.code() != rma::status::peer_failed) throw;
      }
    }
  });
  INFO(out.text());
  CHECK(out.ok());
  CHECK(got == 2);
}

TEST_CASE("an exception of one rank is an outcome", "[fabric][sim][run]") {
  const sim::Outcome out = sim::run({.ranks = 3}, [&](rma::Runtime& rt) {
    rma::Team world = rt.world();
    world.barrier();
    if (rt.rank() == 2) throw std::runtime_error("no more");
    try {
      world.barrier();
    } catch (const rma::Error& e) {
      CHECK(e.code() == rma::status::peer_failed);
    }
  });
  CHECK(out.exit_code() == 1);
  CHECK(out.ranks[0].fate == sim::Fate::finished);
  CHECK(out.ranks[2].fate == sim::Fate::threw);
  CHECK(out.ranks[2].error == "no more");
  CHECK_THAT(out.text(), Contains("rank 2 ended by an exception: no more"));
}

TEST_CASE("an abort ends the job", "[fabric][sim][run]") {
  const sim::Outcome out = sim::run({.ranks = 3}, [&](rma::Runtime& rt) {
    if (rt.rank() == 1) rt.abort(9, "enough");
    rt.world().barrier();
    FAIL("nobody passes");
  });
  CHECK(out.aborted);
  CHECK(out.exit_code() == 9);
  CHECK_THAT(out.text(), Contains("rank 1") && Contains("enough"));
}

TEST_CASE("a program gets its arguments without the launcher's", "[fabric][sim][run]") {
  std::vector<std::string> lines(3);
  const sim::Outcome out = sim::run_program({.ranks = 3}, {"name", "a", "b c"}, [&](int argc, char** argv) {
    rma::Runtime rt(argc, argv);
    for (int i = 0; i < argc; ++i) lines[static_cast<std::size_t>(rt.rank())] += std::string(argv[i]) + "|";
    CHECK(argv[argc] == nullptr);
    return rt.rank() == 2 ? 5 : 0;
  });
  CHECK(out.exit_code() == 5);
  CHECK(lines == std::vector<std::string>(3, "name|a|b c|"));
}

TEST_CASE("a runtime in nobody's job is refused", "[fabric][sim][run]") {
  rma::Config config;
  config.boot = "sim://12-0-34";
  CHECK_THROWS_WITH(rma::Runtime(config), Contains("sim://12-0-34") && Contains("rma-sim"));
}

TEST_CASE("a job that makes no sense is refused", "[fabric][sim][run]") {
  const auto nothing = [](rma::Runtime&) {};
  CHECK_THROWS_AS(sim::run({.ranks = 0}, nothing), rma::Error);
  CHECK_THROWS_AS(sim::run({.ranks = 2, .kills = {{2, 1ms}}}, nothing), rma::Error);
  CHECK_THROWS_AS(sim::run({.ranks = 2, .parameters = "nothing"}, nothing), rma::Error);
  CHECK_THROWS_AS(sim::run({.ranks = 2, .ranks_per_node = 1, .topology = "nothing"}, nothing), rma::Error);
  const sim::Outcome out = sim::run({.ranks = 2, .settings = {{"RMA_NOTHING", "1"}}}, nothing);
  CHECK_THAT(out.text(), Contains("RMA_NOTHING"));
}

// Goal: a node's memory is shared by the copies of its ranks, and by nobody else's.
// Method: a machine whose memory feeds one and a half copies; each rank puts to itself. Alone, then two at once.
TEST_CASE("copies share the memory of their node", "[fabric][sim][run]") {
  const std::string path = "./run_test_memory.params";
  std::ofstream(path) << "base = ndr400\ncopy_bandwidth = 10 GB/s\nmemory_bandwidth = 30 GB/s\n";
  const auto slowest_ns = [&](int ranks, int per_node) {
    std::int64_t most_ns = 0;
    const sim::Outcome out =
        sim::run({.ranks = ranks, .ranks_per_node = per_node, .parameters = path}, [&](rma::Runtime& rt) {
          constexpr std::size_t size = 1'000'000;
          auto win = rma::Window<std::byte>::allocate(rt.world(), size);
          const std::vector<std::byte> data(size);
          rt.world().barrier();
          rt.compute(std::chrono::milliseconds(10) - rt.now());  // all at once
          const auto start = rt.now();
          auto epoch = win.lock_all();
          win.put(std::span(data), rt.rank(), 0);
          epoch.unlock();
          most_ns = std::max<std::int64_t>(most_ns, (rt.now() - start).count());
          win.free();
        });
    CHECK(out.ok());
    return static_cast<double>(most_ns);
  };
  const double alone = slowest_ns(1, 1);
  CHECK(alone == Approx(100'000).epsilon(0.05));
  CHECK(slowest_ns(2, 2) == Approx(133'000).epsilon(0.05));  // 4 MB of traffic at 30 GB/s
  CHECK(slowest_ns(3, 3) == Approx(200'000).epsilon(0.05));
  CHECK(slowest_ns(2, 1) == Approx(alone).epsilon(0.1));
  CHECK(slowest_ns(6, 3) == Approx(200'000).epsilon(0.1));
  std::remove(path.c_str());
}
