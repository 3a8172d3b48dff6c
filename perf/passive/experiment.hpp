// SPDX-License-Identifier: Apache-2.0
/// \file
/// The experiments of Santhanaraman's dissertation on passive synchronization (chapters 4 and 5), one file each.
///
/// An experiment is what every rank of a job runs; it hands in the points of its curves. The job is a real one, started
/// by a launcher, or simulated, one for each kind of lock (../passive.cpp).
#pragma once

#include <chrono>
#include <functional>
#include <rma/rma.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perf::passive {

/// A point of a curve. Most experiments have one curve for each kind of lock; others name more of them.
struct value {
  double x = 0;
  double y = 0;
  std::string curve{};
};

/// One rank of a job, as an experiment sees it.
class stage {
 public:
  stage(rma::Runtime& runtime, std::vector<value>& points)
      : runtime_(runtime), world_(runtime.world()), points_(points) {}

  [[nodiscard]] const rma::Team& world() const noexcept { return world_; }
  [[nodiscard]] rma::Team& world() noexcept { return world_; }
  [[nodiscard]] int rank() const noexcept { return world_.rank(); }
  [[nodiscard]] int ranks() const noexcept { return world_.size(); }
  [[nodiscard]] double now_us() const noexcept;
  /// This rank's processor is busy for so long, without a call of the library.
  void compute_us(double time_us) noexcept;
  /// Carries out now the operations of others that need this rank's processor.
  void progress() noexcept { runtime_.progress(); }

  /// Microseconds of what `run` does.
  template <class Run>
  double time_us(Run&& run) {
    const double begin_us = now_us();
    std::forward<Run>(run)();
    return now_us() - begin_us;
  }
  /// The sum of all ranks' numbers. Collective.
  [[nodiscard]] double sum(double mine) { return world_.allreduce(mine, rma::sum); }
  /// Collective in the sense that rank 0's points count.
  void report(double x, double y, std::string_view curve = {}) {
    if (rank() == 0) points_.push_back({x, y, std::string(curve)});
  }

 private:
  rma::Runtime& runtime_;
  rma::Team world_;
  std::vector<value>& points_;
};

/// A job that an experiment is run in.
struct shape {
  int ranks = 2;
  int ranks_per_node = 1;
};

struct experiment {
  std::string_view name;
  std::string_view figure;  ///< figure of the dissertation
  std::string_view title;
  std::string_view x;
  std::string_view y;
  std::vector<shape> jobs;
  void (*run)(stage&);
};

/// All of them, in the order of the dissertation.
std::span<const experiment> experiments();

void lock_put_unlock(stage&);
void lock_get_unlock(stage&);
void put_overlap(stage&);
void get_overlap(stage&);
void put_overlap_operations(stage&);
void get_overlap_operations(stage&);
void receiver_overlap(stage&);
void lu(stage&);
void lu_by_rows(stage&);
void lock_pair(stage&);
void lock_computing(stage&);
void lock_neighbors(stage&);
void lock_contention(stage&);
void lock_ring(stage&);
void lock_migration(stage&);
void task_sharing(stage&);

}  // namespace perf::passive
