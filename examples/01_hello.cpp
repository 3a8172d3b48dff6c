// SPDX-License-Identifier: Apache-2.0
/// \file
/// A runtime, its ranks, and one collective.
///
/// \code
/// rmarun -n 4 01_hello
/// \endcode

#include <rma/rma.hpp>
#include <vector>

#include <fmt/format.h>

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);  // the launcher has said which rank this is
  rma::Team world = rt.world();

  // One value of each rank, in rank order, for everybody.
  const std::vector<int> squares = world.allgather(rt.rank() * rt.rank());

  if (rt.rank() == 0) {
    for (std::size_t rank = 0; rank < squares.size(); ++rank) {
      fmt::print("hello from rank {} of {}, which sent {}\n", rank, rt.size(), squares[rank]);
    }
  }
  return 0;
}
