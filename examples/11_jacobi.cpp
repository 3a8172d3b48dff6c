// SPDX-License-Identifier: Apache-2.0
/// \file
/// Jacobi's method on a square that a 2-D grid of ranks shares. Each step sends the four edges of a block by
/// put_signal; a rank waits for the signals of its neighbors, and for no other rank.
///
/// \code
/// rmarun -n 4 11_jacobi
/// rmarun -n 4 --nodes 2 11_jacobi
/// \endcode

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <rma/rma.hpp>

#include <fmt/format.h>

namespace {

constexpr std::size_t n = 64;  // inner points of each side
constexpr unsigned steps = 200;
constexpr double hot = 100.0;  // the upper border; the others are 0

std::size_t first_of(int place, int places) {
  return n * static_cast<std::size_t>(place) / static_cast<std::size_t>(places);
}

enum Side : unsigned { above, below, before, behind };

/// A rank's block with a border of one point. All ranks have the same row length, so that an edge has the same place in
/// every block. There are two copies: one is read while the other is written.
class Block {
 public:
  explicit Block(rma::Runtime& rt)
      : grid_(rma::Grid::extents_for(rt.size(), 2), {}),
        rank_(rt.rank()),
        row_(grid_.coordinates(rank_)[0]),
        column_(grid_.coordinates(rank_)[1]),
        rows_(rows_of(row_)),
        columns_(columns_of(column_)),
        stride_(n / static_cast<std::size_t>(grid_.extent(1)) + 3),
        points_(stride_ * (n / static_cast<std::size_t>(grid_.extent(0)) + 3)),
        window_(rma::Window<double>::allocate(rt.world(), 2 * points_)) {
    if (row_ != 0) return;
    for (unsigned copy = 0; copy < 2; ++copy) std::fill_n(&window_[at(copy, 0, 0)], columns_ + 2, hot);
  }

  rma::Window<double>& window() { return window_; }

  /// Computes the copy `next` from the other; returns the largest change.
  double relax(unsigned next) {
    const unsigned old = 1 - next;
    double change = 0;
    for (std::size_t i = 1; i <= rows_; ++i) {
      for (std::size_t j = 1; j <= columns_; ++j) {
        const double value = (window_[at(old, i - 1, j)] + window_[at(old, i + 1, j)] + window_[at(old, i, j - 1)] +
                              window_[at(old, i, j + 1)]) /
                             4;
        change = std::max(change, std::abs(value - window_[at(old, i, j)]));
        window_[at(next, i, j)] = value;
      }
    }
    return change;
  }

  /// Sends the edges of this copy, and waits for those of the neighbors.
  void exchange(unsigned copy) {
    const auto row = rma::Layout::vector<double>(1, columns_, 0);
    const auto column = rma::Layout::vector<double>(rows_, 1, static_cast<std::ptrdiff_t>(stride_));
    send(copy, above, row, at(copy, 1, 1), row_ > 0 ? at(copy, rows_of(row_ - 1) + 1, 1) : 0);
    send(copy, below, row, at(copy, rows_, 1), at(copy, 0, 1));
    send(copy, before, column, at(copy, 1, 1), column_ > 0 ? at(copy, 1, columns_of(column_ - 1) + 1) : 0);
    send(copy, behind, column, at(copy, 1, columns_), at(copy, 1, 0));
    for (const Side side : {above, below, before, behind}) {
      if (neighbor(side) >= 0) window_.wait_signal(signal(copy, side), 1, neighbor(side));  // plain loads see the edge
    }
  }

  /// The sum over the points whose two numbers are the same and which are this rank's.
  [[nodiscard]] double diagonal(unsigned copy) const {
    double sum = 0;
    for (std::size_t i = 1; i <= rows_; ++i) {
      const std::size_t point = first_of(row_, grid_.extent(0)) + i, first = first_of(column_, grid_.extent(1));
      if (point > first && point - first <= columns_) sum += window_[at(copy, i, point - first)];
    }
    return sum;
  }

 private:
  [[nodiscard]] std::size_t at(unsigned copy, std::size_t row, std::size_t column) const {
    return copy * points_ + row * stride_ + column;
  }
  [[nodiscard]] std::size_t rows_of(int row) const {
    return first_of(row + 1, grid_.extent(0)) - first_of(row, grid_.extent(0));
  }
  [[nodiscard]] std::size_t columns_of(int column) const {
    return first_of(column + 1, grid_.extent(1)) - first_of(column, grid_.extent(1));
  }
  /// Or no_rank, to which a put does nothing.
  [[nodiscard]] int neighbor(Side side) const {
    return grid_.neighbor(rank_, side == above || side == below ? 0 : 1, side == below || side == behind ? 1 : -1);
  }
  /// A neighbor may be one step ahead, so that steps take turns with the signals as they do with the copies.
  static unsigned signal(unsigned copy, Side side) { return 4 * copy + side; }
  void send(unsigned copy, Side to, const rma::Layout& edge, std::size_t from, std::size_t there) {
    constexpr std::array<Side, 4> seen_from_there{below, above, behind, before};
    window_.put_signal(&window_[from], edge, neighbor(to), there, edge, signal(copy, seen_from_there[to]));
  }

  rma::Grid grid_;
  int rank_, row_, column_;
  std::size_t rows_, columns_;  // inner points
  std::size_t stride_;          // points from one row to the next
  std::size_t points_;          // from one copy to the other
  rma::Window<double> window_;
};

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  Block block(rt);
  world.barrier();

  double change = 0;
  {
    const auto epoch = block.window().lock_all();
    for (unsigned step = 0; step < steps; ++step) {
      const unsigned next = 1 - step % 2;
      change = block.relax(next);
      block.exchange(next);
      block.window().flush_local_all();  // the edges that were sent may be written again
    }
  }

  change = world.allreduce(change, rma::max);
  const double sum = world.allreduce(block.diagonal(steps % 2), rma::sum);
  if (rt.rank() == 0) {
    fmt::print("{} steps on {} x {} points: the last one changes {:.6f} at most, the diagonal sums up to {:.6f}\n",
               steps, n, n, change, sum);
  }
  return 0;
}
