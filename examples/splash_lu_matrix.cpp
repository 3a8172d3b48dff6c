// SPDX-License-Identifier: Apache-2.0
#include "splash_lu_matrix.hpp"

namespace splash_lu {

namespace {

/// How many of first, first + step, ... lie below `end`.
std::size_t count_below(std::size_t end, std::size_t first, std::size_t step) noexcept {
  return first < end ? (end - first + step - 1) / step : 0;
}

/// The first number from `from` on that is `remainder` modulo `step`.
std::size_t next_congruent(std::size_t from, std::size_t remainder, std::size_t step) noexcept {
  return from + (remainder + step - from % step) % step;
}

/// Room for at least one element: a rank may have no block, but it has a part of the window.
std::size_t room_of(const Shape& shape, const Grid& grid, int rank) noexcept {
  const std::size_t rows = count_below(shape.blocks(), grid.row_of(rank), grid.rows());
  const std::size_t columns = count_below(shape.blocks(), grid.column_of(rank), grid.columns());
  return std::max<std::size_t>(rows * columns * shape.b * shape.b, 1);
}

}  // namespace

Grid::Grid(int ranks) noexcept : rows_(1), columns_(static_cast<std::size_t>(ranks)) {
  const std::size_t count = columns_;
  for (std::size_t rows = 2; rows * rows <= count; ++rows) {
    if (count % rows == 0) rows_ = rows;
  }
  columns_ = count / rows_;
}

Matrix::Matrix(const rma::Team& team, Shape shape)
    : shape_(shape),
      grid_(team.size()),
      rank_(team.rank()),
      window_(rma::Window<double>::allocate(team, room_of(shape, grid_, rank_),
                                            {.name = "matrix", .lock = "auto:deferred"})),
      data_(window_.data()) {
  generate(data_);
  window_.sync();
}

std::size_t Matrix::columns_of(int rank) const noexcept {
  return count_below(shape_.blocks(), grid_.column_of(rank), grid_.columns());
}

Matrix::Place Matrix::place_of(std::size_t i, std::size_t j) const noexcept {
  const int rank = grid_.owner(i, j);
  const std::size_t slot = i / grid_.rows() * columns_of(rank) + j / grid_.columns();
  return {rank, slot * shape_.b * shape_.b};
}

std::size_t Matrix::first_row(std::size_t from) const noexcept {
  return next_congruent(from, grid_.row_of(rank_), grid_.rows());
}

std::size_t Matrix::first_column(std::size_t from) const noexcept {
  return next_congruent(from, grid_.column_of(rank_), grid_.columns());
}

void Matrix::generate(double* blocks) const {
  const std::size_t count = shape_.blocks();
  for (std::size_t i = first_row(0); i < count; i += grid_.rows()) {
    for (std::size_t j = first_column(0); j < count; j += grid_.columns()) {
      double* to = blocks + place_of(i, j).offset;
      for (std::size_t row = 0; row < shape_.extent(i); ++row) {
        for (std::size_t column = 0; column < shape_.extent(j); ++column) {
          *to++ = element(shape_, i * shape_.b + row, j * shape_.b + column);
        }
      }
    }
  }
}

double element(const Shape& shape, std::size_t row, std::size_t column) noexcept {
  // splitmix64 of the element's number.
  std::uint64_t x = (row * shape.n + column + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-53 + (row == column ? static_cast<double>(shape.n) : 0.0);
}

}  // namespace splash_lu
