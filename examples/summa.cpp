// SPDX-License-Identifier: Apache-2.0
/// \file
/// SUMMA, a matrix product C = A B with one-sided gets, as in the dissertation's chapters 8 and 9. Matrices lie in
/// blocks on a rectangle of ranks. Each rank computes its block of C from chunks of A and B, which it gets from their
/// owners; a chunk of A is a part of the columns of a block, so that its get is strided.
///
/// \code
/// rmarun -n 4 summa -n 512 --chunk 128 --method nonblocking
/// RMA_LAYOUT=host-assisted rmarun -n 4 --nodes 2 summa -n 512
/// \endcode
/// The result is checked against a plain product: the exit status is 1 if an element is further off than 1e-12.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "command_line.hpp"

namespace {

constexpr double error_limit = 1e-12;

/// C has m x n elements, A m x k.
struct Options {
  std::size_t m = 0, n = 256, k = 0;
  std::size_t chunk = 128;
  bool blocking = false;
  double flops_per_ns = 4;
};

/// Part i of `parts` of [0, whole) begins here.
constexpr std::size_t first_of(std::size_t i, std::size_t parts, std::size_t whole) { return whole * i / parts; }
/// The part that `at` lies in.
constexpr std::size_t part_of(std::size_t at, std::size_t parts, std::size_t whole) {
  return ((at + 1) * parts - 1) / whole;
}

double a_at(std::size_t i, std::size_t j) { return static_cast<double>((7 * i + 3 * j) % 17) / 16 - .5; }
double b_at(std::size_t i, std::size_t j) { return static_cast<double>((5 * i + 11 * j) % 19) / 16 - .5; }

/// Ranks as a rectangle, as near to a square as their number allows, and this one's place.
struct Grid {
  explicit Grid(const rma::Team& team) {
    const auto ranks = static_cast<std::size_t>(team.size());
    for (rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(ranks))); ranks % rows != 0;) --rows;
    columns = ranks / rows;
    row = static_cast<std::size_t>(team.rank()) / columns;
    column = static_cast<std::size_t>(team.rank()) % columns;
  }
  [[nodiscard]] int rank_at(std::size_t at_row, std::size_t at_column) const {
    return static_cast<int>(at_row * columns + at_column);
  }
  std::size_t rows, columns, row = 0, column = 0;
};

/// A matrix in blocks, row after row in each.
class Matrix {
 public:
  Matrix(const rma::Team& team, const Grid& grid, std::size_t rows, std::size_t columns)
      : grid_(grid),
        rows_(rows),
        columns_(columns),
        window_(rma::Window<double>::allocate(team, height(grid.row) * width(grid.column))) {}

  template <class Element>
  void fill(Element element) {
    const std::size_t w = width(grid_.column), top = top_of(grid_.row), left = left_of(grid_.column);
    for (std::size_t i = 0; i < height(grid_.row); ++i) {
      for (std::size_t j = 0; j < w; ++j) window_[i * w + j] = element(top + i, left + j);
    }
  }
  [[nodiscard]] std::size_t top_of(std::size_t row) const { return first_of(row, grid_.rows, rows_); }
  [[nodiscard]] std::size_t left_of(std::size_t column) const { return first_of(column, grid_.columns, columns_); }
  [[nodiscard]] std::size_t height(std::size_t row) const { return top_of(row + 1) - top_of(row); }
  [[nodiscard]] std::size_t width(std::size_t column) const { return left_of(column + 1) - left_of(column); }
  /// The first column (row) after `at` that another column (row) of the grid has.
  [[nodiscard]] std::size_t columns_end(std::size_t at) const {
    return left_of(part_of(at, grid_.columns, columns_) + 1);
  }
  [[nodiscard]] std::size_t rows_end(std::size_t at) const { return top_of(part_of(at, grid_.rows, rows_) + 1); }

