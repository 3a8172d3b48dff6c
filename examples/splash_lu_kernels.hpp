// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operations of LU on blocks, by the names of SPLASH-2. Blocks are contiguous, row after row.
#pragma once

#include <cstddef>

namespace splash_lu {

/// d (n x n) becomes its own L (unit diagonal, below it) and U (on and above it).
void lu0(double* d, std::size_t n) noexcept;
/// a (rows x n) = a * inverse of the U in d (n x n): a block below the diagonal one.
void bdiv(double* a, const double* d, std::size_t rows, std::size_t n) noexcept;
/// a (n x columns) = inverse of the L in d (n x n) * a: a block to the right of the diagonal one.
void bmodd(double* a, const double* d, std::size_t n, std::size_t columns) noexcept;
/// c (rows x columns) -= a (rows x depth) * b (depth x columns): an interior block.
void bmod(double* c, const double* a, const double* b, std::size_t rows, std::size_t columns,
          std::size_t depth) noexcept;

}  // namespace splash_lu
