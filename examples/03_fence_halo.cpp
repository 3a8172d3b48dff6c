// SPDX-License-Identifier: Apache-2.0
/// \file
/// Heat in a rod: Jacobi's method on a line of cells, whose ends are exchanged in fence epochs. 1 to 24 ranks.
///
/// \code
/// rmarun -n 4 03_fence_halo
/// \endcode

#include <rma/rma.hpp>
#include <vector>

#include <fmt/format.h>

namespace {
constexpr int cells_in_all = 24;
constexpr int steps = 1000;
constexpr int first_cell(int rank, int ranks) { return cells_in_all * rank / ranks; }
constexpr int cells_of(int rank, int ranks) { return first_cell(rank + 1, ranks) - first_cell(rank, ranks); }
}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const int ranks = rt.size();
  if (ranks > cells_in_all) rt.abort(2, "03_fence_halo: at most 24 ranks");
  const auto count = static_cast<std::size_t>(cells_of(rt.rank(), ranks));

  // A rank's part: the left neighbor's last cell, this rank's cells, the right neighbor's first cell.
  auto window = rma::Window<double>::allocate(rt.world(), count + 2);
  if (rt.rank() == ranks - 1) window[count + 1] = 100.0;  // the rod's right end is hot, the left one cold
  std::vector<double> next(count);

  window.fence();
  for (int step = 0; step < steps; ++step) {
    if (rt.rank() > 0) {
      const auto halo = static_cast<std::size_t>(cells_of(rt.rank() - 1, ranks)) + 1;
      window.put(window[1], rt.rank() - 1, halo);
    }
    if (rt.rank() < ranks - 1) window.put(window[count], rt.rank() + 1, 0);
    window.fence();  // the neighbors' cells are here
    for (std::size_t i = 0; i < count; ++i) next[i] = (window[i] + window[i + 2]) / 2;
    for (std::size_t i = 0; i < count; ++i) window[i + 1] = next[i];
    window.fence();  // everybody has used them: they may be overwritten
  }

  const auto mine = static_cast<std::size_t>(first_cell(rt.rank(), ranks));
  std::vector<double> rod(cells_in_all);
  for (std::size_t i = 0; i < count; ++i) rod[mine + i] = next[i];
  rt.world().allreduce(std::span(rod), rma::sum);
  if (rt.rank() == 0) {
    fmt::print("after {} steps:\n", steps);
    for (std::size_t i = 3; i < rod.size(); i += 4) fmt::print("cell {:2}: {:6.2f} degrees\n", i, rod[i]);
  }
  return 0;
}
