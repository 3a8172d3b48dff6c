// SPDX-License-Identifier: Apache-2.0
#include "splash_lu_kernels.hpp"

namespace splash_lu {

namespace {

/// to[0..count) -= factor * from[0..count)
void subtract_multiple(double* __restrict to, const double* __restrict from, double factor,
                       std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) to[i] -= factor * from[i];
}

/// Two doubles that are computed together: what every 64-bit processor has. (Arrays would do, but not every compiler
/// keeps them in registers.)
using pair = double __attribute__((vector_size(16)));

pair load(const double* from) noexcept { return pair{from[0], from[1]}; }

/// A tile of c that stays in registers while the whole depth passes by.
inline constexpr std::size_t tile = 4;

void bmod_tile(double* __restrict c, const double* __restrict a, const double* __restrict b, std::size_t columns,
               std::size_t depth) noexcept {
  pair sum[tile][tile / 2] = {};
  for (std::size_t k = 0; k < depth; ++k) {
    const pair left = load(b + k * columns);
    const pair right = load(b + k * columns + 2);
    for (std::size_t i = 0; i < tile; ++i) {
      const double factor = a[i * depth + k];
      sum[i][0] += factor * left;
      sum[i][1] += factor * right;
    }
  }
  for (std::size_t i = 0; i < tile; ++i) {
    for (std::size_t j = 0; j < tile; ++j) c[i * columns + j] -= sum[i][j / 2][j % 2];
  }
}

/// The same for the edges, of any size.
void bmod_edge(double* __restrict c, const double* __restrict a, const double* __restrict b, std::size_t rows,
               std::size_t width, std::size_t columns, std::size_t depth) noexcept {
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < depth; ++k) {
      subtract_multiple(c + i * columns, b + k * columns, a[i * depth + k], width);
    }
  }
}

}  // namespace

void lu0(double* d, std::size_t n) noexcept {
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = k + 1; i < n; ++i) {
      d[i * n + k] /= d[k * n + k];
      subtract_multiple(d + i * n + k + 1, d + k * n + k + 1, d[i * n + k], n - k - 1);
    }
  }
}

void bdiv(double* a, const double* d, std::size_t rows, std::size_t n) noexcept {
  for (std::size_t i = 0; i < rows; ++i) {
    double* const row = a + i * n;
    for (std::size_t k = 0; k < n; ++k) {
      row[k] /= d[k * n + k];
      subtract_multiple(row + k + 1, d + k * n + k + 1, row[k], n - k - 1);
    }
  }
}

void bmodd(double* a, const double* d, std::size_t n, std::size_t columns) noexcept {
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = k + 1; i < n; ++i) {
      subtract_multiple(a + i * columns, a + k * columns, d[i * n + k], columns);
    }
  }
}

void bmod(double* c, const double* a, const double* b, std::size_t rows, std::size_t columns,
          std::size_t depth) noexcept {
  const std::size_t tiled_rows = rows / tile * tile;
  const std::size_t tiled_columns = columns / tile * tile;
  for (std::size_t i = 0; i < tiled_rows; i += tile) {
    for (std::size_t j = 0; j < tiled_columns; j += tile) {
      bmod_tile(c + i * columns + j, a + i * depth, b + j, columns, depth);
    }
  }
  bmod_edge(c + tiled_columns, a, b + tiled_columns, tiled_rows, columns - tiled_columns, columns, depth);
  bmod_edge(c + tiled_rows * columns, a + tiled_rows * depth, b, rows - tiled_rows, columns, columns, depth);
}

}  // namespace splash_lu
