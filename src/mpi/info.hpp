// SPDX-License-Identifier: Apache-2.0
/// \file
/// An MPI_Info says this about a window, as far as it means something here.
#pragma once

#include <cstddef>

#include "mpi/state.hpp"

namespace rma::mpi {

/// MPI wants the same on all ranks of a window.
struct window_info {
  bool no_locks = false;              ///< lock and lock_all are mistakes
  bool same_disp_unit = false;        ///< the ranks need not tell each other their units
  bool noncontiguous = false;         ///< parts of a shared window need not lie one behind the other
  std::size_t granularity_bytes = 0;  ///< Hints::accumulate_granularity
};

window_info info_of(MPI_Info info);

}  // namespace rma::mpi
