// SPDX-License-Identifier: Apache-2.0
// The measurements of perf/sync.cpp in MPI.
#include "mpi.hpp"

int main(int argc, char** argv) {
  return perf::run(argc, argv, "fence and barrier", 1, [](perf::bench& b) {
    const perf::mpi_window win(1024 * sizeof(std::uint64_t));
    const int next = (b.rank() + 1) % b.ranks();
    MPI_Win_fence(0, win);
    b.points.everyone({"fence"}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) MPI_Win_fence(0, win);
    });
    std::uint64_t last = 0;
    b.points.everyone({"fence_put", 8}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        MPI_Put(&i, 1, MPI_UINT64_T, next, 0, 1, MPI_UINT64_T, win);
        MPI_Win_fence(0, win);
      }
      last = n - 1;
    });
    perf::require(*win.data<std::uint64_t>() == last, "fence_put");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    b.points.everyone({"barrier"}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) MPI_Barrier(MPI_COMM_WORLD);
    });
  });
}
