// SPDX-License-Identifier: Apache-2.0
/// \file
/// Getting other ranks' blocks, and the account of where the time goes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <rma/rma.hpp>
#include <vector>

#include "splash_lu_matrix.hpp"

namespace splash_lu {

enum class Granularity { block, row };

struct Method {
  rma::lock_kind lock = rma::exclusive;
  Granularity granularity = Granularity::block;
  double flops_per_ns = 4;  ///< speed of the simulator's processors
};

/// Time of one rank by the call it spent it in; what is in none of them is computing (the dissertation's figure 4.9),
/// and its passive epochs by where their target was (table 5.1).
struct Profile {
  std::chrono::nanoseconds lock{};
  std::chrono::nanoseconds get{};
  std::chrono::nanoseconds unlock{};
  std::chrono::nanoseconds barrier{};
  std::chrono::nanoseconds total{};
  std::uint64_t locks_same_node = 0;
  std::uint64_t locks_other_node = 0;

  [[nodiscard]] std::chrono::nanoseconds compute() const { return total - lock - get - unlock - barrier; }
};

/// One rank at work on the matrix: it counts what it does.
class Worker {
 public:
  Worker(rma::Runtime& rt, Matrix& matrix, const Method& method);

  [[nodiscard]] Matrix& matrix() noexcept { return matrix_; }
  [[nodiscard]] const Profile& profile() const noexcept { return profile_; }

  /// Block (i, j) to read from: this rank's own in place, another's copied to `buffer` under its lock.
  const double* fetch(std::size_t i, std::size_t j, double* buffer);
  /// Everybody's stores before it are seen by everybody's gets after it.
  void barrier();
  /// Tells the simulator what was computed.
  void charge(std::size_t flops);

  /// Starts (all at once) and stops the clock of the whole.
  void start() {
    barrier();
    profile_ = {};
    begin_ = rt_.now();
  }
  void stop() { profile_.total += rt_.now() - begin_; }

 private:
  /// One epoch: lock, get, unlock.
  void get(int rank, std::size_t offset, std::span<double> to);

  rma::Runtime& rt_;
  rma::Team world_;
  Matrix& matrix_;
  Method method_;
  Profile profile_;
  std::chrono::nanoseconds begin_{};
};

/// The blocks that one step reads: column k left of, and row k above, the blocks that this rank updates.
class Panels {
 public:
  explicit Panels(Worker& worker);

  /// Fetches what is needed to update this rank's blocks (i, j) with i, j >= first. Block (k, k) is not among it.
  void fetch(std::size_t k, std::size_t first);
  [[nodiscard]] const double* left(std::size_t i) const { return left_[i]; }
  [[nodiscard]] const double* above(std::size_t j) const { return above_[j]; }

 private:
  Worker& worker_;
  std::vector<const double*> left_;
  std::vector<const double*> above_;
  std::vector<double> buffer_;
};

}  // namespace splash_lu
