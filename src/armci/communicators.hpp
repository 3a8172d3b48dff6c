// SPDX-License-Identifier: Apache-2.0
/// \file
/// Communicators of groups. Code that is compiled once for all MPIs stores them as numbers.
#pragma once

#include <cstring>
#include <span>

#include "armci/job.hpp"
#include "armci/state.hpp"
#ifndef RMA_ARMCI_NO_MPI
#include "mpi_job/mpi_job.hpp"
#endif

namespace rma::armci {

#ifdef RMA_ARMCI_NO_MPI
inline std::uint64_t create_communicator(state&, const group_state&, std::span<const int>) { return 0; }
inline std::uint64_t split_communicator(state&, const group_state&, int, int) { return 0; }
inline void free_communicator(group_state&) {}
#else
/// MPI_COMM_NULL where rmarun has started the processes.
inline MPI_Comm communicator_of(const group_state& group) noexcept {
  if (group.communicator == 0) return MPI_COMM_NULL;
  MPI_Comm comm;
  std::memcpy(&comm, &group.communicator, sizeof comm);
  return comm;
}

/// Collective over the parent.
inline std::uint64_t create_communicator(state&, const group_state& parent, std::span<const int> members) {
  if (parent.communicator == 0) return 0;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm_group(communicator_of(parent), &all);
  MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
  MPI_Comm_create(communicator_of(parent), some, &made);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return mpi_job::number_of(made);
}

inline std::uint64_t split_communicator(state&, const group_state& parent, int color, int key) {
  if (parent.communicator == 0) return 0;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(communicator_of(parent), color < 0 ? MPI_UNDEFINED : color, key, &made);
  return mpi_job::number_of(made);
}

inline void free_communicator(group_state& group) {
  MPI_Comm comm = communicator_of(group);
  int is_over = 0;
  MPI_Finalized(&is_over);
  if (is_over == 0 && comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}
#endif

}  // namespace rma::armci
