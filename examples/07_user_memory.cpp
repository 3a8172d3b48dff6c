// SPDX-License-Identifier: Apache-2.0
/// \file
/// A window on memory that the program already has, here a std::vector: others add to it and read it.
///
/// \code
/// rmarun -n 4 07_user_memory
/// \endcode

#include <numeric>
#include <rma/rma.hpp>
#include <vector>

#include <fmt/format.h>

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  const int right = (rt.rank() + 1) % rt.size();

  std::vector<double> field(1000);
  std::iota(field.begin(), field.end(), 1.0);  // 1, 2, ..., 1000

  // Memory from Window::allocate is faster between processes; this is for memory that cannot come from there.
  auto window = rma::Window<double>::create(world, std::span(field));

  // Every rank adds its field to rank 0's, all at the same time. The elements of an accumulate are atomic.
  const std::vector<double> mine = field;
  window.fence();
  window.accumulate(mine, 0, 0, rma::sum);
  window.fence(rma::no_succeed);

  std::vector<double> theirs(field.size());
  {
    const auto epoch = window.lock(rma::shared, right);
    window.get(theirs, right, 0);
  }
  window.free();  // collective: from here on nobody touches the vectors, which may go

  // Rank 0 holds its own field once and everybody's on top of it; the others are as they were.
  const double factor = right == 0 ? 1.0 + rt.size() : 1.0;
  bool ok = true;
  for (std::size_t i = 0; i < theirs.size(); ++i) ok = ok && theirs[i] == factor * mine[i];
  const bool all = world.allreduce(ok ? 1 : 0, rma::min) == 1;
  if (rt.rank() == 0) fmt::print("every rank found its right neighbor's field as expected: {}\n", all ? "yes" : "no");
  return all ? 0 : 1;
}
