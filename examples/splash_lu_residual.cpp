// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "splash_lu_factor.hpp"
#include "splash_lu_kernels.hpp"

namespace splash_lu {

namespace {

/// A diagonal block taken apart: L with ones on its diagonal, U, and zeros elsewhere.
struct Diagonal {
  std::vector<double> lower;
  std::vector<double> upper;

  Diagonal(const double* block, std::size_t n) : lower(n * n), upper(n * n) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) (j < i ? lower : upper)[i * n + j] = block[i * n + j];
      lower[i * n + i] = 1;
    }
  }
};

/// remains -= column k of L times row k of U, for this rank's blocks.
void subtract_step(Worker& worker, Panels& panels, std::size_t k, double* remains) {
  Matrix& matrix = worker.matrix();
  const Shape& shape = matrix.shape();
  const std::size_t blocks = shape.blocks();
  const std::size_t depth = shape.extent(k);
  if (matrix.first_row(k) >= blocks || matrix.first_column(k) >= blocks) return;

  panels.fetch(k, k);
  std::vector<double> buffer(depth * depth);
  const bool on_diagonal = matrix.first_row(k) == k || matrix.first_column(k) == k;
  const Diagonal diagonal(on_diagonal ? worker.fetch(k, k, buffer.data()) : buffer.data(), depth);
  for (std::size_t i = matrix.first_row(k); i < blocks; i += matrix.grid().rows()) {
    for (std::size_t j = matrix.first_column(k); j < blocks; j += matrix.grid().columns()) {
      const double* const left = i == k ? diagonal.lower.data() : panels.left(i);
      const double* const above = j == k ? diagonal.upper.data() : panels.above(j);
      bmod(remains + matrix.place_of(i, j).offset, left, above, shape.extent(i), shape.extent(j), depth);
      worker.charge(2 * shape.extent(i) * shape.extent(j) * depth);
    }
  }
}

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

}  // namespace

double residual(rma::Team& world, Worker& worker) {
  Matrix& matrix = worker.matrix();
  std::vector<double> remains(matrix.size());  // smaller blocks leave zeros between them: no harm to a sum
  matrix.generate(remains.data());
  std::array<double, 2> squares{0, sum_of_squares(remains)};

  Panels panels(worker);
  for (std::size_t k = 0; k < matrix.shape().blocks(); ++k) subtract_step(worker, panels, k, remains.data());
  worker.barrier();  // nobody may still be reading when the matrix goes
  squares[0] = sum_of_squares(remains);
  world.allreduce(std::span<double>(squares), rma::sum);
  return std::sqrt(squares[0] / squares[1]);
}

}  // namespace splash_lu
