// SPDX-License-Identifier: Apache-2.0
// Config::from_rank_0: ranks that can talk to each other already need no launcher.
#include <catch2/catch.hpp>

#include <atomic>
#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "rma/rma.hpp"

namespace {

rma::Config introduced(int rank, int size) {
  rma::Config config;
  config.environment = false;
  config.rank = rank;
  config.size = size;
  config.one_machine = true;
  return config;
}

}  // namespace

// Goal: the job starts, and a second one after it, by nothing but a broadcast of the program's own.
TEST_CASE("threads introduce themselves by a shared variable", "[boot]") {
  constexpr int size = 3;
  std::atomic<int> right = 0;
  for (int turn = 0; turn < 2; ++turn) {
    std::promise<std::string> said;
    const std::shared_future<std::string> heard = said.get_future().share();
    std::vector<std::thread> ranks;
    for (int r = 0; r < size; ++r) {
      ranks.emplace_back([&, r] {
        rma::Config config = introduced(r, size);
        config.from_rank_0 = [&, r](const std::string& of_rank_0) {
          if (r == 0) said.set_value(of_rank_0);
          return heard.get();
        };
        rma::Runtime rt(config);
        auto win = rma::Window<std::uint64_t>::allocate(rt.world(), 1);
        win.fence();
        win.put(10U + static_cast<unsigned>(r), (r + 1) % size, 0);
        win.fence();
        right += rt.size() == size && win[0] == 10U + static_cast<unsigned>((r + size - 1) % size) ? 1 : 0;
        win.free();
      });
    }
    for (std::thread& each : ranks) each.join();
  }
  CHECK(right == 2 * size);
}

TEST_CASE("a job of one needs nobody's answer", "[boot]") {
  rma::Config config = introduced(0, 1);
  config.from_rank_0 = [](const std::string& of_rank_0) { return of_rank_0; };
  rma::Runtime rt(config);
  CHECK(rt.size() == 1);
}

TEST_CASE("ranks that make no sense are refused in one line", "[boot]") {
  const auto refusal = [](const rma::Config& config) -> std::string {
    try {
      rma::Runtime rt(config);
    } catch (const rma::Error& e) {
      return std::string(name_of(e.code())) + " " + e.what();
    }
    return "started";
  };
  rma::Config config = introduced(5, 3);
  config.from_rank_0 = [](const std::string& of_rank_0) { return of_rank_0; };
  CHECK_THAT(refusal(config), Catch::Contains("bad_boot") && Catch::Contains("rank 5 of 3"));
  rma::Config without = introduced(0, 3);
  without.boot = "introduced";
  CHECK_THAT(refusal(without), Catch::Contains("bad_boot") && Catch::Contains("from_rank_0"));
  config = introduced(0, 3);
  config.from_rank_0 = [](const std::string&) { return std::string("nonsense"); };
  CHECK_THAT(refusal(config), Catch::Contains("bad_boot"));
}
