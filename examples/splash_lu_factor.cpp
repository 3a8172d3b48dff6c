// SPDX-License-Identifier: Apache-2.0
#include "splash_lu_factor.hpp"

#include "splash_lu_kernels.hpp"

namespace splash_lu {

namespace {

/// The blocks below and to the right of the diagonal block k are divided by it.
void perimeter(Worker& worker, std::size_t k, double* buffer) {
  Matrix& matrix = worker.matrix();
  const Shape& shape = matrix.shape();
  const std::size_t n = shape.extent(k);
  const double* diagonal = nullptr;  // fetched by those who need it
  const auto need_diagonal = [&] {
    if (diagonal == nullptr) diagonal = worker.fetch(k, k, buffer);
    return diagonal;
  };
  for (std::size_t i = matrix.first_row(k + 1); i < shape.blocks(); i += matrix.grid().rows()) {
    if (!matrix.mine(i, k)) break;  // column k is another's
    bdiv(matrix.block(i, k), need_diagonal(), shape.extent(i), n);
    worker.charge(shape.extent(i) * n * n);
  }
  for (std::size_t j = matrix.first_column(k + 1); j < shape.blocks(); j += matrix.grid().columns()) {
    if (!matrix.mine(k, j)) break;  // row k is another's
    bmodd(matrix.block(k, j), need_diagonal(), n, shape.extent(j));
    worker.charge(shape.extent(j) * n * n);
  }
}

/// The product of the perimeter blocks is subtracted from the interior.
void interior(Worker& worker, Panels& panels, std::size_t k) {
  Matrix& matrix = worker.matrix();
  const Shape& shape = matrix.shape();
  const std::size_t depth = shape.extent(k);
  panels.fetch(k, k + 1);
  for (std::size_t i = matrix.first_row(k + 1); i < shape.blocks(); i += matrix.grid().rows()) {
    for (std::size_t j = matrix.first_column(k + 1); j < shape.blocks(); j += matrix.grid().columns()) {
      bmod(matrix.block(i, j), panels.left(i), panels.above(j), shape.extent(i), shape.extent(j), depth);
      worker.charge(2 * shape.extent(i) * shape.extent(j) * depth);
    }
  }
}

}  // namespace

void factor(Worker& worker) {
  Matrix& matrix = worker.matrix();
  Panels panels(worker);
  std::vector<double> buffer(matrix.shape().b * matrix.shape().b);

  worker.start();
  for (std::size_t k = 0; k < matrix.shape().blocks(); ++k) {
    const std::size_t n = matrix.shape().extent(k);
    if (matrix.mine(k, k)) {
      lu0(matrix.block(k, k), n);
      worker.charge(2 * n * n * n / 3);
    }
    worker.barrier();
    perimeter(worker, k, buffer.data());
    worker.barrier();
    interior(worker, panels, k);
    // No barrier here: the next step begins with the owner of its diagonal block, who has just updated that itself.
  }
  worker.barrier();
  worker.stop();
}

}  // namespace splash_lu
