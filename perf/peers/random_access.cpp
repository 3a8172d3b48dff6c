// SPDX-License-Identifier: Apache-2.0
// The measurements of perf/random_access.cpp in MPI: MPI_Accumulate with MPI_BXOR.
#include "../plan.hpp"
#include "mpi.hpp"

namespace {

void locked(perf::bench& b, MPI_Win win, perf::update_stream& stream, std::uint64_t updates) {
  for (std::uint64_t i = 0; i < updates; ++i) {
    const std::uint64_t value = stream.next();
    const auto place = perf::place_of(value, b.ranks());
    MPI_Win_lock(MPI_LOCK_SHARED, place.target, 0, win);
    MPI_Accumulate(&value, 1, MPI_UINT64_T, place.target, static_cast<MPI_Aint>(place.at), 1, MPI_UINT64_T, MPI_BXOR,
                   win);
    MPI_Win_unlock(place.target, win);
  }
}

void flushed(perf::bench& b, MPI_Win win, perf::update_stream& stream, std::uint64_t updates) {
  std::uint64_t values[perf::updates_per_flush];  // a value may not change before the flush
  MPI_Win_lock_all(0, win);
  for (std::uint64_t i = 0; i < updates; ++i) {
    std::uint64_t& value = values[i % perf::updates_per_flush];
    value = stream.next();
    const auto place = perf::place_of(value, b.ranks());
    MPI_Accumulate(&value, 1, MPI_UINT64_T, place.target, static_cast<MPI_Aint>(place.at), 1, MPI_UINT64_T, MPI_BXOR,
                   win);
    if ((i + 1) % perf::updates_per_flush == 0) MPI_Win_flush_all(win);
  }
  MPI_Win_unlock_all(win);
}

using kernel = void (*)(perf::bench&, MPI_Win, perf::update_stream&, std::uint64_t updates);

void measure(perf::bench& b, const perf::mpi_window& win, const char* metric, kernel updates_of) {
  auto* const table = win.data<std::uint64_t>();
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b.rank(), 0, win);
  for (std::size_t i = 0; i < perf::table_words; ++i) table[i] = i;
  MPI_Win_unlock(b.rank(), win);
  MPI_Barrier(MPI_COMM_WORLD);
  perf::update_stream stream(b.rank());
  std::uint64_t done = 0;
  b.points.everyone({metric, 8, perf::unit::gups, static_cast<double>(b.ranks())}, [&](std::uint64_t n) {
    updates_of(b, win, stream, n);
    done += n;
    MPI_Barrier(MPI_COMM_WORLD);
  });
  perf::update_stream again(b.rank());
  flushed(b, win, again, done);
  MPI_Barrier(MPI_COMM_WORLD);
  bool intact = true;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b.rank(), 0, win);
  for (std::size_t i = 0; i < perf::table_words; ++i) intact = intact && table[i] == i;
  MPI_Win_unlock(b.rank(), win);
  perf::require(intact, metric);
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "RandomAccess by accumulate", 1, [](perf::bench& b) {
    const perf::mpi_window win(perf::table_words * sizeof(std::uint64_t));
    measure(b, win, "random_access_lock", locked);
    measure(b, win, "random_access_flush", flushed);
  });
}
