// SPDX-License-Identifier: Apache-2.0
// A large simulated job: every rank allocates one window, and puts to its neighbours between fences. Prints real time,
// the memory of the process, and what one rank's runtime needs of it, by its parts.
//
//   perf_sim_scale --ranks 4096 --per-node 16 --neighbours 8
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

struct options {
  int ranks = 4096;
  int per_node = 16;
  int neighbours = 8;
  std::size_t words = 512;
  int rounds = 3;
  std::size_t limit_kib = 0;
};

constexpr std::size_t stack_bytes = std::size_t{64} << 10;
constexpr std::size_t node_bytes_min = std::size_t{1} << 30;  ///< only the memory of a node takes so much address space

/// A line of /proc/self/status, in bytes.
std::int64_t status_bytes(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name)) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

/// What the process holds at a moment that all ranks have reached.
struct snapshot {
  std::int64_t heap = 0;    ///< allocated: the runtimes', and the simulator's own
  std::int64_t node = 0;    ///< touched pages of memory that the ranks of a node share
  std::int64_t stacks = 0;  ///< touched pages
};

snapshot look() {
  snapshot s;
  s.heap = static_cast<std::int64_t>(mallinfo2().uordblks + mallinfo2().hblkhd);
  std::ifstream in("/proc/self/smaps");
  std::size_t size = 0;
  for (std::string word; in >> word;) {
    std::size_t kib = 0;
    if (word == "Size:" && in >> kib) size = kib * 1024;
    if (word != "Rss:" || !(in >> kib)) continue;
    const auto resident = static_cast<std::int64_t>(kib * 1024);
    if (size >= node_bytes_min) s.node += resident;
    if (size == stack_bytes) s.stacks += resident;
  }
  return s;
}

struct stages {
  snapshot start, runtimes, window, puts;
};

void job(rma::Runtime& rt, const options& o, stages& seen) {
  const bool first = rt.rank() == 0;
  rt.world().barrier();
  if (first) seen.runtimes = look();
  rt.world().barrier();
  auto win = rma::Window<std::uint64_t>::allocate(rt.world(), o.words);
  rt.world().barrier();
  if (first) seen.window = look();
  win.fence();
  for (int round = 0; round < o.rounds; ++round) {
    for (int i = 1; i <= o.neighbours; ++i) {
      const int distance = (i + 1) / 2 * (i % 2 == 0 ? -1 : 1) * o.per_node;  // half on each side, on other nodes
      const int to = ((rt.rank() + distance) % o.ranks + o.ranks) % o.ranks;
      win.put(static_cast<std::uint64_t>(rt.rank()), to, static_cast<std::size_t>(i));
    }
    win.fence();
  }
  win.fence(rma::no_succeed);
  if (first) seen.puts = look();
  rt.world().barrier();
  win.free();
}

void print(const char* what, std::int64_t bytes, int ranks) {
  fmt::print("  {:<58} {:>7.1f} KiB\n", what, static_cast<double>(bytes) / 1024 / ranks);
}

/// What one rank's runtime needs, user data not counted; in bytes of all ranks.
std::int64_t print_parts(const stages& s, const options& o) {
  const std::int64_t data = static_cast<std::int64_t>(o.words * sizeof(std::uint64_t)) * o.ranks;
  fmt::print("per rank\n");
  print("runtime: records, settings, peers (heap)", s.runtimes.heap - s.start.heap, o.ranks);
  print("runtime: liveness, message rings (pages of the node)", s.runtimes.node - s.start.node, o.ranks);
  print("a window: records (heap)", s.window.heap - s.runtimes.heap, o.ranks);
  print("a window: block, locks, stripes (pages, without the data)", s.window.node - s.runtimes.node, o.ranks);
  print("neighbours and barriers: peers, targets (heap)", s.puts.heap - s.window.heap, o.ranks);
  print("neighbours and barriers: rings (pages, without the data)", s.puts.node - s.window.node - data, o.ranks);
  const std::int64_t all = s.puts.heap - s.start.heap + s.puts.node - s.start.node - data;
  print("all, with what the simulator itself has on the heap", all, o.ranks);
  print("not counted: stack", s.puts.stacks - s.start.stacks, o.ranks);
  print("not counted: data of the window", data, o.ranks);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Memory and time of a large simulated job");
  options o;
  app.add_option("--ranks", o.ranks, "ranks")->check(CLI::Range(2, 1 << 20));
  app.add_option("--per-node", o.per_node, "ranks that share a node")->check(CLI::Range(1, 4096));
  app.add_option("--neighbours", o.neighbours, "targets of each rank")->check(CLI::Range(1, 64));
  app.add_option("--rounds", o.rounds, "fences with puts")->check(CLI::Range(1, 1000));
  app.add_option("--limit-kib", o.limit_kib, "fail if a rank's runtime needs more heap and shared pages");
  CLI11_PARSE(app, argc, argv);

  stages seen;
  seen.start = look();
  const auto begin = std::chrono::steady_clock::now();
  rma::sim::Config config;
  config.ranks = o.ranks;
  config.ranks_per_node = o.per_node;
  config.stack_bytes = stack_bytes;
  const rma::sim::Outcome out = rma::sim::run(config, [&](rma::Runtime& rt) { job(rt, o, seen); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!out.ok()) {
    fmt::print("{}", out.text());
    return 1;
  }
  fmt::print("{} ranks, {} per node, {} neighbours: {:.1f} s, peak {:.0f} MiB, {} events, virtual time {:.3f} ms\n",
             o.ranks, o.per_node, o.neighbours, seconds, static_cast<double>(status_bytes("VmHWM:")) / (1 << 20),
             out.events, static_cast<double>(out.time.count()) * 1e-6);
  const std::int64_t all = print_parts(seen, o);
  if (o.limit_kib != 0 && all > static_cast<std::int64_t>(o.limit_kib) * 1024 * o.ranks) {
    fmt::print("FAIL: more than {} KiB\n", o.limit_kib);
    return 1;
  }
  return 0;
}
