// SPDX-License-Identifier: Apache-2.0
/// \file
/// MPI and windows of this library in one program: MPI moves messages and adds up, a window takes what others put
/// without being asked. Both learn from the same launcher who they are, so ranks have the same numbers.
///
/// \code
/// mpirun -n 4 09_with_mpi
/// \endcode

#include <mpi.h>

#include <cstdint>
#include <rma/rma.hpp>

#include <fmt/format.h>

namespace {

/// Every rank counts the others' visits in its window; MPI adds up what was counted, and passes a token meanwhile.
bool visit(rma::Runtime& rt) {
  constexpr int rounds = 100;
  const int right = (rt.rank() + 1) % rt.size();
  const int left = (rt.rank() + rt.size() - 1) % rt.size();
  auto visits = rma::Window<std::uint64_t>::allocate(rt.world(), 1);
  int token = rt.rank();
  for (int round = 0; round < rounds; ++round) {
    const auto epoch = visits.lock(rma::shared, round % rt.size());
    visits.accumulate(1, round % rt.size(), 0, rma::sum);
    MPI_Sendrecv_replace(&token, 1, MPI_INT, right, 0, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // every epoch is over, on every rank
  std::uint64_t mine = visits[0];
  std::uint64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  visits.free();
  const int home = (((rt.rank() - rounds) % rt.size()) + rt.size()) % rt.size();
  return all == static_cast<std::uint64_t>(rounds) * static_cast<std::uint64_t>(rt.size()) && token == home;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool good = true;
  for (int turn = 0; turn < 2; ++turn) {  // a runtime need not live as long as MPI does
    rma::Runtime rt(argc, argv);
    int rank = -1;
    int size = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    good = good && rank == rt.rank() && size == rt.size() && visit(rt);
    if (rank == 0) fmt::print("turn {}: {} visits counted\n", turn, 100 * size);
  }
  MPI_Finalize();
  if (!good) fmt::print("WRONG\n");
  return good ? 0 : 1;
}
