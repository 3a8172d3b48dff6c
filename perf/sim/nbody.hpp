// SPDX-License-Identifier: Apache-2.0
/// \file
/// The work of ranks when particles change their domains: they pack those that leave, and put them to their new ranks.
#pragma once

#include <string>
#include <string_view>

#include "particles.hpp"
#include "rma/sim_pattern.hpp"

namespace perf {

/// Where all wait until memory for what comes is ready everywhere.
enum class barrier_at { before_pack, after_pack };

/// In which order a rank puts.
enum class put_order {
  ascending,  ///< rank 0 first
  next,       ///< the ranks after its own first, then round
};

struct nbody_choice {
  /// T_pack, of a particle. Measured with two processes' worth of packing at a time on two cores of an AMD EPYC, with
  /// particles that are not in a cache: the median of nine, which went from 16 to 265 ns; one alone takes 50.
  double pack_ns = 100;
  put_order order = put_order::ascending;
  /// Barrier before the packing: the particles for a rank are put as soon as they are packed, while those for the next
  /// are being packed. With the barrier behind it no put may leave before all is packed; the same if this is set.
  bool pack_all_first = false;
};

/// The phases of the outcome: "barrier", "pack", "put".
rma::sim::PatternOutcome simulate_exchange(const rma::sim::Config& machine, const exchange& of, barrier_at where,
                                           rma::sim::IntraNode intra_node, const nbody_choice& chosen);

}  // namespace perf
