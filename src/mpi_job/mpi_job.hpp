// SPDX-License-Identifier: Apache-2.0
/// \file
/// A Runtime among the ranks of a communicator and handles as numbers, for ARMCI beside MPI and for MPI's windows. It
/// is a header, since it is compiled for each MPI.
#pragma once

// MPICH's header does not declare its calls as visible outside, as wrappers of them must be.
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include <cstdint>
#include <cstring>
#include <string>

#include "rma/config.hpp"

namespace rma::mpi_job {

/// A handle of MPI as a number: it is a pointer, or an int.
template <class Handle>
std::uint64_t number_of(Handle handle) noexcept {
  static_assert(sizeof(Handle) <= sizeof(std::uint64_t));
  std::uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

/// Broadcasts the string of rank 0 of `comm`.
inline std::string broadcast(MPI_Comm comm, const std::string& of_rank_0) {
  int bytes = static_cast<int>(of_rank_0.size());
  PMPI_Bcast(&bytes, 1, MPI_INT, 0, comm);
  std::string text = of_rank_0;
  text.resize(static_cast<std::size_t>(bytes));
  PMPI_Bcast(text.data(), bytes, MPI_CHAR, 0, comm);
  return text;
}

/// Collective. True if all ranks are on this machine.
inline bool is_one_machine(MPI_Comm comm, int size) {
  MPI_Comm here = MPI_COMM_NULL;
  PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  int together = 0;
  PMPI_Comm_size(here, &together);
  PMPI_Comm_free(&here);
  int fewest = 0;
  PMPI_Allreduce(&together, &fewest, 1, MPI_INT, MPI_MIN, comm);
  return fewest == size;
}

/// The Config of a Runtime among the ranks of `comm`. Collective.
inline Config config_of(MPI_Comm comm) {
  Config how;
  PMPI_Comm_rank(comm, &how.rank);
  PMPI_Comm_size(comm, &how.size);
  how.one_machine = is_one_machine(comm, how.size);
  how.from_rank_0 = [comm](const std::string& text) { return broadcast(comm, text); };
  return how;
}

}  // namespace rma::mpi_job
