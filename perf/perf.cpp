// SPDX-License-Identifier: Apache-2.0
#include "perf.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "probe.hpp"
#include "ticks.hpp"

namespace perf {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double value_of(const point& what, double ns, std::uint64_t iterations) {
  const double operations = static_cast<double>(iterations) * what.per_iteration;
  switch (what.in) {
    case unit::ns: return ns / operations;
    case unit::mops: return operations / ns * 1e3;
    case unit::gbs: return operations * static_cast<double>(what.bytes) / ns;
    case unit::gups: return operations / ns;
  }
  return 0;
}

nlohmann::json json_of(const machine_state& state) {
  return {{"line_ns", state.line_ns}, {"memcpy_gbs", state.memcpy_gbs}};
}

constexpr std::uint64_t settled = std::uint64_t{1} << 63;  // marks the last number of a calibration
constexpr std::uint64_t most_iterations = std::uint64_t{1} << 30;

}  // namespace

options parse(int argc, char** argv, const char* summary, bool quiet) {
  options chosen;
  CLI::App app{summary};
  app.add_option("--bytes", chosen.bytes, "only these sizes")->delimiter(',');
  app.add_option("--iterations", chosen.iterations, "iterations of each run (0: as many as fill --run-ms)");
  app.add_option("--run-ms", chosen.run_ms, "length of a run")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--runs", chosen.runs, "runs of each point")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--json", chosen.json, "write the points to this file, too");
  app.add_option("--metric", chosen.metric, "only metrics that match this regular expression as a whole");
  app.add_option("--fabric", chosen.fabric, "report this name as the fabric");
  app.add_flag("--pin,!--no-pin", chosen.pin, "bind each rank to a core of its own (default)");
  app.add_flag("--typical", chosen.typical, "a run's value is the median of its iterations, not their mean");
  app.add_flag("--in-turn", chosen.in_turn,
               "print 'turn METRIC/BYTES' before each run and wait for a line of standard input");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (quiet) throw exit_now{error.get_exit_code()};
    throw exit_now{app.exit(error)};
  }
  return chosen;
}

double samples::median() const { return median_of(values_); }

double samples::mad() const {
  std::vector<double> deviations;
  for (const double value : values_) deviations.push_back(std::abs(value - median()));
  return median_of(std::move(deviations));
}

double samples::min() const { return values_.empty() ? 0 : *std::min_element(values_.begin(), values_.end()); }
double samples::max() const { return values_.empty() ? 0 : *std::max_element(values_.begin(), values_.end()); }

session::session(options chosen, job with, std::string program)
    : options_(std::move(chosen)),
      job_(std::move(with)),
      program_(std::move(program)),
      metric_(options_.metric.empty() ? ".*" : options_.metric),
      before_(probe()) {
  if (!options_.fabric.empty()) job_.fabric = options_.fabric;
  if (job_.rank != 0) return;
  fmt::print("# {}: {} ranks, fabric {}; a cache line crosses in {:.0f} ns, memcpy of 64 KiB {:.1f} GB/s\n", program_,
             job_.size, job_.fabric, before_.line_ns, before_.memcpy_gbs);
  fmt::print("# {:<32} {:<14} {:>5} {:>8} {:>12} {:>10} {:>12} {:>12} {:<6} {:>4}\n", "metric", "fabric", "ranks",
             "bytes", "median", "MAD", "min", "max", "unit", "runs");
  std::fflush(stdout);
}

bool session::wants(std::string_view metric, std::size_t bytes) const {
  const auto& sizes = options_.bytes;
  if (bytes != 0 && !sizes.empty() && std::find(sizes.begin(), sizes.end(), bytes) == sizes.end()) return false;
  return std::regex_match(metric.begin(), metric.end(), metric_);
}

double session::time(const body& run, std::uint64_t iterations) const {
  if (options_.typical) return time_each(run, iterations);
  const auto begin = job_.now();
  run(iterations);
  return static_cast<double>((job_.now() - begin).count());
}