  /// Starts the get of columns [from, end) of this rank's rows: `end - from` elements of each.
  rma::Request get_columns(std::size_t from, std::size_t end, std::vector<double>& to) {
    const std::size_t owner = part_of(from, grid_.columns, columns_), rows = height(grid_.row);
    to.resize(rows * (end - from));
    const auto taken = rma::Layout::vector<double>(rows, end - from, static_cast<std::ptrdiff_t>(width(owner)));
    return window_.rget(to.data(), rma::Layout::contiguous<double>(to.size()), grid_.rank_at(grid_.row, owner),
                        from - left_of(owner), taken);
  }
  /// The same of rows [from, end) of this rank's columns.
  rma::Request get_rows(std::size_t from, std::size_t end, std::vector<double>& to) {
    const std::size_t owner = part_of(from, grid_.rows, rows_), columns = width(grid_.column);
    to.resize(columns * (end - from));
    return window_.rget(std::span(to), grid_.rank_at(owner, grid_.column), (from - top_of(owner)) * columns);
  }
  [[nodiscard]] rma::Window<double>& window() { return window_; }

 private:
  Grid grid_;
  std::size_t rows_, columns_;
  rma::Window<double> window_;
};

/// Columns of A and rows of B, from their owners.
struct Chunk {
  std::size_t depth = 0;
  std::vector<double> a, b;
  std::array<rma::Request, 2> gets;
};

/// c += a b, with m x depth and depth x n elements.
void multiply(std::vector<double>& c, const Chunk& chunk, std::size_t m, std::size_t n) {
  for (std::size_t i = 0; i < m; ++i) {
    double* const to = &c[i * n];
    for (std::size_t p = 0; p < chunk.depth; ++p) {
      const double factor = chunk.a[i * chunk.depth + p];
      const double* const from = &chunk.b[p * n];
      for (std::size_t j = 0; j < n; ++j) to[j] += factor * from[j];
    }
  }
}

/// Computes this rank's block of C.
class Product {
 public:
  Product(rma::Runtime& rt, Matrix& a, Matrix& b, const Grid& grid, const Options& options)
      : rt_(rt), a_(a), b_(b), options_(options), m_(a.height(grid.row)), n_(b.width(grid.column)), c_(m_ * n_) {
    for (std::size_t from = 0; from < options.k;) {
      const std::size_t end = std::min({from + options.chunk, a.columns_end(from), b.rows_end(from), options.k});
      starts_.push_back(from);
      from = end;
    }
    // Ranks begin with different chunks, so that not all ask the same owner at once.
    const std::size_t turn = starts_.size() * static_cast<std::size_t>(rt.rank()) / static_cast<std::size_t>(rt.size());
    ends_.assign(starts_.begin() + 1, starts_.end());
    ends_.push_back(options.k);
    std::rotate(starts_.begin(), starts_.begin() + static_cast<std::ptrdiff_t>(turn), starts_.end());
    std::rotate(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(turn), ends_.end());
  }

  void run() {
    if (m_ == 0 || n_ == 0) return;
    if (!options_.blocking) fetch(0);
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      if (options_.blocking) fetch(i);
      const auto begin = rt_.now();
      rma::wait_all(chunks_[i % 2].gets);
      waited_ += rt_.now() - begin;
      if (!options_.blocking && i + 1 < starts_.size()) fetch(i + 1);
      multiply(c_, chunks_[i % 2], m_, n_);
      const double flops = 2. * static_cast<double>(m_ * n_ * chunks_[i % 2].depth);
      rt_.compute(std::chrono::nanoseconds(static_cast<std::int64_t>(flops / options_.flops_per_ns)));
    }
  }
  [[nodiscard]] const std::vector<double>& c() const { return c_; }
  [[nodiscard]] std::chrono::nanoseconds waited() const { return waited_; }

 private:
  void fetch(std::size_t i) {
    Chunk& chunk = chunks_[i % 2];
    chunk.depth = ends_[i] - starts_[i];
    chunk.gets[0] = a_.get_columns(starts_[i], ends_[i], chunk.a);
    chunk.gets[1] = b_.get_rows(starts_[i], ends_[i], chunk.b);
  }

  rma::Runtime& rt_;
  Matrix &a_, &b_;
  const Options& options_;
  std::size_t m_, n_;
  std::vector<double> c_;
  std::vector<std::size_t> starts_, ends_;
  std::array<Chunk, 2> chunks_;
  std::chrono::nanoseconds waited_{0};
};

