// SPDX-License-Identifier: Apache-2.0
/// \file
/// Jobs that a cluster's launcher starts: it introduces the ranks, which then have a channel of their own, the same as
/// with `rmarun` and RMA_BOOT=tcp://. So deaths, late questions and leaving mean the same everywhere
/// (docs/decisions/0015-pmix-boot.md).
///
///   launcher -> rank, size, whether all are on one node; process sets on request
///   rank 0: listens, makes a key;  from_rank_0: one value up and down the launcher's tree
///   all: join as with RMA_BOOT=tcp://... or local://...
///   abort -> the launcher, too
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "boot/boot.hpp"

namespace rma::boot {

/// The interface to a launcher that introduces a rank.
class introduction {
 public:
  introduction(const introduction&) = delete;
  introduction& operator=(const introduction&) = delete;
  virtual ~introduction() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// True if all ranks are on this node.
  [[nodiscard]] virtual bool one_node() = 0;
  /// Collective: all ranks get rank 0's text. `timeout_s` is a request to the launcher. Throws Error(bad_boot).
  virtual std::string from_rank_0(const std::string& text, int timeout_s) = 0;
  /// Makes the launcher end all processes of the job. May return.
  virtual void abort(int code, std::string_view message) noexcept = 0;
  /// As of `client`, which passes the questions on.
  [[nodiscard]] virtual std::vector<std::string> process_sets(int /*timeout_s*/) const { return {}; }
  [[nodiscard]] virtual std::vector<int> members_of(const std::string& /*set*/, int /*timeout_s*/) const { return {}; }
  /// Called when this process has left the job.
  virtual void finalize() noexcept {}

 protected:
  introduction() = default;
};

/// By PMIx (Open MPI's mpirun, prterun, Slurm's srun --mpi=pmix). Throws Error(bad_boot) that says what is missing.
std::unique_ptr<introduction> introduce_by_pmix();
/// By PMI-2 (Slurm's srun --mpi=pmi2, MPICH's mpiexec). Throws Error(bad_boot).
std::unique_ptr<introduction> introduce_by_pmi2();
/// By the program itself (Config::from_rank_0), whose ranks can talk to each other already. Throws Error(bad_boot).
std::unique_ptr<introduction> introduce_by_program(const options& how);

/// Joins the job. Throws Error(bad_boot) as `join` does.
std::unique_ptr<client> join_introduced(std::unique_ptr<introduction> by, const options& how);

}  // namespace rma::boot
