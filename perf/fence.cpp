// SPDX-License-Identifier: Apache-2.0
// The fence experiments of the dissertation, sections 6.4.1 to 6.4.5, with each design of fences: under rmarun as they
// are, under rma-sim on a simulated machine. perf/dissertation_fences runs them and draws the figures.
//
//   empty     a fence                                                             (figure 6.8)
//   put1      a put of 16 bytes to the next rank, a fence                         (figure 6.9)
//   put8      the same to each of 8 ranks                                         (figure 6.10)
//   overlap   a put to the next rank, computing for as long as put and fence take, a fence    (figure 6.7)
//   halo4     a put to each of 4 neighbors on a grid, computing, a fence         (section 6.4.5)
//   halo8     the same with 8
//
// One line for each point: experiment, design, ranks, bytes, us for one turn (the slowest rank's mean); overlap has two
// values more: the share of the put that computing hides, and that of put and fence together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct choice {
  std::vector<std::string> experiments{"empty", "put1", "put8", "overlap", "halo4", "halo8"};
  std::vector<std::string> designs{"def", "imm-naive", "imm-opt", "imm-ri", "placed"};
  std::vector<std::size_t> bytes{1024, 4096, 16384, 65536};
  int turns = 10;
  double compute_us = 400;
};

constexpr std::size_t small_bytes = 16;
constexpr std::size_t neighbors_max = 8;

rma::fence_kind design_named(const std::string& name) {
  if (name == "def") return rma::fence_kind::def;
  if (name == "imm-naive") return rma::fence_kind::imm_naive;
  if (name == "imm-opt") return rma::fence_kind::imm_opt;
  if (name == "imm-ri") return rma::fence_kind::imm_ri;
  if (name == "placed") return rma::fence_kind::placed;
  throw std::runtime_error(fmt::format("'{}' is no design of fences", name));
}

/// The ranks as a grid that is as square as they allow; its edges are joined.
std::vector<int> neighbors_of(int rank, int ranks, std::size_t count) {
  int rows = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % rows != 0) --rows;
  const int columns = ranks / rows;
  constexpr std::array<std::array<int, 2>, neighbors_max> steps = {
      {{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {1, -1}, {-1, 1}, {-1, -1}}};
  std::vector<int> found;
  for (const auto& [down, right] : std::span(steps).first(count)) {
    const int row = (rank / columns + down + rows) % rows;
    const int column = (rank % columns + right + columns) % columns;
    found.push_back(row * columns + column);
  }
  return found;
}

std::vector<int> ranks_behind(int rank, int ranks, std::size_t count) {
  std::vector<int> found;
  for (std::size_t i = 1; i <= count; ++i) found.push_back((rank + static_cast<int>(i)) % ranks);
  return found;
}

class bench {
 public:
  bench(rma::Runtime& runtime, const choice& chosen, const std::string& design)
      : rt_(runtime), chosen_(chosen), design_(design) {
    const std::size_t most = *std::max_element(chosen.bytes.begin(), chosen.bytes.end());
    room_ = std::max(most, small_bytes);
    from_.assign(room_, std::byte{1});
    window_ = rma::Window<std::byte>::allocate(rt_.world(), room_ * neighbors_max,
                                               {.name = design, .fence = design_named(design)});
    window_.fence();
  }
  ~bench() = default;
  void free() {
    window_.fence(rma::no_succeed);
    window_.free();
  }

  /// us for one turn: puts of so many bytes, each into a place of its own, computing, a fence.
  double time(const std::vector<int>& targets, std::size_t bytes, nanoseconds work) {
    turn(targets, bytes, work);  // the first use of a target costs more
    window_.fence();
    rt_.world().barrier();
    const auto begin = rt_.now();
    for (int i = 0; i < chosen_.turns; ++i) turn(targets, bytes, work);
    const std::array<double, 1> mine{static_cast<double>((rt_.now() - begin).count()) / chosen_.turns / 1e3};
    double slowest = mine[0];
    for (const double each : rt_.world().allgather(mine[0])) slowest = std::max(slowest, each);
    return slowest;
  }
  void report(const std::string& experiment, std::size_t bytes, double us, const std::string& more = {}) const {
    if (rt_.rank() != 0) return;
    fmt::print("fence {} {} ranks {} bytes {} us {:.3f}{}\n", experiment, design_, rt_.size(), bytes, us, more);
  }
  [[nodiscard]] int rank() const { return rt_.rank(); }
  [[nodiscard]] int ranks() const { return rt_.size(); }

