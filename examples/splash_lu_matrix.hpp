// SPDX-License-Identifier: Apache-2.0
/// \file
/// A dense matrix cut into blocks, and which rank holds which block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <rma/rma.hpp>

namespace splash_lu {

/// Ranks as a rectangle, as near to a square as their number allows; block (i, j) belongs to the rank at
/// (i mod rows, j mod columns): SPLASH-2's 2-D scatter decomposition.
class Grid {
 public:
  explicit Grid(int ranks) noexcept;

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] int owner(std::size_t i, std::size_t j) const noexcept {
    return static_cast<int>(i % rows_ * columns_ + j % columns_);
  }
  [[nodiscard]] std::size_t row_of(int rank) const noexcept { return static_cast<std::size_t>(rank) / columns_; }
  [[nodiscard]] std::size_t column_of(int rank) const noexcept { return static_cast<std::size_t>(rank) % columns_; }

 private:
  std::size_t rows_;
  std::size_t columns_;
};

/// An n x n matrix of blocks of b x b; the last block of a row or column may be smaller.
struct Shape {
  std::size_t n;
  std::size_t b;
  [[nodiscard]] std::size_t blocks() const noexcept { return (n + b - 1) / b; }
  /// Rows of block row i, and columns of block column i.
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept { return std::min(b, n - i * b); }
};

/// The matrix in a window: each rank's blocks one after another, each block contiguous, its rows in order.
class Matrix {
 public:
  struct Place {
    int rank;
    std::size_t offset;
  };

  /// Collective.
  Matrix(const rma::Team& team, Shape shape);

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] const Grid& grid() const noexcept { return grid_; }
  [[nodiscard]] rma::Window<double>& window() noexcept { return window_; }
  [[nodiscard]] bool mine(std::size_t i, std::size_t j) const noexcept { return grid_.owner(i, j) == rank_; }
  [[nodiscard]] Place place_of(std::size_t i, std::size_t j) const noexcept;
  /// A block of this rank's own.
  [[nodiscard]] double* block(std::size_t i, std::size_t j) noexcept { return data_ + place_of(i, j).offset; }
  /// The first block row (column) from `from` on that this rank has; the next are rows() (columns()) further on.
  [[nodiscard]] std::size_t first_row(std::size_t from) const noexcept;
  [[nodiscard]] std::size_t first_column(std::size_t from) const noexcept;

  /// Writes this rank's blocks of the test matrix into `blocks`, laid out as in the window.
  void generate(double* blocks) const;
  /// Elements of this rank's part.
  [[nodiscard]] std::size_t size() const noexcept { return window_.size(); }

 private:
  [[nodiscard]] std::size_t columns_of(int rank) const noexcept;

  Shape shape_;
  Grid grid_;
  int rank_;
  rma::Window<double> window_;
  double* data_;
};

/// An element of the test matrix: pseudo-random in [0, 1), and n more on the diagonal, so that elimination without
/// pivoting is stable. Each rank can compute any of them.
[[nodiscard]] double element(const Shape& shape, std::size_t row, std::size_t column) noexcept;

}  // namespace splash_lu
