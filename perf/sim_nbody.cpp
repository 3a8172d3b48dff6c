// SPDX-License-Identifier: Apache-2.0
// The experiment of Susukita et al.: particles of an N-body simulation change their domains, and where the barrier is
// decides how long that takes.
//
// 128^3 particles in clusters; the box is divided among the ranks; each particle moves on for a step; the box is
// divided again. Each rank packs the particles that leave it (48 bytes each), and puts those for one rank by one put,
// in the order of ranks. A barrier is needed before the first put: before or after the packing. Both are simulated,
// each with and without the puts within nodes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "perf.hpp"
#include "rma/error.hpp"
#include "sim/nbody.hpp"
#include "sim/pattern_text.hpp"

namespace {

namespace sim = rma::sim;

constexpr int refused = 2;

struct choice {
  perf::cosmos cosmos{};
  perf::nbody_choice nbody{};
  sim::Config job{.ranks = 32, .ranks_per_node = 2, .parameters = "susukita"};
  int side = 128;
  bool measure_pack = false;
  std::string json{};
  std::string trace{};
};

struct variant {
  std::string_view name;
  perf::barrier_at where;
  sim::IntraNode intra_node;
};
constexpr variant variants[] = {
    {"barrier-before-pack", perf::barrier_at::before_pack, sim::IntraNode::adapter},
    {"barrier-after-pack", perf::barrier_at::after_pack, sim::IntraNode::adapter},
    {"barrier-before-pack, no intra-node", perf::barrier_at::before_pack, sim::IntraNode::free},
    {"barrier-after-pack, no intra-node", perf::barrier_at::after_pack, sim::IntraNode::free},
};

double mean_us(const sim::PatternOutcome& of, std::string_view phase) {
  return perf::microseconds(of.phase_sum(phase)) / static_cast<double>(of.ranks.size());
}

double each_us(sim::picoseconds sum, const sim::TransferUse& of) {
  return of.count == 0 ? 0 : perf::microseconds(sum) / static_cast<double>(of.count);
}

void print_table(const std::vector<sim::PatternOutcome>& results) {
  fmt::print("{:36} {:>9} | {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8} | {:>8} {:>8}\n", "times in us", "total", "pack",
             "least", "most", "put", "least", "most", "barrier", "least");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const sim::PatternOutcome& r = results[i];
    fmt::print("{:36} {:9.1f}", variants[i].name, perf::microseconds(r.time));
    for (const char* phase : {"pack", "put"}) {
      fmt::print(" | {:8.1f} {:8.1f} {:8.1f}", mean_us(r, phase), perf::microseconds(r.phase_min(phase)),
                 perf::microseconds(r.phase_max(phase)));
    }
    fmt::print(" | {:8.1f} {:8.1f}\n", mean_us(r, "barrier"), perf::microseconds(r.phase_min("barrier")));
  }
}

void print_reasons(const std::vector<sim::PatternOutcome>& results) {
  fmt::print("\n{:36} | {:>26} | {:>26} | {:>26} | {:>20}\n", "why: us per put", "waiting for the DMA engine",
             "interrupted by what came in", "latency", "busiest engine");
  fmt::print("{:36} | {:>13}{:>13} | {:>13}{:>13} | {:>13}{:>13} | {:>13}{:>7}\n", "", "intra-node", "network",
             "intra-node", "network", "intra-node", "network", "node", "busy");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const sim::PatternOutcome& r = results[i];
    const sim::EngineUse* engine = r.busiest_engine();
    const double busy = engine == nullptr ? 0 : 100 * perf::microseconds(engine->busy) / perf::microseconds(r.quiet);
    fmt::print("{:36} | {:13.1f}{:13.1f} | {:13.1f}{:13.1f} | {:13.1f}{:13.1f} | {:13}{:6.1f}%\n", variants[i].name,
               each_us(r.intra_node.queued, r.intra_node), each_us(r.network.queued, r.network),
               each_us(r.intra_node.interrupted, r.intra_node), each_us(r.network.interrupted, r.network),
               each_us(r.intra_node.latency, r.intra_node), each_us(r.network.latency, r.network),
               engine == nullptr ? -1 : engine->node, busy);
  }
}

std::vector<sim::PatternOutcome> simulate(const choice& chosen, const perf::exchange& moves) {
  std::vector<sim::PatternOutcome> results;
  for (const variant& v : variants) {
    results.push_back(perf::simulate_exchange(chosen.job, moves, v.where, v.intra_node, chosen.nbody));
    if (!results.back().ok()) throw rma::Error(rma::status::bad_argument, results.back().stuck);
  }
  return results;
}

