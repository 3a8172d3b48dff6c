// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS CG: the smallest eigenvalue of a sparse matrix by inverse iteration, each step with 25 steps of conjugate
/// gradients (NAS report RNR-94-007, section 2.4). Ranks are a rectangle; each has the part of the matrix in its rows
/// and columns.
///
/// \code
/// rmarun -n 4 nas_cg --class W --form nonblocking
/// \endcode

#include "exchange.hpp"
#include "verification.hpp"

namespace nas {
namespace {

struct Problem {
  std::size_t n, row_entries;
  double shift;
  int steps = 15;
};
constexpr Problem problem_of(char size) { return size == 'S' ? Problem{1400, 7, 10} : Problem{7000, 8, 12}; }

struct Range {
  std::size_t first, end;
  [[nodiscard]] std::size_t size() const { return end - first; }
  [[nodiscard]] bool has(std::size_t i) const { return first <= i && i < end; }
};
constexpr Range part_of(std::size_t i, std::size_t parts, std::size_t n) {
  return {n * i / parts, n * (i + 1) / parts};
}

/// Ranks in rows and columns: as many of both, or twice as many columns.
struct Grid {
  Grid(int me, int ranks, std::size_t n) {
    while (rows * rows * 4 <= static_cast<std::size_t>(ranks)) rows *= 2;
    columns = static_cast<std::size_t>(ranks) / rows;
    row = static_cast<std::size_t>(me) / columns;
    column = static_cast<std::size_t>(me) % columns;
    my_rows = part_of(row, rows, n);
    my_columns = part_of(column, columns, n);
    // This rank's columns are the rows, or half the rows, of the rank that it swaps places with.
    half = columns == rows ? my_rows : part_of(2 * row + column % 2, columns, n);
    swap_with = columns == rows ? rank_at(column, row) : rank_at(column / 2, 2 * row + column % 2);
  }
  [[nodiscard]] int rank_at(std::size_t r, std::size_t c) const { return static_cast<int>(r * columns + c); }
  /// The rank of this row whose column number differs in that bit.
  [[nodiscard]] int across(std::size_t bit) const { return rank_at(row, column ^ bit); }

  std::size_t rows = 1, columns = 1, row, column;
  Range my_rows{}, my_columns{}, half{};
  int swap_with;
};

/// The rows of a sparse matrix, columns ascending.
struct Sparse {
  std::vector<std::size_t> start;
  std::vector<std::uint32_t> column;
  std::vector<double> value;
};

struct Entry {
  std::size_t index;
  double value;
};

/// The next sparse vector: `count` random values at random, different places, and 1/2 at place `own`.
std::vector<Entry> sparse_vector(Random& random, const Problem& p, std::size_t own) {
  std::size_t power = 1;
  while (power < p.n) power *= 2;
  std::vector<Entry> entries;
  const auto at = [&](std::size_t i) {
    return std::find_if(entries.begin(), entries.end(), [i](const Entry& e) { return e.index == i; });
  };
  while (entries.size() < p.row_entries) {
    const double value = random.next();
    const auto i = static_cast<std::size_t>(static_cast<double>(power) * random.next());
    if (i < p.n && at(i) == entries.end()) entries.push_back({i, value});
  }
  if (const auto there = at(own); there != entries.end())
    there->value = .5;
  else
    entries.push_back({own, .5});
  return entries;
}

/// This rank's part of A: the weighted sum of the products of n sparse vectors with themselves, weights from 1 to 0.1,
/// and 0.1 - shift on the diagonal.
Sparse make_matrix(const Problem& p, const Grid& grid) {
  Random random;
  (void)random.next();
  constexpr double condition = .1;
  const double ratio = std::pow(condition, 1. / static_cast<double>(p.n));
  std::vector<std::vector<Entry>> rows(grid.my_rows.size());
  double weight = 1;
  for (std::size_t own = 0; own < p.n; ++own, weight *= ratio) {
    const auto entries = sparse_vector(random, p, own);
    for (const Entry& column : entries) {
      if (!grid.my_columns.has(column.index)) continue;
      for (const Entry& row : entries) {
        if (!grid.my_rows.has(row.index)) continue;
        rows[row.index - grid.my_rows.first].push_back({column.index, row.value * (weight * column.value)});
      }
    }
  }
  Sparse matrix;
  matrix.start.push_back(0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t diagonal = grid.my_rows.first + i;
    if (grid.my_columns.has(diagonal)) rows[i].push_back({diagonal, condition - p.shift});
    std::stable_sort(rows[i].begin(), rows[i].end(), [](const Entry& a, const Entry& b) { return a.index < b.index; });
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      if (k > 0 && rows[i][k].index == rows[i][k - 1].index) {
        matrix.value.back() += rows[i][k].value;
        continue;
      }
      matrix.column.push_back(static_cast<std::uint32_t>(rows[i][k].index - grid.my_columns.first));
      matrix.value.push_back(rows[i][k].value);
    }
    matrix.start.push_back(matrix.value.size());
  }
  return matrix;
}

class Solver {
 public:
  Solver(Run& run, const Problem& p)
      : run_(run),
        p_(p),
        grid_(run.rank(), run.ranks(), p.n),
        a_(make_matrix(p, grid_)),
        exchange_(run, slots()),
        x_(grid_.my_columns.size()),
        z_(x_.size()),
        r_(x_.size()),
        direction_(x_.size()),
        q_(x_.size()),
        w_(grid_.my_rows.size()) {}

