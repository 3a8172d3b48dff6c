// SPDX-License-Identifier: Apache-2.0
// Puts of 64 rows of a matrix of ints: ns for one put and its flush. From contiguous memory, and from rows of a like
// matrix; and a memcpy of each row into the same mapped memory. Rank 0 works on rank 1, which sits in a barrier.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench.hpp"
#include "plan.hpp"

namespace {

using perf::matrix_columns;
using perf::matrix_rows;
constexpr int target = 1;

/// True if the target's rows hold, from column 0 on, what `mine` has at `stride` from row to row.
bool arrived(rma::Window<int>& win, const std::vector<int>& mine, std::size_t length, std::size_t stride) {
  std::vector<int> row(length);
  for (std::size_t r = 0; r < matrix_rows; ++r) {
    win.get(std::span<int>(row), target, r * matrix_columns);
    win.flush(target);
    if (!std::equal(row.begin(), row.end(), mine.begin() + static_cast<std::ptrdiff_t>(r * stride))) return false;
  }
  return true;
}

void rows(perf::bench& b, rma::Window<int>& win, std::vector<int>& mine, std::size_t length) {
  const std::size_t bytes = perf::rows_bytes(length);
  const auto columns = rma::Layout::vector<int>(matrix_rows, length, matrix_columns);
  const auto measure = [&](const std::string& kind, const rma::Layout& from, std::size_t stride) {
    const std::string metric = fmt::format("strided_{}_rows_{}", kind, length);
    std::iota(mine.begin(), mine.end(), static_cast<int>(length + stride));
    b.points.origin({metric, bytes}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win.put(mine.data(), from, target, 0, columns);
        win.flush(target);
      }
    });
    if (b.first() && b.points.wants(metric, bytes)) perf::require(arrived(win, mine, length, stride), metric);
    if (!b.world.one_node()) return;
    b.points.origin({fmt::format("memcpy_{}_rows_{}", kind, length), bytes}, [&](std::uint64_t n) {
      int* const there = win.pointer_to(target);
      for (std::uint64_t i = 0; i < n; ++i) {
        for (std::size_t r = 0; r < matrix_rows; ++r) {
          std::memcpy(there + r * matrix_columns, mine.data() + r * stride, length * sizeof(int));
        }
        perf::keep(there);
      }
    });
  };
  measure("put", rma::Layout::contiguous<int>(matrix_rows * length), length);
  measure("to_strided", columns, matrix_columns);
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "puts of rows of a matrix", 2, [](perf::bench& b) {
    auto win = rma::Window<int>::allocate(b.world, matrix_rows * matrix_columns);
    std::vector<int> mine(matrix_rows * matrix_columns);
    {
      std::optional<rma::Epoch> epoch;
      if (b.first()) epoch.emplace(win.lock_all());
      for (const std::size_t length : perf::row_lengths) rows(b, win, mine, length);
    }
    b.world.barrier();
    win.free();
  });
}
