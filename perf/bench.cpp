// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <utility>

#include "shared_line.hpp"

namespace perf {
namespace {

/// The name before the first blank or colon of what the runtime says about the fabric that leads to rank 0 or 1.
std::string fabric_of(const rma::Runtime& runtime) {
  const auto fabrics = runtime.fabrics();
  if (fabrics.empty()) return "none";
  const bool mapped = runtime.size() == 1 || runtime.world().shares_memory(runtime.rank() == 0 ? 1 : 0);
  const std::string& leads = mapped ? fabrics.front() : fabrics.back();
  return leads.substr(0, leads.find_first_of(" :"));
}

bool is_simulated(const rma::Runtime& runtime) {
  const auto all = runtime.settings();
  return std::ranges::any_of(
      all, [](const rma::Setting& each) { return each.name == "RMA_BOOT" && each.value.starts_with("sim:"); });
}

job job_of(rma::Runtime& runtime) {
  job with;
  with.rank = runtime.rank();
  with.size = runtime.size();
  with.fabric = fabric_of(runtime);
  with.barrier = [&runtime] { runtime.world().barrier(); };
  with.from_first = [&runtime](std::uint64_t value) {
    std::array<std::uint64_t, 1> shared{value};
    runtime.world().broadcast(std::span<std::uint64_t>(shared), 0);
    return shared[0];
  };
  with.highest = [&runtime](double value) { return runtime.world().allreduce(value, rma::max); };
  with.now = [&runtime] { return runtime.now(); };
  with.virtual_time = is_simulated(runtime);
  return with;
}

void measure_all(rma::Runtime& runtime, const options& chosen, const char* program,
                 const std::function<void(bench&)>& measure) {
  job with_this = job_of(runtime);
  const shared_line line(with_this);
  with_this.line = line.word();
  session points(chosen, std::move(with_this), program);
  bench with{runtime, runtime.world(), points};
  measure(with);
  points.finish();
}

}  // namespace

int run(int argc, char** argv, const char* summary, int ranks, const std::function<void(bench&)>& measure) {
  try {
    rma::Runtime runtime(argc, argv);
    try {
      const options chosen = parse(argc, argv, summary, runtime.rank() != 0);
      const std::string program = std::filesystem::path(argv[0]).filename().string();
      if (runtime.size() < ranks) {
        fmt::print(stderr, "{0} needs {1} ranks: rmarun -n {1} {0}\n", program, ranks);
        return 2;
      }
      if (chosen.pin) pin(runtime.rank(), runtime.size());
      measure_all(runtime, chosen, program.c_str(), measure);
    } catch (const std::exception& error) {
      // Others may wait for this rank: end the job, not only the process.
      runtime.abort(1, error.what());
    }
  } catch (const exit_now& early) {
    return early.status;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
  return 0;
}

}  // namespace perf
