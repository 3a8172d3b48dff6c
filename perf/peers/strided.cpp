// SPDX-License-Identifier: Apache-2.0
// The measurements of perf/strided.cpp in MPI.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "../plan.hpp"
#include "mpi.hpp"

namespace {

using perf::matrix_columns;
using perf::matrix_rows;
constexpr int target = 1;

bool arrived(MPI_Win win, const std::vector<int>& mine, std::size_t length, std::size_t stride) {
  std::vector<int> row(length);
  const int count = static_cast<int>(length);
  for (std::size_t r = 0; r < matrix_rows; ++r) {
    MPI_Get(row.data(), count, MPI_INT, target, static_cast<MPI_Aint>(r * matrix_columns), count, MPI_INT, win);
    MPI_Win_flush(target, win);
    if (!std::equal(row.begin(), row.end(), mine.begin() + static_cast<std::ptrdiff_t>(r * stride))) return false;
  }
  return true;
}

void rows(perf::bench& b, MPI_Win win, std::vector<int>& mine, std::size_t length) {
  const std::size_t bytes = perf::rows_bytes(length);
  MPI_Datatype columns = MPI_DATATYPE_NULL;
  MPI_Type_vector(static_cast<int>(matrix_rows), static_cast<int>(length), static_cast<int>(matrix_columns), MPI_INT,
                  &columns);
  MPI_Type_commit(&columns);
  const auto measure = [&](const char* kind, MPI_Datatype from, std::size_t count, std::size_t stride) {
    const std::string metric = fmt::format("strided_{}_rows_{}", kind, length);
    std::iota(mine.begin(), mine.end(), static_cast<int>(length + stride));
    b.points.origin({metric, bytes}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        MPI_Put(mine.data(), static_cast<int>(count), from, target, 0, 1, columns, win);
        MPI_Win_flush(target, win);
      }
    });
    if (b.first() && b.points.wants(metric, bytes)) perf::require(arrived(win, mine, length, stride), metric);
  };
  measure("put", MPI_INT, matrix_rows * length, length);
  measure("to_strided", columns, 1, matrix_columns);
  MPI_Type_free(&columns);
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "puts of rows of a matrix", 2, [](perf::bench& b) {
    const perf::mpi_window win(matrix_rows * matrix_columns * sizeof(int), perf::mpi_window::memory::of_mpi,
                               sizeof(int));
    std::vector<int> mine(matrix_rows * matrix_columns);
    if (b.first()) MPI_Win_lock_all(0, win);
    for (const std::size_t length : perf::row_lengths) rows(b, win, mine, length);
    if (b.first()) MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
  });
}
