// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank that is blocked in a call of MPI looks for messages there all the time. Where the MPI can be made to call
/// this library as it does so, that rank serves others sooner than a thread that has to be woken for each operation.
#pragma once

#include <optional>

#include "rma/rma.hpp"

namespace rma::mpi {

struct state;

/// True if progress of this MPI can call this library: Open MPI 4 lets libraries register with it, MPICH drives UCX.
/// Where it cannot, the progress thread does it all.
[[nodiscard]] bool can_hook_progress() noexcept;

/// From here on, and no more, each eighth round of the MPI's progress is followed by one of the Runtime's.
void hook_progress(state& s) noexcept;
void unhook_progress(state& s) noexcept;

/// A call of MPI that blocks: meanwhile others may count on this rank's progress, where MPI's is hooked.
class blocking_call {
 public:
  blocking_call() noexcept;

 private:
  std::optional<PollingScope> scope_;
};

}  // namespace rma::mpi