/// As many times the median of single iterations. One look at the counter for each, as in rdma-core's perftest; its
/// rate is that of the whole run.
double session::time_each(const body& run, std::uint64_t iterations) const {
  const auto look = [this] { return job_.virtual_time ? static_cast<std::uint64_t>(job_.now().count()) : ticks(); };
  std::vector<std::uint64_t> took(iterations);
  const auto begin = job_.now();
  const std::uint64_t first = look();
  std::uint64_t before = first;
  for (std::uint64_t& each : took) {
    run(1);
    const std::uint64_t after = look();
    each = after - before;
    before = after;
  }
  const double ns_per_tick = static_cast<double>((job_.now() - begin).count()) / static_cast<double>(before - first);
  const auto middle = took.begin() + static_cast<std::ptrdiff_t>(iterations / 2);
  std::nth_element(took.begin(), middle, took.end());
  return static_cast<double>(*middle) * ns_per_tick * static_cast<double>(iterations);
}

/// How many iterations a run should have. `together`: the body needs all ranks, and rank 0 decides for them.
std::uint64_t session::calibrate(const body& run, bool together) const {
  std::uint64_t iterations = options_.iterations != 0 ? options_.iterations : 1;
  for (;;) {
    // Twice: the first time may connect, fault pages in, or be translated by an emulator.
    double ns = 0;
    for (int i = 0; i < (options_.iterations != 0 ? 1 : 2); ++i) {
      if (together) job_.barrier();
      const double took_ns = time(run, iterations);
      ns = i == 0 ? took_ns : std::min(ns, took_ns);
    }
    const double goal_ns = options_.run_ms * 1e6;
    std::uint64_t next = iterations * 4;
    if (options_.iterations != 0 || iterations >= most_iterations) {
      next = iterations | settled;
    } else if (ns >= goal_ns / 10) {
      next = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(iterations) * goal_ns / ns));
      next |= settled;
    }
    if (together) next = job_.from_first(next);
    iterations = next & ~settled;
    if ((next & settled) != 0) return iterations;
  }
}

void session::take(result& into, const body& run, bool together) const {
  into.iterations = calibrate(run, together);
  (void)probe_pace(together);  // the first one is slow where an emulator translates
  double took_ns = 0, pace_before_ns = 0, pace_after_ns = probe_pace(together);
  const auto timed = [&] {
    pace_before_ns = pace_after_ns;
    if (together) job_.barrier();
    took_ns = time(run, into.iterations);
    pace_after_ns = probe_pace(together);
  };
  timed();
  for (;;) {
    const std::uint64_t longer = raised(into.iterations, took_ns, together);
    if (longer == into.iterations) break;
    into.iterations = longer;
    timed();
  }
  for (int i = 0; i < options_.runs; ++i) {
    if (options_.in_turn) {
      await_turn(into.what);
      pace_after_ns = probe_pace(together);
    }
    if (options_.in_turn || i > 0) timed();
    into.values.add(value_of(into.what, took_ns, into.iterations));
    into.paces_ns.push_back(std::max(pace_before_ns, pace_after_ns));
  }
}

/// Everyone else then waits for rank 0. At the end of the input all turns are ours.
void session::await_turn(const point& what) const {
  if (job_.rank != 0) return;
  fmt::print("turn {}/{}\n", what.metric, what.bytes);
  std::fflush(stdout);
  for (int c = std::getchar(); c != '\n' && c != EOF;) c = std::getchar();
}

/// On the cores of all ranks that have a part in it, at the same time.
double session::probe_pace(bool together) const { return together ? job_.highest(pace_ns()) : pace_ns(); }

/// The iterations that a run needs if one took less than half of its time: the calibration met slow first ones, and a
/// few more like them would be all that is measured.
std::uint64_t session::raised(std::uint64_t iterations, double took_ns, bool together) const {
  const double goal_ns = options_.run_ms * 1e6;
  std::uint64_t next = iterations;
  if (options_.iterations == 0 && iterations < most_iterations && took_ns < goal_ns / 2) {
    const double factor = std::min(goal_ns / std::max(took_ns, 1.0), 16.0);
    next = static_cast<std::uint64_t>(static_cast<double>(iterations) * factor);
  }
  return together ? job_.from_first(next) : next;
}