/// The largest difference from a plain product of the same elements, which nothing was sent for.
double error_of(const std::vector<double>& c, const Matrix& a, const Matrix& b, const Grid& grid, std::size_t k) {
  const std::size_t m = a.height(grid.row), n = b.width(grid.column);
  const std::size_t top = a.top_of(grid.row), left = b.left_of(grid.column);
  std::vector<double> row(n);
  double error = 0;
  for (std::size_t i = 0; i < m; ++i) {
    std::fill(row.begin(), row.end(), 0.);
    for (std::size_t p = 0; p < k; ++p) {
      for (std::size_t j = 0; j < n; ++j) row[j] += a_at(top + i, p) * b_at(p, left + j);
    }
    for (std::size_t j = 0; j < n; ++j) error = std::max(error, std::abs(c[i * n + j] - row[j]));
  }
  return error;
}

std::optional<int> read_options(rma::Runtime& rt, int argc, char** argv, Options& options) {
  CLI::App app(
      "SUMMA: a product of matrices, parts of which ranks get from each other.\n"
      "Start it with rmarun: rmarun -n 4 summa -n 512",
      "summa");
  std::string method = "nonblocking";
  app.set_help_flag("-h,--help", "This text");
  const auto size = [&app](const char* name, std::size_t& value, const char* what) {
    app.add_option(name, value, what)->check(CLI::Range(1, 1 << 16))->type_name("N");
  };
  size("-n", options.n, "Columns of B and C (256)");
  size("-m", options.m, "Rows of A and C (as -n)");
  size("-k", options.k, "Columns of A, rows of B (as -n)");
  size("--chunk", options.chunk, "Columns of A that one get takes at most (128)");
  app.add_option("--method", method, "When a chunk is asked for: when it is needed, or while the one before is used")
      ->check(CLI::IsMember({"blocking", "nonblocking"}))
      ->capture_default_str();
  app.add_option("--gflops", options.flops_per_ns, "Speed of a simulated processor (nothing elsewhere)")
      ->check(CLI::Range(1e-3, 1e6))
      ->capture_default_str();
  if (const auto leave = example::parse(app, rt, argc, argv)) return leave;
  options.blocking = method == "blocking";
  if (options.m == 0) options.m = options.n;
  if (options.k == 0) options.k = options.n;
  return std::nullopt;
}

int run(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  Options options;
  if (const auto leave = read_options(rt, argc, argv, options)) return *leave;

  rma::Team world = rt.world();
  const Grid grid(world);
  Matrix a(world, grid, options.m, options.k), b(world, grid, options.k, options.n);
  a.fill(a_at);
  b.fill(b_at);
  Product product(rt, a, b, grid, options);

  world.barrier();
  auto epoch_a = a.window().lock_all();
  auto epoch_b = b.window().lock_all();
  const auto begin = rt.now();
  product.run();
  world.barrier();
  const auto time = rt.now() - begin;
  epoch_b.unlock();
  epoch_a.unlock();

  const auto us = [](std::chrono::nanoseconds t) { return std::chrono::duration<double, std::micro>(t).count(); };
  const double waited_us = world.allreduce(us(product.waited()), rma::max);
  const double error = world.allreduce(error_of(product.c(), a, b, grid, options.k), rma::max);
  const double flops = 2. * static_cast<double>(options.m) * static_cast<double>(options.n * options.k);
  if (rt.rank() == 0) {
    fmt::print(
        "SUMMA, {}: {} x {} x {} on {} x {} ranks, chunk {}: {:.1f} us, {:.3f} GFLOP/s, waited {:.1f} us at most\n",
        options.blocking ? "blocking" : "nonblocking", options.m, options.k, options.n, grid.rows, grid.columns,
        options.chunk, us(time), flops / (us(time) * 1e3), waited_us);
    fmt::print("largest error {:.1e} (limit {:.0e}): {}\n", error, error_limit,
               error <= error_limit ? "passed" : "failed");
    std::fflush(stdout);
  }
  world.barrier();
  return error <= error_limit ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run("summa", [&] { return run(argc, argv); });
}