 private:
  void turn(const std::vector<int>& targets, std::size_t bytes, nanoseconds work) {
    for (std::size_t i = 0; i < targets.size(); ++i)
      window_.put(std::span<const std::byte>(from_).first(bytes), targets[i], i * room_);
    if (work > 0ns) compute(work);
    window_.fence();
  }
  void compute(nanoseconds work) {
    const auto end = rt_.now() + work;
    rt_.compute(work);                 // virtual time
    while (rt_.now() < end) continue;  // elsewhere
  }

  rma::Runtime& rt_;
  const choice& chosen_;
  std::string design_;
  std::size_t room_ = 0;
  std::vector<std::byte> from_;
  rma::Window<std::byte> window_;
};

void run_overlap(bench& with, std::size_t bytes) {
  const std::vector<int> next = ranks_behind(with.rank(), with.ranks(), 1);
  const double empty_us = with.time({}, 0, 0ns);
  const double plain_us = with.time(next, bytes, 0ns);
  const auto work = nanoseconds(static_cast<std::int64_t>(plain_us * 1e3));
  const double both_us = with.time(next, bytes, work);
  const double hidden_us = 2 * plain_us - both_us;  // computing takes as long as put and fence
  const double put_us = std::max(plain_us - empty_us, 1e-9);
  with.report("overlap", bytes, both_us,
              fmt::format(" of_put {:.3f} of_all {:.3f}", std::clamp(hidden_us / put_us, 0.0, 1.0),
                          std::clamp(hidden_us / plain_us, 0.0, 1.0)));
}

void run(bench& with, const choice& chosen, const std::string& experiment) {
  const auto work = nanoseconds(static_cast<std::int64_t>(chosen.compute_us * 1e3));
  if (experiment == "empty") {
    with.report(experiment, 0, with.time({}, 0, 0ns));
  } else if (experiment == "put1" || experiment == "put8") {
    const std::size_t puts = experiment == "put1" ? 1 : 8;
    with.report(experiment, small_bytes, with.time(ranks_behind(with.rank(), with.ranks(), puts), small_bytes, 0ns));
  } else {
    for (const std::size_t bytes : chosen.bytes) {
      if (experiment == "overlap") {
        run_overlap(with, bytes);
      } else if (experiment == "halo4" || experiment == "halo8") {
        const auto around = neighbors_of(with.rank(), with.ranks(), experiment == "halo4" ? 4 : 8);
        with.report(experiment, bytes, with.time(around, bytes, work));
      } else {
        throw std::runtime_error(fmt::format("'{}' is no experiment", experiment));
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime runtime(argc, argv);
  CLI::App app("The fence experiments of the dissertation");
  choice chosen;
  app.add_option("--experiments", chosen.experiments, "which")->delimiter(',');
  app.add_option("--designs", chosen.designs, "of fences")->delimiter(',');
  app.add_option("--bytes", chosen.bytes, "of a put, where it is not 16")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--turns", chosen.turns, "of each point")->check(CLI::PositiveNumber);
  app.add_option("--compute-us", chosen.compute_us, "computing in each turn of a halo")->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    for (const std::string& design : chosen.designs) {
      bench with(runtime, chosen, design);
      for (const std::string& experiment : chosen.experiments) run(with, chosen, experiment);
      with.free();
    }
  } catch (const std::exception& error) {
    runtime.abort(1, error.what());
  }
  return 0;
}
