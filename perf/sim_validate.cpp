// SPDX-License-Identifier: Apache-2.0
// Small patterns whose times are compared: under rmarun as they are, under rma-sim as predicted. perf/sim_fit does
// that.
//
//   ring      a put to the next rank, a flush, a barrier                          (fitted)
//   barrier                                                                       (fitted)
//   pack      particles that leave a rank are gathered: ns per particle           (fitted)
//   halo      a put to either neighbor, a fence                                  (predicted)
//   alltoall  a put to every rank, flush_all, a barrier                           (predicted)
//   nbody     particles that change their domain are packed and put, a barrier    (predicted)
//
// One line for each pattern and size: rank 0's time for one turn, of the best run and of the median one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "perf.hpp"
#include "probe.hpp"
#include "rma/rma.hpp"
#include "sim/particles.hpp"

namespace {

struct choice {
  std::vector<std::string> patterns{"ring", "barrier", "pack", "halo", "alltoall", "nbody"};
  std::vector<std::size_t> bytes{1024, 4096, 16384, 65536, 262144};
  int runs = 30;
  int turns = 20;
  int side = 32;
  double pack_ns = 0;
  bool probe = false;
};

class bench {
 public:
  bench(rma::Runtime& runtime, const choice& chosen) : rt(runtime), chosen_(chosen) {}

  void report(const std::string& pattern, std::size_t bytes, double per_turn, const std::function<void()>& turn) {
    perf::samples ns;
    for (int run = 0; run < chosen_.runs; ++run) {
      rt.world().barrier();
      const auto start = rt.now();
      for (int i = 0; i < chosen_.turns; ++i) turn();
      ns.add(static_cast<double>((rt.now() - start).count()) / chosen_.turns / per_turn);
    }
    if (rt.rank() == 0) {
      fmt::print("sim_validate {} {} bytes: best {:.2f} ns median {:.2f} ns\n", pattern, bytes, ns.min(), ns.median());
    }
  }
  rma::Runtime& rt;

 private:
  const choice& chosen_;
};

using bytes_of = std::vector<std::byte>;

void run_ring(bench& with, std::size_t size) {
  auto window = rma::Window<std::byte>::allocate(with.rt.world(), size);
  const bytes_of from(size, std::byte{1});
  const int next = (with.rt.rank() + 1) % with.rt.size();
  rma::Epoch epoch = window.lock_all();
  with.report("ring", size, 1, [&] {
    window.put(std::span(from), next, 0);
    window.flush(next);
    with.rt.world().barrier();
  });
  epoch.unlock();
  window.free();
}

void run_halo(bench& with, std::size_t size) {
  auto window = rma::Window<std::byte>::allocate(with.rt.world(), 2 * size);
  const bytes_of from(2 * size, std::byte{1});
  const int ranks = with.rt.size();
  const int next = (with.rt.rank() + 1) % ranks;
  const int last = (with.rt.rank() + ranks - 1) % ranks;
  window.fence();
  with.report("halo", size, 1, [&] {
    window.put(std::span(from).first(size), next, 0);
    window.put(std::span(from).subspan(size), last, size);
    window.fence();
  });
  window.fence();
  window.free();
}

void run_alltoall(bench& with, std::size_t size) {
  const auto ranks = static_cast<std::size_t>(with.rt.size());
  auto window = rma::Window<std::byte>::allocate(with.rt.world(), ranks * size);
  const bytes_of from(ranks * size, std::byte{1});
  const auto me = static_cast<std::size_t>(with.rt.rank());
  rma::Epoch epoch = window.lock_all();
  with.report("alltoall", size, 1, [&] {
    for (std::size_t i = 1; i <= ranks; ++i) {
      const std::size_t to = (me + i) % ranks;
      window.put(std::span(from).subspan(to * size, size), static_cast<int>(to), me * size);
    }
    window.flush_all();
    with.rt.world().barrier();
  });
  epoch.unlock();
  window.free();
}

/// A rank's particles, and which of them go where.
struct domain {
  domain(const choice& chosen, int rank, int ranks) : moves(ranks), going(static_cast<std::size_t>(ranks)) {
    const auto side = static_cast<std::uint64_t>(chosen.side);
    const auto before = perf::make_particles({.count = side * side * side});
    auto after = before;
    perf::drift(after);
    const perf::domains old_domains(before, ranks);
    const perf::domains new_domains(after, ranks);
    moves = perf::exchange_between(before, old_domains, after, new_domains);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (old_domains.owner(before[i].position) != rank) continue;
      const int to = new_domains.owner(after[i].position);
      if (to != rank) going[static_cast<std::size_t>(to)].push_back(static_cast<std::uint32_t>(held.size()));
      held.push_back(after[i]);
    }
    packed.resize(moves.leaving(rank));
  }
  /// The particles for one rank, gathered behind those before.
  std::span<const perf::particle> pack(std::size_t to, std::size_t first) {
    const std::vector<std::uint32_t>& from = going[to];
    for (std::size_t i = 0; i < from.size(); ++i) packed[first + i] = held[from[i]];
    return std::span<const perf::particle>(packed).subspan(first, from.size());
  }
  perf::exchange moves;
  std::vector<std::vector<std::uint32_t>> going;
  std::vector<perf::particle> held{}, packed{};
};

