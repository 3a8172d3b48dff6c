// SPDX-License-Identifier: Apache-2.0
/// \file
/// SPLASH-2's blocked LU factorization with one-sided gets under passive locks, as in the dissertation's sections
/// 4.4.2 and 5.3.6.
///
/// \code
/// rmarun -n 4 splash_lu -n 1024 -b 32 --lock exclusive --granularity block
/// \endcode
/// The result is checked: the exit status is 1 if ||A - L U|| / ||A|| is not below 1e-12.

#include <cstdio>
#include <fstream>

#include "command_line.hpp"
#include "splash_lu_factor.hpp"

namespace splash_lu {

namespace {

constexpr double residual_limit = 1e-12;

struct Options {
  Shape shape{512, 16};
  Method method;
  bool verify = true;
  std::string json;
};

/// A quantity over all ranks, in milliseconds.
struct Spread {
  double max = 0;
  double min = 0;
  double average = 0;
};

struct Result {
  Spread lock, get, unlock, barrier, compute, total;
  std::uint64_t locks_same_node = 0;
  std::uint64_t locks_other_node = 0;
  double gflops = 0;
  double residual = 0;
};

std::optional<int> read_options(rma::Runtime& rt, int argc, char** argv, Options& options) {
  CLI::App app(
      "SPLASH-2 LU: dense factorization in blocks, which ranks get from each other under passive locks.\n"
      "Start it with rmarun: rmarun -n 4 splash_lu -n 1024 -b 32",
      "splash_lu");
  std::string lock = "exclusive";
  std::string granularity = "block";
  bool no_verify = false;
  app.set_help_flag("-h,--help", "This text");
  app.add_option("-n", options.shape.n, "Rows and columns of the matrix")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-b", options.shape.b, "Rows and columns of a block; need not divide N")
      ->check(CLI::Range(1, 4096))
      ->type_name("B")
      ->capture_default_str();
  app.add_option("--lock", lock, "How a target is locked while a block is fetched")
      ->check(CLI::IsMember({"exclusive", "shared"}))
      ->capture_default_str();
  app.add_option("--granularity", granularity, "An epoch for each block, or for each row of a block")
      ->check(CLI::IsMember({"block", "row"}))
      ->capture_default_str();
  app.add_option("--gflops", options.method.flops_per_ns, "Speed of a simulated processor (nothing elsewhere)")
      ->check(CLI::Range(1e-3, 1e6))
      ->capture_default_str();
  app.add_flag("--no-verify", no_verify, "Leave out the check, which takes about as long as the factorization");
  app.add_option("--json", options.json, "Write the result to this file, too")->type_name("FILE");
  if (const auto leave = example::parse(app, rt, argc, argv)) return leave;
  options.method.lock = lock == "shared" ? rma::shared : rma::exclusive;
  options.method.granularity = granularity == "row" ? Granularity::row : Granularity::block;
  options.verify = !no_verify;
  options.shape.b = std::min(options.shape.b, options.shape.n);
  return std::nullopt;
}

template <class Part>
Spread spread_of(const std::vector<Profile>& profiles, Part part) {
  Spread spread{0, 1e300, 0};
  for (const Profile& profile : profiles) {
    const double ms = std::chrono::duration<double, std::milli>(part(profile)).count();
    spread.max = std::max(spread.max, ms);
    spread.min = std::min(spread.min, ms);
    spread.average += ms / static_cast<double>(profiles.size());
  }
  return spread;
}

Result summarize(const std::vector<Profile>& profiles, const Shape& shape) {
  Result result;
  result.lock = spread_of(profiles, [](const Profile& p) { return p.lock; });
  result.get = spread_of(profiles, [](const Profile& p) { return p.get; });
  result.unlock = spread_of(profiles, [](const Profile& p) { return p.unlock; });
  result.barrier = spread_of(profiles, [](const Profile& p) { return p.barrier; });
  result.compute = spread_of(profiles, [](const Profile& p) { return p.compute(); });
  result.total = spread_of(profiles, [](const Profile& p) { return p.total; });
  for (const Profile& profile : profiles) {
    result.locks_same_node += profile.locks_same_node;
    result.locks_other_node += profile.locks_other_node;
  }
  const double n = static_cast<double>(shape.n);
  result.gflops = 2.0 / 3.0 * n * n * n / (result.total.max * 1e6);
  return result;
}

void print_result(const rma::Runtime& rt, const Options& options, const Matrix& matrix, const Result& result) {
  const auto row = [](const char* name, const Spread& spread) {
    fmt::print("{:10} {:12.3f} {:12.3f} {:12.3f}\n", name, spread.max, spread.min, spread.average);
  };
  const bool by_row = options.method.granularity == Granularity::row;
  fmt::print("SPLASH LU, {} x {} in blocks of {} x {}, ranks as {} x {}, {} locks, an epoch per {}\n", options.shape.n,
             options.shape.n, options.shape.b, options.shape.b, matrix.grid().rows(), matrix.grid().columns(),
             options.method.lock == rma::shared ? "shared" : "exclusive", by_row ? "row of a block" : "block");
  fmt::print("{:10} {:>12} {:>12} {:>12}\n", "ms", "max", "min", "average");
  row("lock", result.lock);
  row("get", result.get);
  row("unlock", result.unlock);
  row("barrier", result.barrier);
  row("compute", result.compute);
  row("total", result.total);
  fmt::print("locks: {} same node, {} other node\n", result.locks_same_node, result.locks_other_node);
  if (options.verify) {
    fmt::print("residual: {:.2e} (limit {:.0e}): {}\n", result.residual, residual_limit,
               result.residual < residual_limit ? "passed" : "failed");
  } else {
    fmt::print("residual: not asked for\n");
  }
  fmt::print("LU: {:.6f} s, {:.3f} GFLOP/s (ranks {}, n {}, b {})\n", result.total.max * 1e-3, result.gflops, rt.size(),
             options.shape.n, options.shape.b);
  std::fflush(stdout);
}

bool write_json(const rma::Runtime& rt, const Options& options, const Result& result) {
  const auto part = [](const char* name, const Spread& spread) {
    return fmt::format(R"("{}_ms": {{"max": {:.6f}, "min": {:.6f}, "average": {:.6f}}}, )", name, spread.max,
                       spread.min, spread.average);
  };
  std::ofstream file(options.json);
  file << fmt::format(
              R"({{"benchmark": "splash_lu", "ranks": {}, "n": {}, "b": {}, "lock": "{}", "granularity": "{}", )",
              rt.size(), options.shape.n, options.shape.b, options.method.lock == rma::shared ? "shared" : "exclusive",
              options.method.granularity == Granularity::row ? "row" : "block")
       << part("lock", result.lock) << part("get", result.get) << part("unlock", result.unlock)
       << part("barrier", result.barrier) << part("compute", result.compute) << part("total", result.total)
       << fmt::format(R"("locks_same_node": {}, "locks_other_node": {}, "gflops": {:.6f}, "verified": {}, )"
                      R"("residual": {:.6e}}})"
                      "\n",
                      result.locks_same_node, result.locks_other_node, result.gflops, options.verify, result.residual);
  file.close();
  if (!file) fmt::print(stderr, "splash_lu: --json: cannot write {}\n", options.json);
  return static_cast<bool>(file);
}

int run(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  Options options;
  if (const auto leave = read_options(rt, argc, argv, options)) return *leave;

  rma::Team world = rt.world();
  Matrix matrix(world, options.shape);
  Worker worker(rt, matrix, options.method);
  factor(worker);
  Result result = summarize(world.allgather(worker.profile()), options.shape);
  if (options.verify) {
    Worker checker(rt, matrix, {.lock = rma::shared});  // its locks and its time do not count
    result.residual = residual(world, checker);
  }
  bool written = true;
  if (rt.rank() == 0) {
    print_result(rt, options, matrix, result);
    written = options.json.empty() || write_json(rt, options, result);
  }
  world.barrier();                                             // rank 0's report comes before anybody's exit status
  return written && result.residual < residual_limit ? 0 : 1;  // NaN is a failure, too
}

}  // namespace

}  // namespace splash_lu

int main(int argc, char** argv) {
  return example::run("splash_lu", [&] { return splash_lu::run(argc, argv); });
}
