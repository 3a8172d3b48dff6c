// SPDX-License-Identifier: Apache-2.0
// How fast the network model of the simulator is.
//
// The neighbor pattern of Susukita's NSIM-ACE papers: one rank per node in a ring, each puts 10 messages of 64 KiB, to
// the ranks +1, -1, +2, -2, ... +5, -5 from it, and waits for each put to be acknowledged before the next. A hop is one
// packet (2 KiB at most) over one link. perf/peers/simgrid_neighbors.cpp does the same with SimGrid.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "fabric/sim/network_model.hpp"  // tidy: allow(include-direction) it measures a part of the library
#include "fabric/sim/report.hpp"         // tidy: allow(include-direction) the same
#include "perf.hpp"
#include "rma/error.hpp"

namespace {

namespace sim = rma::sim;

struct choice {
  int ranks = 1024;
  int messages = 10;
  std::uint64_t bytes = 65536;
  int runs = 5;
  bool together = false;
  std::string machine = "susukita";
  std::string shape = "fat-tree";
  std::string report{};
};

/// Every rank's puts, one after the other; a transfer's number is its source.
class neighbors final : public sim::transfer_sink {
 public:
  explicit neighbors(const choice& chosen)
      : chosen_(chosen),
        network(events, sim::load_parameters(chosen.machine), sim::topology(chosen.shape, chosen.ranks), *this),
        posted_(static_cast<std::size_t>(chosen.ranks)) {}

  void run() {
    for (int i = 0; i < (chosen_.together ? chosen_.messages : 1); ++i) {
      for (int rank = 0; rank < chosen_.ranks; ++rank) post_next(rank);
    }
    while (events.run_one()) continue;
  }
  void on_departure(sim::transfer_id, std::uint64_t, std::uint32_t) noexcept override {}
  void on_arrival(sim::transfer_id, std::uint64_t, std::uint32_t size) noexcept override { bytes_arrived += size; }
  void on_acknowledgement(sim::transfer_id id) noexcept override {
    ++acknowledged;
    post_next(static_cast<int>(id));
  }

 private:
  const choice& chosen_;

 public:
  sim::event_queue events{};
  sim::network_model network;
  std::uint64_t bytes_arrived = 0;
  int acknowledged = 0;

 private:
  void post_next(int rank) {
    const int message = posted_[static_cast<std::size_t>(rank)]++;
    if (message >= chosen_.messages) return;
    const int distance = message / 2 + 1;
    const int to = rank + (message % 2 == 0 ? distance : -distance);
    network.post({.id = static_cast<sim::transfer_id>(rank),
                  .from_node = rank,
                  .to_node = (to % chosen_.ranks + chosen_.ranks) % chosen_.ranks,
                  .bytes = chosen_.bytes},
                 events.now_ps());
  }

  std::vector<int> posted_;
};

void measure(const choice& chosen) {
  perf::samples wall_s;
  perf::samples cpu_s;
  std::uint64_t hops = 0;
  std::uint64_t events = 0;
  double simulated_us = 0;
  std::string shape;
  for (int run = 0; run < chosen.runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t start_cpu = std::clock();
    neighbors world(chosen);
    world.run();
    cpu_s.add(static_cast<double>(std::clock() - start_cpu) / CLOCKS_PER_SEC);
    wall_s.add(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    const auto all = static_cast<std::uint64_t>(chosen.ranks) * static_cast<std::uint64_t>(chosen.messages);
    perf::require(world.bytes_arrived == all * chosen.bytes, "every byte arrives");
    perf::require(static_cast<std::uint64_t>(world.acknowledged) == all, "every put is acknowledged");
    hops = world.network.hops();
    events = world.events.ran();
    simulated_us = static_cast<double>(world.events.now_ps()) / 1e6;
    shape = world.network.over().text();
  }
  const auto rate = [&](double seconds) { return static_cast<double>(hops) / seconds / 1e6; };
  std::printf(
      "sim_network %s %s ranks %d: hops %llu events %llu wall_s %.4f mad %.4f min %.4f max %.4f runs %d "
      "simulated_us %.3f mhops_s %.3f per_cpu_s %.3f\n",
      chosen.machine.c_str(), shape.c_str(), chosen.ranks, static_cast<unsigned long long>(hops),
      static_cast<unsigned long long>(events), wall_s.median(), wall_s.mad(), wall_s.min(), wall_s.max(), chosen.runs,
      simulated_us, rate(wall_s.median()), rate(cpu_s.median()));
}

/// One more run, written down in files.
void write_report(const choice& chosen) {
  neighbors world(chosen);
  sim::use_log log(
      world.network.over().links() + static_cast<std::size_t>(chosen.ranks) * world.network.engines_per_node(), {});
  world.network.watch(log);
  world.run();
  const auto write = [&](const char* suffix, const std::string& text) {
    std::ofstream file(chosen.report + suffix);
    file << text;
    perf::require(file.good(), "the report can be written");
  };
  const sim::network_record record = sim::record_of(world.network, &log);
  write(".txt", sim::text_report(record));
  write(".json", sim::json_report(record));
  write(".svg", sim::heat_map_svg(record));
  write(".trace.json", sim::trace_json(world.network, log));
}

}  // namespace

int main(int argc, char** argv) {
  choice chosen;
  CLI::App app{"Speed of the simulator's network model with a neighbor pattern"};
  app.add_option("--ranks", chosen.ranks, "one per node")->check(CLI::Range(2, 1 << 20))->capture_default_str();
  app.add_option("--messages", chosen.messages, "of each rank")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--bytes", chosen.bytes, "of each message")->check(CLI::Range(1, 1 << 30))->capture_default_str();
  app.add_option("--runs", chosen.runs)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--machine", chosen.machine, "preset or file of parameters")->capture_default_str();
  app.add_option("--topology", chosen.shape)->capture_default_str();
  app.add_flag("--together", chosen.together, "all puts of a rank at once instead of one after the other");
  app.add_option("--report", chosen.report, "write PREFIX.txt, .json, .svg (use of links) and .trace.json")
      ->type_name("PREFIX");
  CLI11_PARSE(app, argc, argv);
  try {
    measure(chosen);
    if (!chosen.report.empty()) write_report(chosen);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sim_network: %s\n", e.what());
    return 1;
  }
}