std::chrono::nanoseconds pack_time(const choice& chosen, std::size_t particles) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(particles) * chosen.pack_ns));
}

void run_pack(bench& with, const choice& chosen) {
  domain mine(chosen, with.rt.rank(), with.rt.size());
  with.report("pack", sizeof(perf::particle), static_cast<double>(std::max<std::size_t>(1, mine.packed.size())), [&] {
    std::size_t first = 0;
    for (std::size_t to = 0; to < mine.going.size(); ++to) first += mine.pack(to, first).size();
    perf::keep(mine.packed.data());
    with.rt.compute(pack_time(chosen, first));
  });
}

void run_nbody(bench& with, const choice& chosen) {
  const int me = with.rt.rank();
  const int ranks = with.rt.size();
  domain mine(chosen, me, ranks);
  std::vector<std::size_t> at(static_cast<std::size_t>(ranks), 0);  // behind what lower ranks put there
  std::size_t room = 1;
  for (int to = 0; to < ranks; ++to) {
    for (int from = 0; from < me; ++from) at[static_cast<std::size_t>(to)] += from == to ? 0 : mine.moves.of(from, to);
    room = std::max<std::size_t>(room, mine.moves.coming(to));
  }
  auto window = rma::Window<perf::particle>::allocate(with.rt.world(), room);
  rma::Epoch epoch = window.lock_all();
  with.report("nbody", mine.packed.size() * sizeof(perf::particle), 1, [&] {
    std::size_t first = 0;
    for (std::size_t to = 0; to < mine.going.size(); ++to) {
      const auto packed = mine.pack(to, first);
      if (packed.empty()) continue;
      with.rt.compute(pack_time(chosen, packed.size()));
      window.put(packed, static_cast<int>(to), at[to]);
      first += packed.size();
    }
    window.flush_all();
    with.rt.world().barrier();
  });
  epoch.unlock();
  std::size_t coming = mine.moves.coming(me);
  for (std::size_t i = 0; i < coming; ++i) perf::require(window[i].mass == 1.0F, "a particle came here");
  with.rt.world().barrier();
  window.free();
}

/// How far the two cores are from each other now, which changes on virtual machines.
double crossing_ns(rma::Runtime& rt, rma::Window<std::uint64_t>& line) {
  rt.world().barrier();
  const double ns = rt.rank() < 2 ? perf::line_crossing_ns(*line.pointer_to(0), rt.rank()) : 0;
  rt.world().barrier();
  return ns;
}

void run_all(rma::Runtime& rt, const choice& chosen) {
  bench with(rt, chosen);
  for (const std::string& pattern : chosen.patterns) {
    if (pattern == "barrier") {
      with.report(pattern, 0, 1, [&] { rt.world().barrier(); });
    } else if (pattern == "pack") {
      run_pack(with, chosen);
    } else if (pattern == "nbody") {
      run_nbody(with, chosen);
    } else {
      for (const std::size_t size : chosen.bytes) {
        if (pattern == "ring") run_ring(with, size);
        if (pattern == "halo") run_halo(with, size);
        if (pattern == "alltoall") run_alltoall(with, size);
      }
    }
  }
}

void run_probed(rma::Runtime& rt, const choice& chosen) {
  auto line = rma::Window<std::uint64_t>::allocate(rt.world(), 64);
  const double before_ns = crossing_ns(rt, line);
  run_all(rt, chosen);
  const double after_ns = crossing_ns(rt, line);
  if (rt.rank() == 0)
    fmt::print("sim_validate line crosses in {:.1f} ns before {:.1f} ns after\n", before_ns, after_ns);
  line.free();
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  choice chosen;
  CLI::App app{"Patterns that are measured and predicted"};
  app.add_option("--pattern", chosen.patterns)
      ->delimiter(',')
      ->check(CLI::IsMember({"ring", "barrier", "pack", "halo", "alltoall", "nbody"}));
  app.add_option("--bytes", chosen.bytes)->delimiter(',')->check(CLI::Range(1, 1 << 26));
  app.add_option("--runs", chosen.runs)->check(CLI::Range(1, 100000));
  app.add_option("--iterations", chosen.turns, "of a run")->check(CLI::Range(1, 100000));
  app.add_option("--side", chosen.side, "the number of particles is its third power")->check(CLI::Range(2, 256));
  app.add_option("--pack-ns", chosen.pack_ns, "what packing a particle takes, for the simulator")
      ->check(CLI::Range(0.0, 1e5));
  app.add_flag("--probe", chosen.probe, "say how long a cache line takes from rank 0 to rank 1, before and after");
  CLI11_PARSE(app, argc, argv);
  perf::pin(rt.rank(), rt.size());
  chosen.probe ? run_probed(rt, chosen) : run_all(rt, chosen);
  return 0;
}
