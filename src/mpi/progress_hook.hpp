// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank that is blocked in a call of MPI polls for messages there all the time. If the MPI can call this library as
/// it does so, that rank serves others sooner than a thread that must be woken for each operation.
#pragma once

#include <optional>

#include "rma/rma.hpp"

namespace rma::mpi {

struct state;

/// True if progress of this MPI can call this library: Open MPI 4 lets libraries register with it, MPICH drives UCX.
/// Otherwise the progress thread does all the work.
[[nodiscard]] bool can_hook_progress() noexcept;

/// Start and stop a round of the Runtime's progress after each eighth round of the MPI's.
void hook_progress(state& s) noexcept;
void unhook_progress(state& s) noexcept;

/// A blocking call of MPI: meanwhile others may rely on this rank's progress, if MPI's is hooked.
class blocking_call {
 public:
  blocking_call() noexcept;

 private:
  std::optional<PollingScope> scope_;
};

}  // namespace rma::mpi
