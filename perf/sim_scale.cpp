// SPDX-License-Identifier: Apache-2.0
// A large simulated job: every rank allocates one window, and puts to its neighbors between fences. Prints real time,
// the memory of the process, and what one rank's runtime needs of it, by its parts.
//
//   perf_sim_scale --ranks 4096 --per-node 16 --neighbors 8
//   perf_sim_scale --messages                                    short messages by rings of 5 slots, instead of puts
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
  int neighbors = 8;
  std::size_t words = 512;
  int rounds = 3;
  std::size_t limit_kib = 0;
  bool messages = false;
};

constexpr std::size_t ring_slots = 5, ring_slot_bytes = 2048;

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

/// The memory of the process at a moment that all ranks have reached.
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
  std::int64_t rings_before = 0, rings = 0;  ///< bytes of all ranks
};

/// Half of them on each side, all on other nodes.
int neighbor_of(const rma::Runtime& rt, const options& o, int i) {
  const int distance = (i + 1) / 2 * (i % 2 == 0 ? -1 : 1) * o.per_node;
  return ((rt.rank() + distance) % o.ranks + o.ranks) % o.ranks;
}

std::int64_t ring_bytes(const rma::Runtime& rt) {
  for (const rma::Counter& c : rt.counters()) {
    if (c.name == "ring_bytes") return static_cast<std::int64_t>(c.value);
  }
  return 0;
}

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
    for (int i = 1; i <= o.neighbors; ++i) {
      win.put(static_cast<std::uint64_t>(rt.rank()), neighbor_of(rt, o, i), static_cast<std::size_t>(i));
    }
    win.fence();
  }
  win.fence(rma::no_succeed);
  if (first) seen.puts = look();
  rt.world().barrier();
  win.free();
}

/// The same with messages, after which all neighbors have rings.
void messages_job(rma::Runtime& rt, const options& o, stages& seen) {
  const bool first = rt.rank() == 0;
  rma::Team world = rt.world();
  constexpr int rounds = 8;
  world.barrier();
  seen.rings_before += ring_bytes(rt);
  if (first) seen.runtimes = seen.window = look();
  world.barrier();
  std::vector<std::uint64_t> in(static_cast<std::size_t>(o.neighbors)), out(in);
  for (int round = 0; round < rounds; ++round) {
    std::vector<rma::MessageRequest> all;
    for (int i = 1; i <= o.neighbors; ++i) {
      const auto at = static_cast<std::size_t>(i - 1);
      all.push_back(world.irecv(std::span(&in[at], 1), neighbor_of(rt, o, i), 1));
      all.push_back(world.isend(std::span(&out[at], 1), neighbor_of(rt, o, i), 1));
    }
    rma::wait_all(all);
  }
  world.barrier();
  seen.rings += ring_bytes(rt);
  if (first) seen.puts = look();
  world.barrier();
}

void print(const char* what, std::int64_t bytes, int ranks) {
  fmt::print("  {:<58} {:>7.1f} KiB\n", what, static_cast<double>(bytes) / 1024 / ranks);
}

/// Prints the parts of one rank's memory, and returns the bytes of all ranks without user data.
std::int64_t print_parts(const stages& s, const options& o) {
  const std::int64_t data = o.messages ? 0 : static_cast<std::int64_t>(o.words * sizeof(std::uint64_t)) * o.ranks;
  fmt::print("per rank\n");
  print("runtime: records, settings, peers (heap)", s.runtimes.heap - s.start.heap, o.ranks);
  print("runtime: liveness, message rings (pages of the node)", s.runtimes.node - s.start.node, o.ranks);
  print("a window: records (heap)", s.window.heap - s.runtimes.heap, o.ranks);
  print("a window: block, locks, stripes (pages, without the data)", s.window.node - s.runtimes.node, o.ranks);
  print("neighbors and barriers: peers, targets (heap)", s.puts.heap - s.window.heap, o.ranks);
  print("neighbors and barriers: rings (pages, without the data)", s.puts.node - s.window.node - data, o.ranks);
  const std::int64_t all = s.puts.heap - s.start.heap + s.puts.node - s.start.node - data - s.rings;
  print("all, with what the simulator itself has on the heap", all, o.ranks);
  if (o.messages) print("not counted: rings", s.rings, o.ranks);
  if (o.messages) print("rings before the first message", s.rings_before, o.ranks);
  print("not counted: stack", s.puts.stacks - s.start.stacks, o.ranks);
  print("not counted: data of the window", data, o.ranks);
  return all;
}

/// Rings are there when they are used, and as many as were used: each rank reads one of each neighbor, and has a copy
/// of the one that it writes.
bool are_rings_bounded(const stages& s, const options& o) {
  const auto each = static_cast<std::int64_t>(2 * ring_slots * ring_slot_bytes) * o.neighbors;
  if (s.rings_before == 0 && s.rings > 0 && s.rings <= each * o.ranks) return true;
  fmt::print("FAIL: {} bytes of rings before the first message, {} after, at most {} wanted\n", s.rings_before, s.rings,
             each * o.ranks);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Memory and time of a large simulated job");
  options o;
  app.add_option("--ranks", o.ranks, "ranks")->check(CLI::Range(2, 1 << 20));
  app.add_option("--per-node", o.per_node, "ranks that share a node")->check(CLI::Range(1, 4096));
  app.add_option("--neighbors", o.neighbors, "targets of each rank")->check(CLI::Range(1, 64));
  app.add_option("--rounds", o.rounds, "fences with puts")->check(CLI::Range(1, 1000));
  app.add_option("--limit-kib", o.limit_kib, "fail if a rank's runtime needs more heap and shared pages");
  app.add_flag("--messages", o.messages, "short messages by rings instead of puts");
  CLI11_PARSE(app, argc, argv);

  stages seen;
  seen.start = look();
  const auto begin = std::chrono::steady_clock::now();
  rma::sim::Config config;
  config.ranks = o.ranks;
  config.ranks_per_node = o.per_node;
  config.stack_bytes = stack_bytes;
  config.settings["RMA_PROGRESS_THREAD"] = "0";
  if (o.messages) {
    config.settings["RMA_EAGER"] = "rdma-ring";
    config.settings["RMA_RING_SLOTS"] = std::to_string(ring_slots);
  }
  const rma::sim::Outcome out =
      rma::sim::run(config, [&](rma::Runtime& rt) { o.messages ? messages_job(rt, o, seen) : job(rt, o, seen); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!out.ok()) {
    fmt::print("{}", out.text());
    return 1;
  }
  fmt::print("{} ranks, {} per node, {} neighbors: {:.1f} s, peak {:.0f} MiB, {} events, virtual time {:.3f} ms\n",
             o.ranks, o.per_node, o.neighbors, seconds, static_cast<double>(status_bytes("VmHWM:")) / (1 << 20),
             out.events, static_cast<double>(out.time.count()) * 1e-6);
  const std::int64_t all = print_parts(seen, o);
  if (o.messages && !are_rings_bounded(seen, o)) return 1;
  if (o.limit_kib != 0 && all > static_cast<std::int64_t>(o.limit_kib) * 1024 * o.ranks) {
    fmt::print("FAIL: more than {} KiB\n", o.limit_kib);
    return 1;
  }
  return 0;
}
