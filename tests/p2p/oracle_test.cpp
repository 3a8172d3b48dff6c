// SPDX-License-Identifier: Apache-2.0
// Goal: no message is lost, doubled, damaged or overtaken, with wildcards, on any network, whatever the protocol;
// deaths end what depends on the dead, and nothing is written to the buffers of receives that have failed. Method:
// random programs (oracle.hpp) of simulated ranks in faults.
//
//   P2P_SEEDS=100:1100 p2p_oracle_test                       runs these seeds
//   P2P_SEEDS=1:1001 P2P_MESSAGES=1000 p2p_oracle_test       runs so many messages of each; without, a few hundred
//
// A failure says how it is run again.
#include "oracle.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "rma/sim.hpp"

namespace {

using namespace p2p_oracle;

constexpr const char* without_deaths = "random messages with wildcards on random networks";
constexpr const char* with_a_death = "random messages and a death";

rma::sim::Config job_of(std::uint64_t seed, rng& d, bool deaths) {
  rma::sim::Config c;
  c.ranks = static_cast<int>(2 + d.below(4));
  c.ranks_per_node = static_cast<int>(1 + d.below(3));
  c.seed = seed;
  c.faults = !d.one_in(4);
  c.errors = d.one_in(2);
  c.limit = std::chrono::seconds(600);
  c.settings["RMA_LOG"] = "error";
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

/// At least so many messages of each seed, by P2P_MESSAGES; 0: a number that depends on the seed.
std::size_t wanted_messages() {
  const char* const given = std::getenv("P2P_MESSAGES");
  return given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
}

std::string text_of(const std::map<std::string, std::string>& settings) {
  std::string all;
  for (const auto& [name, value] : settings) all += " " + name + "=" + value;
  return all;
}

/// Returns the number of messages that are sent if no rank dies.
std::size_t run_seed(std::uint64_t seed, bool deaths) {
  rng d(seed * 31 + (deaths ? 7 : 0));
  const rma::sim::Config c = job_of(seed, d, deaths);
  constexpr std::size_t rounds = 2;
  const std::size_t senders = rounds * static_cast<std::size_t>(c.ranks), wanted = wanted_messages();
  const std::size_t each = wanted == 0 ? 1 + d.below(60) : (wanted + senders - 1) / senders;
  const plan p{seed, c.ranks, rounds, each, seed % 5 == 0, !deaths && seed % 3 == 0};
  const auto out = rma::sim::run(c, [&](rma::Runtime& rt) { return program(p, rt, deaths); });
  INFO("seed " << seed << (deaths ? " with a death" : "") << ", " << c.ranks << " ranks, " << c.ranks_per_node
               << " a node," << text_of(c.settings) << "; again by P2P_SEEDS=" << seed << ':' << seed + 1
               << (wanted == 0 ? "" : " P2P_MESSAGES=" + std::to_string(wanted)) << " p2p_oracle_test '"
               << (deaths ? with_a_death : without_deaths) << "'\n"
               << out.text());
  CHECK(out.ok());
  return senders * each;
}

/// P2P_SEEDS=FIRST:LAST, LAST not included.
std::pair<std::uint64_t, std::uint64_t> seeds(std::uint64_t last) {
  const char* const given = std::getenv("P2P_SEEDS");
  if (given == nullptr) return {1, last};
  char* end = nullptr;
  const std::uint64_t first = std::strtoull(given, &end, 10);
  return {first, std::strtoull(end + 1, nullptr, 10)};
}

void run_seeds(std::uint64_t usual_last, bool deaths) {
  const auto [first, last] = seeds(usual_last);
  std::size_t messages = 0;
  for (std::uint64_t seed = first; seed < last; ++seed) messages += run_seed(seed, deaths);
  std::printf("%zu messages of %llu programs%s\n", messages, static_cast<unsigned long long>(last - first),
              deaths ? ", in each of which a rank dies" : "");
  CHECK(messages >= wanted_messages() * (last - first));
}

}  // namespace

TEST_CASE(without_deaths, "[p2p][oracle]") { run_seeds(150, false); }

TEST_CASE(with_a_death, "[p2p][oracle]") { run_seeds(100, true); }

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
