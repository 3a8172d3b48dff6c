// SPDX-License-Identifier: Apache-2.0
// The dissertation's experiments on passive synchronization, for each kind of lock: simulated on its machine, or, if a
// launcher has started this, in that job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "passive/experiment.hpp"
#include "rma/sim.hpp"

namespace {

using perf::passive::experiment;
using perf::passive::shape;
using perf::passive::value;

constexpr int refused = 2;

/// A kind of lock as a curve of the figures. Where a lock can be deferred it is, as in the dissertation.
struct kind {
  std::string name;
  std::map<std::string, std::string> settings;
  std::vector<std::string> only{};  ///< experiments in which it is simulated; empty: all
};

/// The experiments in which locks migrate, and their policy matters.
const std::vector<std::string>& of_policies() {
  static const std::vector<std::string> names = {"task_sharing", "lu_nodes"};
  return names;
}

const std::vector<kind>& kinds() {
  static const std::vector<kind> all = {
      {"two-sided", {{"RMA_LOCK", "two-sided:deferred"}}},
      {"network", {{"RMA_LOCK", "network"}}},
      {"cpu", {{"RMA_LOCK", "cpu"}}},
      {"hybrid-naive", {{"RMA_LOCK", "hybrid:naive"}}},
      {"hybrid-adaptive", {{"RMA_LOCK", "hybrid:adaptive"}}},
      {"hybrid-pattern", {{"RMA_LOCK", "hybrid:pattern"}}, of_policies()},
      {"hybrid-priority", {{"RMA_LOCK", "hybrid:priority"}}, of_policies()},
      {"hybrid-native", {{"RMA_LOCK", "hybrid:native"}}, of_policies()},
      {"auto", {{"RMA_LOCK", "auto:deferred"}}},
  };
  return all;
}

struct choice {
  std::vector<std::string> experiments{};
  std::vector<std::string> locks{};
  std::string parameters = "dissertation-ddr";
  std::string json{};
  int ranks_max = 1 << 16;
  bool list = false;
};

bool chosen(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

template <class All>
void check_names(const std::vector<std::string>& names, const All& all, std::string_view what) {
  for (const std::string& name : names) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == name; })) continue;
    std::string known;
    for (const auto& one : all) known += fmt::format(" {}", one.name);
    throw std::invalid_argument(fmt::format("{} is no {}; there are:{}", name, what, known));
  }
}

nlohmann::json points_of(const experiment& e, const std::string& lock, const std::vector<value>& values) {
  auto points = nlohmann::json::array();
  for (const value& v : values) {
    fmt::print("{:24} {:16} {:18} {:>12} {:>14.3f}\n", e.name, lock, v.curve.empty() ? e.y : v.curve, v.x, v.y);
    points.push_back({{"lock", lock}, {"curve", v.curve}, {"x", v.x}, {"y", v.y}});
  }
  std::fflush(stdout);
  return points;
}

std::vector<value> simulate(const experiment& e, const kind& lock, const shape& job, const choice& how) {
  rma::sim::Config config;
  config.ranks = job.ranks;
  config.ranks_per_node = job.ranks_per_node;
  config.parameters = how.parameters;
  config.settings = lock.settings;
  config.settings["RMA_PROGRESS_THREAD"] = "0";  // as in perf/simulator.py
  config.settings["RMA_FABRIC"] = "sim";  // jobs of one node have their adapter, too: network locks go by loop-back
  std::vector<value> points;
  const auto outcome = rma::sim::run(config, [&](rma::Runtime& runtime) {
    perf::passive::stage on(runtime, points);
    e.run(on);
  });
  if (!outcome.ok()) throw std::runtime_error(fmt::format("{} with {}: {}", e.name, lock.name, outcome.text()));
  return points;
}

nlohmann::json described(const experiment& e) {
  auto jobs = nlohmann::json::array();
  for (const shape& job : e.jobs) jobs.push_back({job.ranks, job.ranks_per_node});
  return {{"name", e.name},
          {"figure", e.figure},
          {"title", e.title},
          {"x", e.x},
          {"y", e.y},
          {"jobs", jobs},
          {"points", nlohmann::json::array()}};
}

