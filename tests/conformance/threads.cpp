// SPDX-License-Identifier: Apache-2.0
#include "threads.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <thread>

#include "boot/server.hpp"
#include "rma/runtime.hpp"

namespace conformance {

int run_as_threads(int ranks, const std::vector<std::pair<std::string, std::string>>& settings,
                   const std::function<int(rma::Runtime&)>& rank_main) {
  const std::string key = "the ranks are threads of one process";
  rma::boot::server job({.size = ranks, .key = key});
  job.start();
  std::vector<int> results(static_cast<std::size_t>(ranks), 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        rma::Config config{.boot = job.address(), .rank = rank, .size = ranks, .key = key};
        for (const auto& [name, value] : settings) config.settings[name] = value;
        rma::Runtime runtime(config);
        results[static_cast<std::size_t>(rank)] = rank_main(runtime);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
        results[static_cast<std::size_t>(rank)] = 1;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return *std::ranges::max_element(results);
}

}  // namespace conformance
