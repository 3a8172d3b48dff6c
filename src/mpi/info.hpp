// SPDX-License-Identifier: Apache-2.0
/// \file
/// The keys of a window's MPI_Info that have a meaning here.
#pragma once

#include <cstddef>

#include "mpi/state.hpp"

namespace rma::mpi {

/// MPI requires the same values on all ranks of a window.
struct window_info {
  bool no_locks = false;              ///< lock and lock_all are errors
  bool same_disp_unit = false;        ///< the ranks need not exchange their units
  bool noncontiguous = false;         ///< parts of a shared window need not be consecutive
  std::size_t granularity_bytes = 0;  ///< Hints::accumulate_granularity
};

window_info info_of(MPI_Info info);

}  // namespace rma::mpi
