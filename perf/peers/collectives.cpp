// SPDX-License-Identifier: Apache-2.0
// The measurements of perf/collectives.cpp in MPI.
#include <cstddef>
#include <vector>

#include "mpi.hpp"

namespace {

constexpr std::size_t all_bytes[] = {8, 512, 4096, 65536, 1048576};

template <class Call>
void repeat(perf::bench& b, const char* metric, std::size_t bytes, Call&& call) {
  b.points.everyone({metric, bytes}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) call();
  });
}

void wait(MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

void measure(perf::bench& b, std::size_t bytes) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const auto count = static_cast<int>(bytes / 8);
  std::vector<double> out(bytes / 8 * static_cast<std::size_t>(b.ranks()), 1.0), in(out.size());
  double* const from = out.data();
  double* const into = in.data();
  MPI_Request r;
  repeat(b, "broadcast", bytes, [&] { MPI_Bcast(into, count, MPI_DOUBLE, 0, world); });
  repeat(b, "reduce", bytes, [&] { MPI_Reduce(from, into, count, MPI_DOUBLE, MPI_SUM, 0, world); });
  repeat(b, "allreduce", bytes, [&] { MPI_Allreduce(from, into, count, MPI_DOUBLE, MPI_SUM, world); });
  repeat(b, "iallreduce", bytes, [&] {
    MPI_Iallreduce(from, into, count, MPI_DOUBLE, MPI_SUM, world, &r);
    wait(r);
  });
  repeat(b, "ibroadcast", bytes, [&] {
    MPI_Ibcast(into, count, MPI_DOUBLE, 0, world, &r);
    wait(r);
  });
  repeat(b, "gather", bytes, [&] { MPI_Gather(from, count, MPI_DOUBLE, into, count, MPI_DOUBLE, 0, world); });
  repeat(b, "allgather", bytes, [&] { MPI_Allgather(from, count, MPI_DOUBLE, into, count, MPI_DOUBLE, world); });
  repeat(b, "alltoall", bytes, [&] { MPI_Alltoall(from, count, MPI_DOUBLE, into, count, MPI_DOUBLE, world); });
  repeat(b, "ialltoall", bytes, [&] {
    MPI_Ialltoall(from, count, MPI_DOUBLE, into, count, MPI_DOUBLE, world, &r);
    wait(r);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "collectives", 1, [](perf::bench& b) {
    repeat(b, "barrier", 0, [] { MPI_Barrier(MPI_COMM_WORLD); });
    repeat(b, "ibarrier", 0, [] {
      MPI_Request r;
      MPI_Ibarrier(MPI_COMM_WORLD, &r);
      wait(r);
    });
    for (const std::size_t bytes : all_bytes) measure(b, bytes);
  });
}
