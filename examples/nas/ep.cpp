// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS EP: sums of pairs of Gaussian deviates, which need no communication but at the end (NAS report RNR-94-007,
/// section 2.1).
///
/// \code
/// rmarun -n 4 nas_ep --class W
/// \endcode

#include "kernel.hpp"
#include "verification.hpp"

namespace nas {
namespace {

std::vector<double> sums_of_pairs(Run& run) {
  const std::uint64_t pairs = std::uint64_t{1} << (run.size() == 'S' ? 24 : 25);
  const auto ranks = static_cast<std::uint64_t>(run.ranks()), me = static_cast<std::uint64_t>(run.rank());
  run.start();
  Random random(271828183);
  random.skip(2 * (pairs / ranks) * me);
  double sums[2] = {0, 0};
  for (std::uint64_t i = 0; i < pairs / ranks; ++i) {
    const double x = 2 * random.next() - 1, y = 2 * random.next() - 1;
    const double t = x * x + y * y;
    if (t > 1) continue;
    const double factor = std::sqrt(-2 * std::log(t) / t);
    sums[0] += x * factor;
    sums[1] += y * factor;
  }
  run.charge(30 * static_cast<double>(pairs / ranks));
  run.waiting([&] { run.world().allreduce(std::span(sums), rma::sum); });
  run.stop();
  return {sums[0], sums[1]};
}

}  // namespace
}  // namespace nas

int main(int argc, char** argv) {
  return nas::run_kernel(argc, argv, "ep", false, [](nas::Run& run) {
    return run.report(nas::sums_of_pairs(run), nas::published::ep(run.size()), 1e-8);
  });
}
