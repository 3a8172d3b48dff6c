// SPDX-License-Identifier: Apache-2.0
// The measurements of perf/bandwidth.cpp in MPI.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "../plan.hpp"
#include "mpi.hpp"

namespace {

constexpr int target = 1;
constexpr std::size_t word = sizeof(std::uint64_t);

perf::point point_of(const char* metric, std::size_t bytes) {
  const auto batch = static_cast<double>(perf::operations_per_flush(bytes));
  if (bytes == word) return {std::string(metric) + "_rate", bytes, perf::unit::mops, batch};
  return {metric, bytes, perf::unit::gbs, batch};
}

void put_batch(MPI_Win win, const std::uint64_t* from, std::size_t words, std::size_t batch) {
  const int count = static_cast<int>(words);
  for (std::size_t k = 0; k < batch; ++k) {
    MPI_Put(from + k * words, count, MPI_UINT64_T, target, static_cast<MPI_Aint>(k * words), count, MPI_UINT64_T, win);
  }
  MPI_Win_flush(target, win);
}

void get_batch(MPI_Win win, std::uint64_t* to, std::size_t words, std::size_t batch) {
  const int count = static_cast<int>(words);
  for (std::size_t k = 0; k < batch; ++k) {
    MPI_Get(to + k * words, count, MPI_UINT64_T, target, static_cast<MPI_Aint>(k * words), count, MPI_UINT64_T, win);
  }
  MPI_Win_flush(target, win);
}

void put(perf::bench& b, MPI_Win win, std::size_t bytes, const std::vector<std::uint64_t>& from) {
  b.points.origin(point_of("put", bytes), [&](std::uint64_t n) {
    for (; n > 0; --n) put_batch(win, from.data(), bytes / word, perf::operations_per_flush(bytes));
  });
}

void get(perf::bench& b, MPI_Win win, std::size_t bytes, std::vector<std::uint64_t>& to) {
  b.points.origin(point_of("get", bytes), [&](std::uint64_t n) {
    for (; n > 0; --n) get_batch(win, to.data(), bytes / word, perf::operations_per_flush(bytes));
  });
}

void contiguous(perf::bench& b) {
  const perf::mpi_window win(perf::size_bytes_max);
  std::vector<std::uint64_t> from(perf::size_bytes_max / word);
  std::iota(from.begin(), from.end(), 1);
  std::vector<std::uint64_t> to(from.size());
  if (b.first()) MPI_Win_lock_all(0, win);
  for (const std::size_t bytes : perf::sizes_bytes) {
    put(b, win, bytes, from);
    get(b, win, bytes, to);
    const std::size_t words = bytes / word * perf::operations_per_flush(bytes);
    if (b.first() && b.points.wants("put.*|get.*", bytes)) {
      const int count = static_cast<int>(words);
      MPI_Put(from.data(), count, MPI_UINT64_T, target, 0, count, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
      std::fill(to.begin(), to.end(), 0);
      MPI_Get(to.data(), count, MPI_UINT64_T, target, 0, count, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
      perf::require(std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(words), to.begin()),
                    "put, get");
    }
  }
  if (b.first()) MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
}

template <class T>
void accumulate(perf::bench& b, const std::string& metric, MPI_Datatype type, int passive) {
  constexpr std::size_t count = 64 * perf::kibibyte / sizeof(T);
  constexpr int elements = static_cast<int>(count);
  const perf::mpi_window win(count * sizeof(T));
  const std::vector<T> ones(count, T{1});
  std::uint64_t added = 0;
  if (b.first()) MPI_Win_lock(passive, target, 0, win);
  b.points.origin({metric, count * sizeof(T), perf::unit::gbs}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Accumulate(ones.data(), elements, type, target, 0, elements, type, MPI_SUM, win);
      MPI_Win_flush(target, win);
    }
    added += n;
  });
  if (b.first()) {
    std::vector<T> sums(count);
    MPI_Get(sums.data(), elements, type, target, 0, elements, type, win);
    MPI_Win_flush(target, win);
    perf::require(std::count(sums.begin(), sums.end(), static_cast<T>(added)) == static_cast<std::ptrdiff_t>(count),
                  metric);
    MPI_Win_unlock(target, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "bandwidth of put, get and accumulate", 2, [](perf::bench& b) {
    contiguous(b);
    accumulate<double>(b, "accumulate_double", MPI_DOUBLE, MPI_LOCK_SHARED);
    accumulate<double>(b, "accumulate_double_exclusive", MPI_DOUBLE, MPI_LOCK_EXCLUSIVE);
    accumulate<std::int64_t>(b, "accumulate_int64", MPI_INT64_T, MPI_LOCK_SHARED);
    accumulate<std::int64_t>(b, "accumulate_int64_exclusive", MPI_INT64_T, MPI_LOCK_EXCLUSIVE);
  });
}
