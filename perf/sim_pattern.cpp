// SPDX-License-Identifier: Apache-2.0
// Runs a communication pattern on a simulated machine, and says how long it takes and why.
//
//   sim_pattern random-ring --ranks 2 --ranks-per-node 2 --bytes 2000000 --params susukita --report
//   sim_pattern trace puts.txt --ranks 32
//
// Exit status: 0; 2 with one line for what cannot be run, and for a pattern that comes to no end.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "pattern_text.hpp"
#include "patterns.hpp"
#include "perf.hpp"
#include "rma/error.hpp"

namespace {

namespace sim = rma::sim;

constexpr int refused = 2;

struct choice {
  std::string pattern{};
  std::string trace{};
  perf::pattern_choice shape{};
  sim::Config job{.ranks = 32, .ranks_per_node = 1};
  sim::IntraNode intra_node = sim::IntraNode::adapter;
  int runs = 1;
  bool report = false;
  std::string json{};
};

sim::PatternOutcome run_once(const choice& chosen) {
  if (chosen.pattern == "trace")
    return sim::run_trace(chosen.job, sim::read_trace(chosen.trace, chosen.job.ranks), chosen.intra_node);
  const perf::named_pattern* const found = perf::find_pattern(chosen.pattern);
  if (found == nullptr) {
    std::string names;
    for (const auto& one : perf::named_patterns()) names += fmt::format("{}, ", one.name);
    throw rma::Error(rma::status::bad_argument,
                     fmt::format("no pattern '{}'; there are {}and trace FILE", chosen.pattern, names));
  }
  return sim::run_pattern(chosen.job, found->make(chosen.shape), chosen.intra_node);
}

int run(const choice& chosen) {
  if (chosen.pattern == "trace" && chosen.trace.empty())
    throw rma::Error(rma::status::bad_argument, "trace needs a file: sim_pattern trace FILE");
  if (chosen.pattern != "trace" && !chosen.trace.empty())
    throw rma::Error(rma::status::bad_argument, fmt::format("'{}': only trace takes a file", chosen.trace));
  perf::samples wall_s;
  sim::PatternOutcome out;
  for (int i = 0; i < chosen.runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    out = run_once(chosen);
    wall_s.add(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  if (!out.ok()) {
    std::fprintf(stderr, "sim_pattern: %s\n", out.stuck.c_str());
    return refused;
  }
  const std::uint64_t bytes = out.network.bytes + out.intra_node.bytes;
  const double time_us = perf::microseconds(out.time);
  const double rate = time_us == 0 ? 0 : static_cast<double>(bytes) / time_us / 1e3;
  fmt::print(
      "sim_pattern {} {} ranks {}: simulated_us {:.3f} bytes {} gbs {:.4f} gbs_per_rank {:.4f} hops {} events {} "
      "wall_s "
      "{:.4f} min {:.4f} runs {}\n",
      chosen.pattern, out.topology, chosen.job.ranks, time_us, bytes, rate, rate / chosen.job.ranks, out.hops,
      out.events, wall_s.median(), wall_s.min(), chosen.runs);
  if (chosen.report) fmt::print("{}", perf::text_of(out));
  if (!chosen.json.empty()) perf::write_json(chosen.json, perf::json_of(out));
  return 0;
}

void describe(CLI::App& app, choice& chosen) {
  const std::map<std::string, sim::IntraNode> intra_nodes{
      {"adapter", sim::IntraNode::adapter}, {"copy", sim::IntraNode::copy}, {"free", sim::IntraNode::free}};
  std::string names;
  for (const auto& one : perf::named_patterns()) names += fmt::format("{}: {}\n", one.name, one.what);
  app.footer(names + "trace FILE: a put per line, `rank dest bytes tag`");
  app.add_option("pattern", chosen.pattern, "what the ranks do, see below")->required();
  app.add_option("file", chosen.trace, "of trace");
  app.add_option("--ranks", chosen.job.ranks)->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--ranks-per-node", chosen.job.ranks_per_node)->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--topology", chosen.job.topology, "switch, fat-tree[:k=16,n=3], torus:8x8[x4]");
  app.add_option("--params", chosen.job.parameters, "preset or file of the machine's constants");
  app.add_option("--bytes", chosen.shape.bytes, "of a put")->capture_default_str();
  app.add_option("--messages", chosen.shape.messages, "puts of a rank, or rounds")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--seed", chosen.shape.seed, "of random orders")->capture_default_str();
  app.add_option("--intra-node", chosen.intra_node, "what a put within a node is")
      ->transform(CLI::CheckedTransformer(intra_nodes));
  app.add_flag("--wait-first", chosen.shape.wait_first, "ring: all ranks wait before they put (a deadlock)");
  app.add_option("--runs", chosen.runs, "of the simulation, for its speed")->check(CLI::Range(1, 1000));
  app.add_flag("--report", chosen.report, "phases, waiting times, the busiest engines and links");
  app.add_option("--json", chosen.json, "write all of the result to this file");
}

}  // namespace

int main(int argc, char** argv) {
  choice chosen;
  CLI::App app{"Communication patterns on a simulated machine"};
  describe(app, chosen);
  try {
    app.parse(argc, argv);
    chosen.shape.ranks = chosen.job.ranks;
    return run(chosen);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sim_pattern: %s\n", e.what());
    return refused;
  }
}