void write(const nlohmann::json& experiments, const choice& how) {
  if (how.json.empty()) return;
  std::ofstream file(how.json);
  file << nlohmann::json{{"parameters", how.parameters}, {"experiments", experiments}}.dump(1) << '\n';
  if (!file) throw std::runtime_error(fmt::format("{} cannot be written", how.json));
}

void simulate_all(const choice& how) {
  auto all = nlohmann::json::array();
  for (const experiment& e : perf::passive::experiments()) {
    if (!chosen(how.experiments, e.name)) continue;
    auto result = described(e);
    const auto begin = std::chrono::steady_clock::now();
    for (const kind& lock : kinds()) {
      if (!chosen(how.locks, lock.name) || !chosen(lock.only, e.name)) continue;
      for (const shape& job : e.jobs) {
        if (job.ranks > how.ranks_max) continue;
        for (auto& p : points_of(e, lock.name, simulate(e, lock, job, how))) result["points"].push_back(std::move(p));
      }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("# {} (figure {}): simulated in {:.1f} s\n", e.name, e.figure, took.count());
    all.push_back(std::move(result));
  }
  write(all, how);
}

/// One job has one kind of lock.
const kind& kind_of_job(const choice& how) {
  const std::string name = how.locks.empty() ? "auto" : how.locks.front();
  if (how.locks.size() > 1) throw std::invalid_argument("one kind of lock for a job (--lock), not several");
  return *std::find_if(kinds().begin(), kinds().end(), [&](const kind& k) { return k.name == name; });
}

/// The work of each rank of a real job.
void run_here(const choice& how) {
  const kind& lock = kind_of_job(how);
  rma::Config config;
  config.settings = lock.settings;
  rma::Runtime runtime(config);
  auto all = nlohmann::json::array();
  for (const experiment& e : perf::passive::experiments()) {
    if (!chosen(how.experiments, e.name)) continue;
    const bool fits =
        std::any_of(e.jobs.begin(), e.jobs.end(), [&](const shape& s) { return s.ranks == runtime.size(); });
    if (!fits) continue;
    std::vector<value> points;
    perf::passive::stage on(runtime, points);
    e.run(on);
    auto result = described(e);
    result["points"] = points_of(e, lock.name, points);
    all.push_back(std::move(result));
  }
  if (runtime.rank() == 0) write(all, how);
}

void list(const choice& how) {
  auto all = nlohmann::json::array();
  for (const experiment& e : perf::passive::experiments()) {
    fmt::print("{:24} figure {:8} {} ({} by {})\n", e.name, e.figure, e.title, e.y, e.x);
    all.push_back(described(e));
  }
  write(all, how);
}

/// With several ranks. One started by a launcher is like one started by hand.
bool in_job() {
  const char* const size = std::getenv("RMA_SIZE");
  return size != nullptr && std::string_view(size) != "1";
}

}  // namespace

int main(int argc, char** argv) {
  choice how;
  CLI::App app{
      "The dissertation's experiments on passive synchronization (chapters 4 and 5), on a simulated machine; "
      "under rmarun, those for so many ranks on this one, with one kind of lock"};
  app.add_option("EXPERIMENT", how.experiments, "which; without any, all");
  app.add_option("--lock", how.locks, "kinds of lock, as the curves are named; without any, all")->delimiter(',');
  app.add_option("--params", how.parameters, "the machine: the name of a preset, or a file")->capture_default_str();
  app.add_option("--ranks-max", how.ranks_max, "leave larger jobs out")->check(CLI::Range(2, 1 << 16));
  app.add_option("--json", how.json, "write all points to this file");
  app.add_flag("--list", how.list, "name the experiments, write their jobs (ranks, ranks on a node) as JSON, and end");
  try {
    app.parse(argc, argv);
    check_names(how.experiments, perf::passive::experiments(), "experiment");
    check_names(how.locks, kinds(), "kind of lock");
    if (in_job()) {
      run_here(how);
    } else {
      how.list ? list(how) : simulate_all(how);
    }
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "passive: %s\n", e.what());
    return refused;
  }
}
