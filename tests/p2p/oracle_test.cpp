// SPDX-License-Identifier: Apache-2.0
// Goal: no message is lost, doubled, damaged or overtaken, with wildcards, on any network, whatever the protocol;
// deaths end what depends on the dead, and nothing is written to the buffers of receives that have failed. Method:
// random programs (oracle.hpp) of simulated ranks in faults.
//
//   P2P_SEEDS=100:1100 p2p_oracle_test        runs these seeds; a failure names its seed
#include "oracle.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "rma/sim.hpp"

namespace {

using namespace p2p_oracle;

rma::sim::Config job_of(std::uint64_t seed, rng& d, bool deaths) {
  rma::sim::Config c;
  c.ranks = static_cast<int>(2 + d.below(4));
  c.ranks_per_node = static_cast<int>(1 + d.below(3));
  c.seed = seed;
  c.faults = !d.one_in(4);
  c.errors = d.one_in(2);
  c.limit = std::chrono::seconds(600);
  c.settings["RMA_RENDEZVOUS"] =
      d.one_of<std::string>({"auto", "stream", "rput", "getcqe", "get", "putnr", "put", "sgrs"});
  c.settings["RMA_EAGER_BYTES"] = d.one_of<std::string>({"0", "64", "4096"});
  c.settings["RMA_EAGER"] = d.one_of<std::string>({"auto", "rdma-ring", "rdma-ring:immediate"});
  c.settings["RMA_RING_SLOTS"] = d.one_of<std::string>({"2", "5", "32"});
  c.settings["RMA_RING_PEERS"] = d.one_of<std::string>({"1", "16"});
  c.settings["RMA_RING_SET"] = d.one_of<std::string>({"first", "traffic", "traffic"});
  c.settings["RMA_RING_ORDER"] = d.one_of<std::string>({"circular", "sequential", "priority"});
  c.settings["RMA_SEND_COPY_BYTES"] = d.one_of<std::string>({"0", "0", "8K"});
  c.settings["RMA_EAGER_MEMORY"] = d.one_of<std::string>({"16K", "256K"});
  c.settings["RMA_INTRANODE"] = d.one_of<std::string>({"on", "on", "off"});
  c.settings["RMA_PROGRESS_THREAD"] = d.one_of<std::string>({"0", "0", "1"});
  if (const char* const forced = std::getenv("P2P_RENDEZVOUS")) c.settings["RMA_RENDEZVOUS"] = forced;
  if (deaths)
    c.kills.push_back({static_cast<int>(d.below(static_cast<std::uint64_t>(c.ranks))),
                       std::chrono::nanoseconds(100'000 + d.below(3'000'000))});
  return c;
}

void run_seed(std::uint64_t seed, bool deaths) {
  rng d(seed * 31 + (deaths ? 7 : 0));
  const rma::sim::Config c = job_of(seed, d, deaths);
  const plan p{seed, c.ranks, 2, 1 + d.below(60), seed % 5 == 0, !deaths && seed % 3 == 0};
  const auto out = rma::sim::run(c, [&](rma::Runtime& rt) { return program(p, rt, deaths); });
  INFO("seed " << seed << (deaths ? " with a death" : "") << ", " << c.ranks << " ranks, "
               << c.settings.at("RMA_RENDEZVOUS") << "\n"
               << out.text());
  CHECK(out.ok());
}

/// P2P_SEEDS=FIRST:LAST, LAST not included.
std::pair<std::uint64_t, std::uint64_t> seeds(std::uint64_t last) {
  const char* const given = std::getenv("P2P_SEEDS");
  if (given == nullptr) return {1, last};
  char* end = nullptr;
  const std::uint64_t first = std::strtoull(given, &end, 10);
  return {first, std::strtoull(end + 1, nullptr, 10)};
}

}  // namespace

TEST_CASE("random messages with wildcards on random networks", "[p2p][oracle]") {
  const auto [first, last] = seeds(150);
  for (std::uint64_t seed = first; seed < last; ++seed) run_seed(seed, false);
}

TEST_CASE("random messages and a death", "[p2p][oracle]") {
  const auto [first, last] = seeds(100);
  for (std::uint64_t seed = first; seed < last; ++seed) run_seed(seed, true);
}

// Goal: the end of a rank waits neither for its own receives nor for those of a rank that has come to its end, too.
// Break: do not let messenger::keep discard what comes late.
TEST_CASE("sends that nobody receives do not keep their ranks from ending", "[p2p]") {
  static std::array<std::array<char, 40000>, 2> data;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{40000}}) {
    for (const int ranks_per_node : {1, 2}) {
      const auto out = rma::sim::run({.ranks = 2, .ranks_per_node = ranks_per_node}, [&](rma::Runtime& rt) {
        const std::span from(data[static_cast<std::size_t>(rt.rank())].data(), bytes);
        for (const auto kind : {rma::send_kind::buffered, rma::send_kind::synchronous}) {
          for (int to = 0; to < 2; ++to) {
            rma::MessageRequest dropped;
            (void)rt.world().try_isend(from, to, 0, dropped, kind);
          }
        }
        rt.compute(std::chrono::microseconds(rt.rank() * 50));  // some come before the end, others behind it
      });
      INFO(bytes << " bytes, " << ranks_per_node << " ranks a node\n" << out.text());
      CHECK(out.ok());
    }
  }
}
