// SPDX-License-Identifier: Apache-2.0
/// \file
/// The null rank, and Cartesian grids of ranks.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "rma/error.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The null rank (MPI_PROC_NULL), for example the neighbor of a rank at the edge of a grid. Window operations with this
/// target, sends to it and receives from it complete at once and do nothing.
inline constexpr int no_rank = -2;

/// A grid of ranks of up to 8 dimensions, in which the last one varies fastest (MPI_Cart_create without reordering). A
/// value: it only computes, and belongs to no team.
///
/// \code
/// const rma::Grid grid(rma::Grid::extents_for(rt.size(), 2), {false, true});
/// win.put(edge, grid.neighbor(rt.rank(), 0, +1), at);   // below the last row: no_rank, the put does nothing
/// \endcode
///
/// Errors     throws Error(bad_argument) for extents below 1, more than 8 extents, or an invalid dimension;
///            bad_rank for a rank outside the grid
class Grid {
  using source = std::source_location;

 public:
  static constexpr std::size_t dimensions_max = 8;  ///< the largest number of dimensions

  /// `periodic` marks the dimensions that wrap around; none if it is empty.
  explicit Grid(std::span<const int> extents, std::span<const bool> periodic = {}, source where = source::current())
      : dimensions_(extents.size()) {
    require(!extents.empty() && extents.size() <= dimensions_max, "a grid has 1 to 8 dimensions", where);
    require(periodic.empty() || periodic.size() == extents.size(), "each dimension is periodic or not", where);
    for (std::size_t d = 0; d < dimensions_; ++d) {
      require(extents[d] >= 1, "each dimension has at least one place", where);
      extents_[d] = extents[d];
      periodic_[d] = !periodic.empty() && periodic[d];
      size_ *= extents[d];
    }
  }
  Grid(std::initializer_list<int> extents, std::initializer_list<bool> periodic, source where = source::current())
      : Grid(std::span<const int>(extents.begin(), extents.size()),
             std::span<const bool>(periodic.begin(), periodic.size()), where) {}
  Grid(std::span<const int> extents, std::initializer_list<bool> periodic, source where = source::current())
      : Grid(extents, std::span<const bool>(periodic.begin(), periodic.size()), where) {}

  /// Balanced extents of a grid of `ranks`, the largest first (MPI_Dims_create).
  [[nodiscard]] static std::vector<int> extents_for(int ranks, std::size_t dimensions,
                                                    source where = source::current()) {
    require(ranks >= 1 && dimensions >= 1 && dimensions <= dimensions_max, "1 rank or more in 1 to 8 dimensions",
            where);
    std::vector<int> extents(dimensions, 1);
    for (std::size_t d = dimensions; d-- > 0;) {  // the last dimension first: the largest factor that is not too large
      for (int each = 1; power_is_at_most(each, d + 1, ranks); ++each) {
        if (ranks % each == 0) extents[d] = each;
      }
      ranks /= extents[d];
    }
    extents[0] *= ranks;
    return extents;
  }

  /// Number of ranks in the grid.
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] std::size_t dimensions() const noexcept { return dimensions_; }
  [[nodiscard]] int extent(std::size_t dimension, source where = source::current()) const {
    require(dimension < dimensions_, "there is no such dimension", where);
    return extents_[dimension];
  }

  /// The coordinates of a rank, one for each dimension; those beyond `dimensions()` are 0.
  [[nodiscard]] std::array<int, dimensions_max> coordinates(int rank, source where = source::current()) const {
    require_rank(rank, where);
    std::array<int, dimensions_max> found{};
    for (std::size_t d = dimensions_; d-- > 0;) {
      found[d] = rank % extents_[d];
      rank /= extents_[d];
    }
    return found;
  }

  /// The rank with these coordinates, which wrap around in periodic dimensions; no_rank outside the grid.
  [[nodiscard]] int rank_at(std::span<const int> coordinates, source where = source::current()) const {
    require(coordinates.size() >= dimensions_, "one coordinate for each dimension", where);
    int rank = 0;
    for (std::size_t d = 0; d < dimensions_; ++d) {
      int at = coordinates[d];
      if (periodic_[d]) at = (at % extents_[d] + extents_[d]) % extents_[d];
      if (at < 0 || at >= extents_[d]) return no_rank;
      rank = rank * extents_[d] + at;
    }
    return rank;
  }
  [[nodiscard]] int rank_at(std::initializer_list<int> coordinates, source where = source::current()) const {
    return rank_at(std::span<const int>(coordinates.begin(), coordinates.size()), where);
  }

  /// The rank `step` positions further in a dimension, or no_rank.
  [[nodiscard]] int neighbor(int rank, std::size_t dimension, int step, source where = source::current()) const {
    require(dimension < dimensions_, "there is no such dimension", where);
    auto at = coordinates(rank, where);
    at[dimension] += step;
    return rank_at(std::span<const int>(at), where);
  }

  /// The adjacent ranks in each dimension, without no_rank: for Neighbors and Window::neighbors.
  [[nodiscard]] std::vector<int> neighbors(int rank, source where = source::current()) const {
    std::vector<int> found;
    for (std::size_t d = 0; d < dimensions_; ++d) {
      for (const int step : {-1, 1}) {
        if (const int there = neighbor(rank, d, step, where); there != no_rank) found.push_back(there);
      }
    }
    return found;
  }

 private:
  static void require(bool holds, const char* rule, const source& where) {
    if (!holds) throw Error(status::bad_argument, std::string("rma::Grid: ") + rule, -1, where);
  }
  void require_rank(int rank, const source& where) const {
    if (rank >= 0 && rank < size_) return;
    throw Error(status::bad_rank,
                "rma::Grid: rank " + std::to_string(rank) + "; its ranks are 0 to " + std::to_string(size_ - 1), rank,
                where);
  }
  static constexpr bool power_is_at_most(long base, std::size_t exponent, long limit) noexcept {
    long power = 1;
    for (std::size_t i = 0; i < exponent; ++i) {
      if (power > limit / base) return false;
      power *= base;
    }
    return true;
  }

  std::array<int, dimensions_max> extents_{};
  std::array<bool, dimensions_max> periodic_{};
  std::size_t dimensions_ = 0;
  int size_ = 1;
};

}  // namespace rma

#pragma GCC visibility pop