/// The recorded exchange, as `sim_pattern trace` reads it.
void write_trace(const std::string& path, const perf::exchange& moves) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) throw std::runtime_error(fmt::format("{} cannot be written", path));
  fmt::print(file, "# rank dest bytes tag\n");
  for (int from = 0; from < moves.ranks(); ++from) {
    for (int to = 0; to < moves.ranks(); ++to) {
      if (from != to && moves.of(from, to) != 0)
        fmt::print(file, "{} {} {} 0\n", from, to, moves.of(from, to) * sizeof(perf::particle));
    }
  }
  if (std::fclose(file) != 0) throw std::runtime_error(fmt::format("{} cannot be written", path));
}

void write_results(const choice& chosen, const perf::exchange& moves, const std::vector<sim::PatternOutcome>& results) {
  if (!chosen.trace.empty()) write_trace(chosen.trace, moves);
  if (chosen.json.empty()) return;
  nlohmann::json all = {{"moved", moves.moved()}, {"pack_ns", chosen.nbody.pack_ns}};
  for (std::size_t i = 0; i < results.size(); ++i) all[std::string(variants[i].name)] = perf::json_of(results[i]);
  perf::write_json(chosen.json, all);
}

void run(choice chosen) {
  const auto start = std::chrono::steady_clock::now();
  const auto side = static_cast<std::uint64_t>(chosen.side);
  chosen.cosmos.count = side * side * side;
  const std::vector<perf::particle> before = perf::make_particles(chosen.cosmos);
  std::vector<perf::particle> after = before;
  perf::drift(after);
  const perf::domains old_domains(before, chosen.job.ranks);
  const perf::domains new_domains(after, chosen.job.ranks);
  const perf::exchange moves = perf::exchange_between(before, old_domains, after, new_domains);
  const double pack_ns = perf::measure_pack_ns(before, old_domains, after, new_domains);
  if (chosen.measure_pack) chosen.nbody.pack_ns = pack_ns;
  const auto made = std::chrono::steady_clock::now();
  const auto results = simulate(chosen, moves);
  const auto seconds = [](auto span) { return std::chrono::duration<double>(span).count(); };

  std::uint64_t within = 0;
  for (int from = 0; from < chosen.job.ranks; ++from) {
    for (int to = 0; to < chosen.job.ranks; ++to) {
      if (from != to && from / chosen.job.ranks_per_node == to / chosen.job.ranks_per_node)
        within += moves.of(from, to);
    }
  }
  fmt::print(
      "sim_nbody: {} particles, {} ranks, {} per node, seed {}: {} particles ({:.1f} %) change their rank, {} of them "
      "within a node; T_pack {:.2f} ns (here {:.2f}); {:.2f} s for particles, {:.2f} s for simulations\n",
      before.size(), chosen.job.ranks, chosen.job.ranks_per_node, chosen.cosmos.seed, moves.moved(),
      100 * static_cast<double>(moves.moved()) / static_cast<double>(before.size()), within, chosen.nbody.pack_ns,
      pack_ns, seconds(made - start), seconds(std::chrono::steady_clock::now() - made));
  print_table(results);
  print_reasons(results);
  write_results(chosen, moves, results);
}

}  // namespace

int main(int argc, char** argv) {
  choice chosen;
  CLI::App app{"Domain decomposition of an N-body simulation, on a simulated machine"};
  const std::map<std::string, perf::put_order> orders{{"ascending", perf::put_order::ascending},
                                                      {"next", perf::put_order::next}};
  app.add_option("--side", chosen.side, "the number of particles is its third power")->check(CLI::Range(2, 512));
  app.add_option("--seed", chosen.cosmos.seed);
  app.add_option("--clusters", chosen.cosmos.clusters)->check(CLI::Range(0, 100000));
  app.add_option("--bulk", chosen.cosmos.bulk);
  app.add_option("--dispersion", chosen.cosmos.dispersion);
  app.add_option("--ranks", chosen.job.ranks)->check(CLI::Range(1, 1 << 16));
  app.add_option("--ranks-per-node", chosen.job.ranks_per_node)->check(CLI::Range(1, 1 << 16));
  app.add_option("--topology", chosen.job.topology);
  app.add_option("--params", chosen.job.parameters);
  app.add_option("--pack-ns", chosen.nbody.pack_ns, "T_pack, for a particle")->check(CLI::Range(0.0, 1e6));
  app.add_option("--order", chosen.nbody.order)->transform(CLI::CheckedTransformer(orders));
  app.add_flag("--pack-all-first", chosen.nbody.pack_all_first, "also where the barrier is before the packing");
  app.add_option("--json", chosen.json, "write all results to this file");
  app.add_option("--trace", chosen.trace, "write the puts to this file");
  app.add_flag("--measure-pack", chosen.measure_pack, "T_pack is what this machine takes");
  try {
    app.parse(argc, argv);
    run(chosen);
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sim_nbody: %s\n", e.what());
    return refused;
  }
}
