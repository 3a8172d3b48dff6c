// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shared by the NAS kernels: options, classes, time spent computing and waiting, the report.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <string>
#include <string_view>
#include <vector>

#include "../command_line.hpp"
#include "random.hpp"

namespace nas {

/// How ranks talk to each other.
enum class Form { messages, blocking, nonblocking };

struct Options {
  char size = 'S';
  Form form = Form::messages;
  double flops_per_ns = 2;
};

/// One run of a kernel: this rank's clock, and the result.
class Run {
 public:
  Run(rma::Runtime& rt, std::string kernel, const Options& options)
      : rt_(rt), world_(rt.world()), kernel_(std::move(kernel)), options_(options) {}

  [[nodiscard]] rma::Runtime& runtime() noexcept { return rt_; }
  [[nodiscard]] rma::Team& world() noexcept { return world_; }
  [[nodiscard]] int rank() const noexcept { return world_.rank(); }
  [[nodiscard]] int ranks() const noexcept { return world_.size(); }
  [[nodiscard]] char size() const noexcept { return options_.size; }
  [[nodiscard]] Form form() const noexcept { return options_.form; }

  /// A simulated processor takes so long for `flops`.
  void charge(double flops) {
    rt_.compute(std::chrono::nanoseconds(static_cast<std::int64_t>(flops / options_.flops_per_ns)));
  }
  /// Does `body`, which waits for others. The time counts as waiting.
  template <class Body>
  void waiting(Body&& body) {
    const auto begin = rt_.now();
    body();
    waited_ += rt_.now() - begin;
  }

  /// The timed part begins and ends here, at all ranks.
  void start() {
    world_.barrier();
    waited_ = {};
    started_ = rt_.now();
    rendezvous_ = counter("rendezvous_transfers");
  }
  void stop() {
    sources_ = counter("message_sources");
    world_.barrier();
    time_ = rt_.now() - started_;
    rendezvous_ = counter("rendezvous_transfers") - rendezvous_;
  }

  /// Prints the result, and returns the exit status: each of `found` must be within `tolerance` of `expected`,
  /// relatively. Collective.
  int report(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
    bool good = found.size() == expected.size();
    for (std::size_t i = 0; good && i < found.size(); ++i) {
      good = std::abs(found[i] - expected[i]) <= tolerance * std::abs(expected[i]);  // NaN is wrong
    }
    if (!good && rank() == 0) {
      for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
        fmt::print("{}: found {:.13e}, the published value is {:.13e}\n", kernel_, found[i], expected[i]);
    }
    return report(good, found.empty() ? 0 : found[0]);
  }
  int report(bool good, double value) {
    using us = std::chrono::duration<double, std::micro>;
    good = world_.allreduce(good ? 1 : 0, rma::min) == 1;
    const double waited_us = world_.allreduce(us(waited_).count(), rma::sum) / ranks();
    const auto messages = world_.allreduce(rendezvous_, rma::sum);
    const double sources = world_.allreduce(static_cast<double>(sources_), rma::sum) / ranks();
    if (rank() == 0) {
      const char* const forms[] = {"messages", "one-sided blocking", "one-sided nonblocking"};
      fmt::print(
          "NAS {}, class {}, {}, {} ranks: {:.1f} us, waited {:.1f} us, {} rendezvous, {:.1f} sources, {:.13e}: {}\n",
          kernel_, options_.size, forms[static_cast<int>(options_.form)], ranks(), us(time_).count(), waited_us,
          messages, sources, value, good ? "verified" : "wrong");
      std::fflush(stdout);
    }
    world_.barrier();  // rank 0's report comes before anybody's exit status
    return good ? 0 : 1;
  }

 private:
  [[nodiscard]] std::uint64_t counter(std::string_view name) const {
    for (const rma::Counter& each : rt_.counters()) {
      if (each.name == name) return each.value;
    }
    return 0;
  }

  rma::Runtime& rt_;
  rma::Team world_;
  std::string kernel_;
  Options options_;
  std::chrono::nanoseconds started_{0}, time_{0}, waited_{0};
  std::uint64_t rendezvous_ = 0, sources_ = 0;
};

/// Reads the options, and refuses a number of ranks that `fits` says no to. `one_sided`: there are forms to choose
/// from.
template <class Fits>
std::optional<int> read_options(rma::Runtime& rt, int argc, char** argv, const std::string& name, bool one_sided,
                                Fits&& fits, const char* ranks, Options& options) {
  CLI::App app("NAS " + name + ". Start it with rmarun: rmarun -n 4 nas_" + name, "nas_" + name);
  std::string size = "S", form = "messages";
  app.set_help_flag("-h,--help", "This text");
  app.add_option("--class", size, "Size of the problem")->check(CLI::IsMember({"S", "W"}))->capture_default_str();
  if (one_sided) {
    app.add_option("--form", form, "How ranks talk to each other")
        ->check(CLI::IsMember({"messages", "blocking", "nonblocking"}))
        ->capture_default_str();
  }
  app.add_option("--gflops", options.flops_per_ns, "Speed of a simulated processor (nothing elsewhere)")
      ->check(CLI::Range(1e-3, 1e6))
      ->capture_default_str();
  if (const auto leave = example::parse(app, rt, argc, argv)) return leave;
  options.size = size[0];
  options.form = form == "messages" ? Form::messages : form == "blocking" ? Form::blocking : Form::nonblocking;
  if (!fits(rt.size())) {
    return example::reject(rt, "nas_" + name, fmt::format("{} ranks: it needs {}", rt.size(), ranks));
  }
  return std::nullopt;
}

inline bool power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

/// `main` of a kernel: on a power of two of ranks, unless `fits` says on how many.
template <class Kernel, class Fits = bool (*)(int)>
int run_kernel(int argc, char** argv, const std::string& name, bool one_sided, Kernel&& kernel,
               Fits fits = power_of_two, const char* ranks = "a power of two") {
  return example::run(("nas_" + name).c_str(), [&]() -> int {
    rma::Runtime rt(argc, argv);
    Options options;
    if (const auto leave = read_options(rt, argc, argv, name, one_sided, fits, ranks, options)) return *leave;
    Run run(rt, name, options);
    return kernel(run);
  });
}

}  // namespace nas
