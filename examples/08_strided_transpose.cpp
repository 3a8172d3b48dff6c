// SPDX-License-Identifier: Apache-2.0
/// \file
/// The transpose of a matrix whose rows are spread over the ranks. Layouts say what is taken and where it goes; no
/// program code copies an element.
///
/// \code
/// rmarun -n 4 08_strided_transpose
/// \endcode

#include <rma/rma.hpp>

#include <fmt/format.h>

namespace {
constexpr std::size_t n = 24;
constexpr std::size_t first_row(int rank, int ranks) {  // rounded up, so that rank 0 always has a row
  return (n * static_cast<std::size_t>(rank) + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks);
}
}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  const std::size_t first = first_row(rt.rank(), rt.size());
  const std::size_t rows = first_row(rt.rank() + 1, rt.size()) - first;
  std::vector<double> matrix(rows * n);  // element (i, j) is 100 i + j
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < n; ++j) matrix[i * n + j] = static_cast<double>(100 * (first + i) + j);
  }
  auto transpose = rma::Window<double>::allocate(world, rows * n);

  // A column of this rank's rows: n elements from one to the next. Resized, so that the next column begins one on.
  const auto column = rma::Layout::resized(rma::Layout::vector<double>(rows, 1, n), 0, sizeof(double));
  transpose.fence();
  for (int target = 0; target < rt.size(); ++target) {
    const std::size_t from = first_row(target, rt.size());
    const std::size_t columns = first_row(target + 1, rt.size()) - from;
    if (rows == 0 || columns == 0) continue;
    // Its rows are my columns: column after column becomes row after row, `rows` elements of each.
    const auto taken = rma::Layout::contiguous(columns, column);
    const auto placed = rma::Layout::vector<double>(columns, rows, n);
    transpose.put(&matrix[from], taken, target, first, placed);
  }
  transpose.fence();

  bool ok = true;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < n; ++j) ok = ok && transpose[i * n + j] == static_cast<double>(100 * j + first + i);
  }
  ok = world.allreduce(ok ? 1 : 0, rma::min) == 1;
  if (rt.rank() == 0) {
    fmt::print("row 0 of the transpose begins with {} {} {}\n", transpose[0], transpose[1], transpose[2]);
    fmt::print("{} x {} matrix transposed: {}\n", n, n, ok ? "correct" : "wrong");
  }
  return ok ? 0 : 1;
}
