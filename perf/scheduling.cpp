// SPDX-License-Identifier: Apache-2.0
// The experiments of the dissertation's chapter 10, for two ranks: under rmarun as they are, under rma-sim on a
// simulated machine. perf/dissertation_scheduling runs them.
//
//   throughput   16 puts, then 16 gets, and the end of the epoch                    (figure 10.7)
//   both         a put and a get to and fro                                         (figure 10.8)
//   put, get     one of them to and fro, in an epoch of its own                     (figures 10.9, 10.10)
//
// Each with each order of RMA_SCHEDULE, and with aggregation up to 1 KiB. To and fro: each rank has its exposure epoch
// open before its access epoch begins. One line for each point: experiment, order, bytes, value: MB/s (throughput) or
// us one way.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"

namespace {

constexpr std::size_t operations = 16, aggregate_bytes = 1024;
constexpr std::array<const char*, 5> orders{"in-order", "interleave", "gets-first", "gets-first+interleave",
                                            "aggregate"};

struct choice {
  std::vector<std::string> experiments{"throughput", "both", "put", "get"};
  std::vector<std::size_t> bytes{8, 64, 512, 4096, 16384, 65536, 262144, 1048576};
  int turns = 4;
};

rma::Hints hints_of(const std::string& order) {
  using rma::schedule_order;
  rma::Hints hints;
  hints.schedule = schedule_order::in_order;
  hints.aggregate = order == "aggregate" ? aggregate_bytes : 0;
  if (order == "interleave") hints.schedule = schedule_order::interleave;
  if (order == "gets-first") hints.schedule = schedule_order::gets_first;
  if (order == "gets-first+interleave") hints.schedule = schedule_order::gets_first_interleave;
  return hints;
}

class bench {
 public:
  bench(rma::Runtime& rt, const std::string& order, std::size_t bytes)
      : rt_(rt),
        bytes_(bytes),
        win_(rma::Window<std::byte>::allocate(rt.world(), 2 * operations * bytes, hints_of(order))),
        out_(operations * bytes),
        in_(operations * bytes) {}

  /// MB/s of both directions together.
  double throughput(int turns) {
    return static_cast<double>(2 * operations * bytes_) / us_of(turns, [this] {
             if (rt_.rank() != 0) return expose();
             win_.start(std::array{1});
             for (std::size_t i = 0; i < operations; ++i) put(i);
             for (std::size_t i = 0; i < operations; ++i) get(i);
             win_.complete();
           });
  }
  double to_and_fro(int turns, bool puts, bool gets) {
    return us_of(turns,
                 [this, puts, gets] {
                   const std::array other{1 - rt_.rank()};
                   win_.post(other);
                   if (rt_.rank() != 0) win_.wait();
                   win_.start(other);
                   if (puts) put(0);
                   if (gets) get(0);
                   win_.complete();
                   if (rt_.rank() == 0) win_.wait();
                 }) /
           2;
  }
  void free() { win_.free(); }

 private:
  void expose() {
    win_.post(std::array{0});
    win_.wait();
  }
  void put(std::size_t i) { win_.put(std::span(out_).subspan(i * bytes_, bytes_), 1 - rt_.rank(), i * bytes_); }
  void get(std::size_t i) {
    win_.get(std::span(in_).subspan(i * bytes_, bytes_), 1 - rt_.rank(), (operations + i) * bytes_);
  }
  /// The time of one turn; the first one connects and does not count.
  template <class Work>
  double us_of(int turns, Work work) {
    work();
    rt_.world().barrier();
    const auto begin = rt_.now();
    for (int i = 0; i < turns; ++i) work();
    const auto taken = std::chrono::duration<double, std::micro>(std::chrono::nanoseconds(rt_.now() - begin));
    rt_.world().barrier();
    return taken.count() / turns;
  }

  rma::Runtime& rt_;
  std::size_t bytes_;
  rma::Window<std::byte> win_;
  std::vector<std::byte> out_, in_;
};

double value_of(bench& b, const std::string& experiment, int turns) {
  if (experiment == "throughput") return b.throughput(turns);
  return b.to_and_fro(turns, experiment != "get", experiment != "put");
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  choice chosen;
  CLI::App app("Puts and gets of an epoch in each order, and aggregated; two ranks");
  app.add_option("--experiments", chosen.experiments, "Which")->delimiter(',');
  app.add_option("--bytes", chosen.bytes, "Of one operation")->delimiter(',');
  app.add_option("--turns", chosen.turns, "Epochs that are measured");
  CLI11_PARSE(app, argc, argv);
  if (rt.size() != 2) throw std::runtime_error("this needs two ranks");
  for (const std::string& experiment : chosen.experiments) {
    for (const char* const order : orders) {
      for (const std::size_t bytes : chosen.bytes) {
        bench b(rt, order, bytes);
        const double value = value_of(b, experiment, chosen.turns);
        b.free();
        if (rt.rank() == 0) fmt::print("scheduling {} {} bytes {} value {:.3f}\n", experiment, order, bytes, value);
      }
    }
  }
  return 0;
}