  /// Zeta after the steps of the inverse iteration. One step that is not timed comes first.
  double run() {
    std::fill(x_.begin(), x_.end(), 1.);
    (void)step();
    std::fill(x_.begin(), x_.end(), 1.);
    run_.start();
    double zeta = 0;
    for (int i = 0; i < p_.steps; ++i) zeta = step();
    run_.stop();
    return zeta;
  }

 private:
  enum : int { swap_slot, first_slot };  // then two for each bit of the column's number: scalars and vectors

  [[nodiscard]] std::vector<std::size_t> slots() const {
    std::vector<std::size_t> counts = {grid_.my_columns.size() + 1};
    for (std::size_t bit = 1; bit < grid_.columns; bit *= 2) counts.insert(counts.end(), {1, grid_.my_rows.size()});
    for (std::size_t& count : counts) count = run_.world().allreduce(count, rma::max);
    return counts;
  }

  double step() {
    conjugate_gradients();
    const double zeta = p_.shift + 1 / sum(dot(x_, z_));
    const double norm = 1 / std::sqrt(sum(dot(z_, z_)));
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = norm * z_[i];
    return zeta;
  }

  /// z: about A^-1 x.
  void conjugate_gradients() {
    std::fill(z_.begin(), z_.end(), 0.);
    r_ = direction_ = x_;
    double rho = sum(dot(r_, r_));
    for (int turn = 0; turn < 25; ++turn) {
      product();
      const double alpha = rho / sum(dot(direction_, q_));
      for (std::size_t i = 0; i < z_.size(); ++i) {
        z_[i] += alpha * direction_[i];
        r_[i] -= alpha * q_[i];
      }
      const double before = rho;
      rho = sum(dot(r_, r_));
      for (std::size_t i = 0; i < r_.size(); ++i) direction_[i] = r_[i] + rho / before * direction_[i];
      run_.charge(6. * static_cast<double>(r_.size()));
    }
  }

  double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double d = 0;
    for (std::size_t i = 0; i < a.size(); ++i) d += a[i] * b[i];
    run_.charge(2. * static_cast<double>(a.size()));
    return d;
  }

  /// The sum over this row of ranks, which has every column once.
  double sum(double value) {
    int slot = first_slot;
    for (std::size_t bit = 1; bit < grid_.columns; bit *= 2, slot += 2) {
      const int partner = grid_.across(bit);
      exchange_.expect(slot, partner, 1);
      exchange_.send(slot, partner, std::span(&value, 1));
      const double other = *exchange_.receive(slot, partner);
      value += other;
    }
    return value;
  }

  void multiply(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      double y = 0;
      for (std::size_t k = a_.start[i]; k < a_.start[i + 1]; ++k) y += a_.value[k] * direction_[a_.column[k]];
      w_[i] = y;
    }
    run_.charge(2. * static_cast<double>(a_.start[end] - a_.start[first]));
  }

  /// q = A direction: the sum over the row of ranks of their parts of the rows, then swapped to where the columns are.
  void product() {
    const std::size_t offset = grid_.half.first - grid_.my_rows.first, length = grid_.half.size();
    // With twice as many columns as rows a rank needs half of its rows only, and its neighbor the other half.
    const bool halves = grid_.columns != grid_.rows;
    const Range theirs = !halves ? Range{0, w_.size()} : offset == 0 ? Range{length, w_.size()} : Range{0, offset};
    if (grid_.columns > 1) {
      const int partner = grid_.across(1);
      const bool split = run_.form() == Form::nonblocking;  // the first part is on its way while the second is computed
      const std::size_t middle = theirs.first + (split ? theirs.size() / 2 : theirs.size());
      exchange_.expect(first_slot + 1, partner, halves ? length : w_.size());
      multiply(theirs.first, middle);
      exchange_.send(first_slot + 1, partner, std::span(w_).subspan(theirs.first, middle - theirs.first));
      multiply(middle, theirs.end);
      if (split) {
        const std::size_t at = middle - theirs.first;
        exchange_.send(first_slot + 1, partner, std::span(w_).subspan(middle, theirs.end - middle), at);
      }
      if (halves) multiply(offset, offset + length);
      add(exchange_.receive(first_slot + 1, partner, split ? 2 : 1), offset, length);
    } else {
      multiply(0, w_.size());
    }
    int slot = first_slot + 3;
    for (std::size_t bit = 2; bit < grid_.columns; bit *= 2, slot += 2) {
      const int partner = grid_.across(bit);
      exchange_.expect(slot, partner, length);
      exchange_.send(slot, partner, std::span(w_).subspan(offset, length));
      add(exchange_.receive(slot, partner), offset, length);
    }
    if (grid_.swap_with == run_.rank()) {
      std::copy_n(w_.begin() + static_cast<std::ptrdiff_t>(offset), length, q_.begin());
      return;
    }
    exchange_.expect(swap_slot, grid_.swap_with, q_.size());
    exchange_.send(swap_slot, grid_.swap_with, std::span(w_).subspan(offset, length));
    std::copy_n(exchange_.receive(swap_slot, grid_.swap_with), q_.size(), q_.begin());
  }

  void add(const double* from, std::size_t offset, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) w_[offset + i] += from[i];
    run_.charge(static_cast<double>(length));
  }

  Run& run_;
  Problem p_;
  Grid grid_;
  Sparse a_;
  Exchange exchange_;
  std::vector<double> x_, z_, r_, direction_, q_, w_;
};

}  // namespace
}  // namespace nas

int main(int argc, char** argv) {
  return nas::run_kernel(argc, argv, "cg", true, [](nas::Run& run) {
    nas::Solver solver(run, nas::problem_of(run.size()));
    return run.report({solver.run()}, {nas::published::cg(run.size())}, 1e-10);
  });
}
