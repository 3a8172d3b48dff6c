// SPDX-License-Identifier: Apache-2.0
// NBCBench: how much of a non-blocking collective is left to be paid for when the program computes meanwhile.
//
// For each size: the time of the blocking operation; then the operation is started, the program computes for as long,
// with N = floor(size / interval) + 1 equidistant tests, and waits. The time of start and wait (and the tests) is the
// overhead. An interval of 0 means no tests. Results are compared with those of the blocking operation.
//
// With --post only what the start takes is measured, by the strategy of RMA_NBC_PROGRESS. The calls isend and irecv are
// schedules of one message each, from every other rank to the next one.
//
//   rmarun -n 4 nbcbench --call ialltoall
//   rma-sim -n 64 --ranks-per-node 1 --params dissertation-ddr nbcbench --call igather
//
// Source: Hoefler and Lumsdaine, Optimizing non-blocking collective operations for InfiniBand, 2008.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <rma/rma.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

using std::chrono::nanoseconds;

struct options {
  std::string call = "ialltoall";
  std::vector<std::size_t> bytes{1024, 4096, 16384, 65536, 262144};
  std::vector<std::size_t> intervals{0, 2048, 4096, 8192, 16384, 32768};
  int runs = 5;
  bool post = false;
  [[nodiscard]] bool single() const { return call == "isend" || call == "irecv"; }
};

struct bench {
  rma::Runtime& rt;
  rma::Team team;
  options how;
  std::vector<std::byte> out{}, in{}, wanted{};

  [[nodiscard]] double now_us() const { return static_cast<double>(nanoseconds(rt.now()).count()) / 1e3; }
  /// Computes for so long: virtual time in the simulator, the processor elsewhere.
  void compute(double us) const {
    const double end_us = now_us() + us;
    rt.compute(nanoseconds(static_cast<std::int64_t>(us * 1e3)));
    while (now_us() < end_us) {}
  }
  rma::Collective message{};

  [[nodiscard]] bool sends() const { return rt.rank() % 2 == 0 && rt.rank() + 1 < team.size(); }
  void prepare(std::size_t bytes) {
    const auto n = static_cast<std::size_t>(team.size());
    const bool gather = how.call == "igather";
    if (how.single()) {
      out.assign(bytes, std::byte{1});
      in.assign(bytes, std::byte{0});
      rma::Schedule one;
      if (sends()) one.send(rma::input(), bytes, rt.rank() + 1);
      if (rt.rank() % 2 == 1) one.recv(rma::output(), bytes, rt.rank() - 1);
      message = team.init(one, std::span<const std::byte>(out), std::span(in));
      return;
    }
    out.resize(gather ? bytes : bytes * n);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rt.rank()));
    in.assign(!gather || rt.rank() == 0 ? bytes * n : 0, std::byte{0});
  }
  [[nodiscard]] rma::Request start() {
    if (how.single()) return message.start();
    const std::span from(out);
    const std::span into(in);
    return how.call == "igather" ? team.igather(from, into, 0) : team.ialltoall(from, into);
  }
  /// The longest that any rank took, the median of the runs.
  template <class Run>
  double measure(Run&& run) {
    std::vector<double> times;
    for (int i = 0; i < how.runs; ++i) {
      team.barrier();
      double us = run();
      us = team.allreduce(us, rma::max);
      times.push_back(us);
    }
    std::nth_element(times.begin(), times.begin() + how.runs / 2, times.end());
    return times[static_cast<std::size_t>(how.runs / 2)];
  }
  double blocking() {
    return measure([&] {
      const double begin = now_us();
      start().wait();
      return now_us() - begin;
    });
  }
  double overhead(double compute_us, std::size_t tests) {
    return measure([&] {
      const double begin = now_us();
      rma::Request request = start();
      double spent = now_us() - begin;
      const double piece = compute_us / static_cast<double>(tests + 1);
      for (std::size_t i = 0; i < tests; ++i) {
        compute(piece);
        const double test = now_us();
        (void)request.test();
        spent += now_us() - test;
      }
      compute(piece);
      const double wait = now_us();
      request.wait();
      return spent + now_us() - wait;
    });
  }
  /// The time to start, of the ranks that make this call.
  double posting() {
    const bool counts = !how.single() || sends() == (how.call == "isend");
    return measure([&] {
      const double begin = now_us();
      rma::Request request = start();
      const double spent = now_us() - begin;
      request.wait();
      return counts ? spent : 0.0;
    });
  }
  bool run() {
    if (how.post) {
      for (const std::size_t bytes : how.bytes) {
        prepare(bytes);
        const double us = posting();
        if (rt.rank() == 0) fmt::print("{:8} {:10.2f}\n", bytes, us);
      }
      return true;
    }
    if (rt.rank() == 0)
      fmt::print("# {} on {} ranks; times in us, overhead by interval of tests in bytes\n", how.call, team.size());
    bool right = true;
    for (const std::size_t bytes : how.bytes) {
      prepare(bytes);
      const double blocked = blocking();
      wanted = in;
      std::string line = fmt::format("{:8} {:10.1f}", bytes, blocked);
      for (const std::size_t interval : how.intervals) {
        std::fill(in.begin(), in.end(), std::byte{0});
        const std::size_t tests = interval == 0 ? 0 : bytes / interval + 1;
        line += fmt::format(" {:10.1f}", overhead(blocked, tests));
        right = right && in == wanted;
      }
      if (rt.rank() == 0) fmt::print("{}\n", line);
    }
    return team.allreduce(right ? 1 : 0, rma::min) == 1;
  }
};

}  // namespace

int main(int argc, char** argv) {
  options how;
  CLI::App app("Overhead of non-blocking collectives", "nbcbench");
  app.add_option("--call", how.call)->check(CLI::IsMember({"ialltoall", "igather", "isend", "irecv"}));
  app.add_flag("--post", how.post, "Only the time of the start");
  app.add_option("--bytes", how.bytes, "Bytes for each rank")->delimiter(',');
  app.add_option("--intervals", how.intervals, "Bytes between two tests; 0: none")->delimiter(',');
  app.add_option("--runs", how.runs)->check(CLI::PositiveNumber);
  rma::Runtime rt(argc, argv);
  CLI11_PARSE(app, argc, argv);
  how.post = how.post || how.single();
  bench all{rt, rt.world(), how};
  const bool right = all.run();
  if (rt.rank() == 0) fmt::print("# at the end: results {}\n", right ? "equal those of the blocking form" : "DIFFER");
  return right ? 0 : 1;
}
