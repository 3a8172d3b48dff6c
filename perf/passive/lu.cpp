// SPDX-License-Identifier: Apache-2.0
// Figures 4.8 and 5.12: what SPLASH LU communicates (examples/splash_lu.cpp is the program itself), with the time of
// its arithmetic but without it. n = 2048 in blocks of 128. A block is fetched by one epoch, or by one for each of its
// rows, which gives about the numbers of locks of table 5.1.
#include <cstdint>
#include <span>
#include <vector>

#include "experiment.hpp"

namespace perf::passive {
namespace {

constexpr int blocks = 16;
constexpr std::size_t block = 128;  // rows and columns
constexpr double flops_per_us = 2000;

/// The 2-D scatter decomposition.
struct grid {
  int rows = 1;
  int columns = 1;
  [[nodiscard]] int owner(int i, int j) const noexcept { return i % rows * columns + j % columns; }
};

grid grid_of(int ranks) noexcept {
  grid g{1, ranks};
  for (int rows = 1; rows * rows <= ranks; ++rows) {
    if (ranks % rows == 0) g = {rows, ranks / rows};
  }
  return g;
}

class factorization {
 public:
  factorization(stage& on, std::size_t rows_per_epoch)
      : on_(on),
        rows_per_epoch_(rows_per_epoch),
        grid_(grid_of(on.ranks())),
        columns_(static_cast<std::size_t>((blocks + grid_.columns - 1) / grid_.columns)),
        window_(rma::Window<double>::allocate(
            on.world(), columns_ * static_cast<std::size_t>((blocks + grid_.rows - 1) / grid_.rows) * block * block)) {}
  ~factorization() { (void)window_.try_free(); }
  factorization(const factorization&) = delete;
  factorization& operator=(const factorization&) = delete;

  void run() {
    constexpr double cube = block * block * block;
    for (int k = 0; k < blocks; ++k) {
      if (mine(k, k)) compute(2 * cube / 3);
      on_.world().barrier();
      perimeter(k, cube);
      on_.world().barrier();
      interior(k, 2 * cube);
    }
    on_.world().barrier();
  }
  /// The migrations of locks between CPU and network that this rank has caused.
  [[nodiscard]] std::uint64_t migrations() const noexcept { return window_.lock_counts().migrations; }
  [[nodiscard]] std::uint64_t locks(bool same_node) const noexcept { return same_node ? near_ : far_; }

 private:
  [[nodiscard]] bool mine(int i, int j) const noexcept { return grid_.owner(i, j) == on_.rank(); }
  void compute(double flops) { on_.compute_us(flops / flops_per_us); }

  void fetch(int i, int j) {
    if (mine(i, j)) return;
    const int owner = grid_.owner(i, j);
    const std::size_t index =
        static_cast<std::size_t>(i / grid_.rows) * columns_ + static_cast<std::size_t>(j / grid_.columns);
    for (std::size_t row = 0; row < block; row += rows_per_epoch_) {
      auto held = window_.lock(rma::exclusive, owner);
      window_.get(std::span(fetched_), owner, index * block * block + row * block);
      held.unlock();
      ++(on_.world().shares_memory(owner) ? near_ : far_);
    }
  }

  void perimeter(int k, double flops) {
    bool fetched = false;
    const auto divide = [&](int i, int j) {
      if (!mine(i, j)) return;
      if (!fetched) fetch(k, k);
      fetched = true;
      compute(flops);
    };
    for (int i = k + 1; i < blocks; ++i) divide(i, k);
    for (int j = k + 1; j < blocks; ++j) divide(k, j);
  }

  /// The blocks left of and above those of this rank, each once, then the products.
  void interior(int k, double flops) {
    std::vector<int> rows;
    std::vector<int> columns;
    for (int i = k + 1; i < blocks; ++i) {
      if (i % grid_.rows == on_.rank() / grid_.columns) rows.push_back(i);
      if (i % grid_.columns == on_.rank() % grid_.columns) columns.push_back(i);
    }
    if (rows.empty() || columns.empty()) return;
    for (const int i : rows) fetch(i, k);
    for (const int j : columns) fetch(k, j);
    compute(flops * static_cast<double>(rows.size() * columns.size()));
  }

  stage& on_;
  std::size_t rows_per_epoch_;
  grid grid_;
  std::size_t columns_;
  rma::Window<double> window_;
  std::vector<double> fetched_ = std::vector<double>(rows_per_epoch_ * block);
  std::uint64_t near_ = 0;
  std::uint64_t far_ = 0;
};

void factor(stage& on, std::size_t rows_per_epoch) {
  factorization with(on, rows_per_epoch);
  on.world().barrier();
  const double took_us = on.time_us([&] { with.run(); });
  const auto near = on.world().allreduce(with.locks(true), rma::sum);
  const auto far = on.world().allreduce(with.locks(false), rma::sum);
  on.report(on.ranks(), took_us);
  on.report(on.ranks(), static_cast<double>(near), "intra-node locks");
  on.report(on.ranks(), static_cast<double>(far), "inter-node locks");
  on.report(on.ranks(), static_cast<double>(on.world().allreduce(with.migrations(), rma::sum)), "migrations");
}

}  // namespace

void lu(stage& on) { factor(on, block); }
void lu_by_rows(stage& on) { factor(on, 1); }

}  // namespace perf::passive