void session::origin(const point& what, const body& run, const std::function<void()>& meanwhile,
                     const std::function<void()>& release) {
  if (!wants(what.metric, what.bytes)) return;
  result measured{what, {}, 0, probe_line(), 0};
  job_.barrier();
  if (job_.rank == 0) {
    take(measured, run, false);
    if (release) release();
  } else if (meanwhile) {
    meanwhile();
  }
  job_.barrier();
  measured.line_ns_after = probe_line();
  results_.push_back(std::move(measured));
  report(results_.back());
}

void session::everyone(const point& what, const body& run) {
  if (!wants(what.metric, what.bytes)) return;
  result measured{what, {}, 0, probe_line(), 0};
  take(measured, run, true);
  job_.barrier();
  measured.line_ns_after = probe_line();
  results_.push_back(std::move(measured));
  report(results_.back());
}

double session::probe_line() const {
  // With more ranks than cores the two would measure the scheduler.
  if (job_.line == nullptr || job_.size < 2 || job_.size > sysconf(_SC_NPROCESSORS_ONLN)) return 0;
  job_.barrier();
  const double ns = job_.rank < 2 ? line_crossing_ns(*job_.line, job_.rank) : 0;
  job_.barrier();
  return ns;
}

machine_state session::probe() const {
  const double line_ns = probe_line();
  return {line_ns, job_.rank == 0 ? memcpy_gbs(std::size_t{1} << 16) : 0};
}

void session::report(const result& of) {
  if (job_.rank != 0) return;
  write_json({});  // now: what comes next may crash, in a peer's library at least
  fmt::print("{:<34} {:<14} {:>5} {:>8} {:>12.5g} {:>10.3g} {:>12.5g} {:>12.5g} {:<6} {:>4}\n", of.what.metric,
             job_.fabric, job_.size, of.what.bytes, of.values.median(), of.values.mad(), of.values.min(),
             of.values.max(), name_of(of.what.in), of.values.size());
  std::fflush(stdout);
}

void session::finish() {
  const machine_state after = probe();
  if (job_.rank != 0) return;
  fmt::print("# at the end: a cache line crosses in {:.0f} ns, memcpy of 64 KiB {:.1f} GB/s\n", after.line_ns,
             after.memcpy_gbs);
  write_json(after);
}

void session::write_json(const machine_state& after) const {
  if (options_.json.empty()) return;
  nlohmann::json points = nlohmann::json::array();
  for (const result& of : results_) {
    points.push_back({{"metric", of.what.metric},
                      {"fabric", job_.fabric},
                      {"ranks", job_.size},
                      {"bytes", of.what.bytes},
                      {"median", of.values.median()},
                      {"mad", of.values.mad()},
                      {"min", of.values.min()},
                      {"max", of.values.max()},
                      {"unit", name_of(of.what.in)},
                      {"runs", of.values.size()},
                      {"iterations", of.iterations},
                      {"line_ns", {of.line_ns_before, of.line_ns_after}},
                      {"values", of.values.all()},
                      {"paces_ns", of.paces_ns}});
  }
  const nlohmann::json all = {{"program", program_},
                              {"fabric", job_.fabric},
                              {"ranks", job_.size},
                              {"machine", {{"before", json_of(before_)}, {"after", json_of(after)}}},
                              {"points", points}};
  std::ofstream file(options_.json);
  file << all.dump(1) << '\n';
  if (!file) throw std::runtime_error(fmt::format("cannot write '{}'", options_.json));
}

void require(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error(fmt::format("payload check failed: {}", what));
}

void pin(int rank, int ranks) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < ranks) return;
  for (int cpu = 0, index = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index++ != rank) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
}

std::string_view name_of(unit in) noexcept {
  switch (in) {
    case unit::ns: return "ns";
    case unit::mops: return "Mop/s";
    case unit::gbs: return "GB/s";
    case unit::gups: return "GUPS";
  }
  return "";
}

}  // namespace perf
