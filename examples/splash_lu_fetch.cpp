// SPDX-License-Identifier: Apache-2.0
#include "splash_lu_fetch.hpp"

#include <span>

namespace splash_lu {

Worker::Worker(rma::Runtime& rt, Matrix& matrix, const Method& method)
    : rt_(rt), world_(rt.world()), matrix_(matrix), method_(method) {}

void Worker::get(int rank, std::size_t offset, std::span<double> to) {
  auto& window = matrix_.window();
  const auto before_lock = rt_.now();
  auto epoch = window.lock(method_.lock, rank);
  const auto before_get = rt_.now();
  window.get(to, rank, offset);
  const auto before_unlock = rt_.now();
  epoch.unlock();
  profile_.lock += before_get - before_lock;
  profile_.get += before_unlock - before_get;
  profile_.unlock += rt_.now() - before_unlock;
  ++(world_.shares_memory(rank) ? profile_.locks_same_node : profile_.locks_other_node);
}

const double* Worker::fetch(std::size_t i, std::size_t j, double* buffer) {
  if (matrix_.mine(i, j)) return matrix_.block(i, j);
  const auto [rank, offset] = matrix_.place_of(i, j);
  const std::size_t rows = matrix_.shape().extent(i);
  const std::size_t columns = matrix_.shape().extent(j);
  if (method_.granularity == Granularity::block) {
    get(rank, offset, std::span(buffer, rows * columns));
  } else {
    for (std::size_t row = 0; row < rows; ++row) {
      get(rank, offset + row * columns, std::span(buffer + row * columns, columns));
    }
  }
  return buffer;
}

void Worker::barrier() {
  const auto begin = rt_.now();
  matrix_.window().sync();
  world_.barrier();
  profile_.barrier += rt_.now() - begin;
}

void Worker::charge(std::size_t flops) {
  const double ns = static_cast<double>(flops) / method_.flops_per_ns;
  rt_.compute(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
}

Panels::Panels(Worker& worker)
    : worker_(worker), left_(worker.matrix().shape().blocks()), above_(worker.matrix().shape().blocks()) {
  // A block for every block row and every block column of this rank.
  const Matrix& matrix = worker.matrix();
  const std::size_t blocks = matrix.shape().blocks();
  const std::size_t most = (blocks / matrix.grid().rows() + 1) + (blocks / matrix.grid().columns() + 1);
  buffer_.resize(most * matrix.shape().b * matrix.shape().b);
}

void Panels::fetch(std::size_t k, std::size_t first) {
  Matrix& matrix = worker_.matrix();
  const std::size_t blocks = matrix.shape().blocks();
  const std::size_t block_size = matrix.shape().b * matrix.shape().b;
  const std::size_t first_row = matrix.first_row(first);
  const std::size_t first_column = matrix.first_column(first);
  if (first_row >= blocks || first_column >= blocks) return;  // no block of ours is left

  double* buffer = buffer_.data();
  for (std::size_t i = first_row; i < blocks; i += matrix.grid().rows()) {
    if (i == k) continue;
    left_[i] = worker_.fetch(i, k, buffer);
    buffer += block_size;
  }
  for (std::size_t j = first_column; j < blocks; j += matrix.grid().columns()) {
    if (j == k) continue;
    above_[j] = worker_.fetch(k, j, buffer);
    buffer += block_size;
  }
}

}  // namespace splash_lu
