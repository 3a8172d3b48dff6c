// SPDX-License-Identifier: Apache-2.0
/// \file
/// Simulated ranks without a runtime: the world's options, and ranks that compute.
#pragma once

#include "fabric/sim/world.hpp"

namespace rma::test {

inline constexpr sim::time_ps us = 1'000'000;

inline sim::world_options ranks(int n) {
  sim::world_options o;
  o.ranks = n;
  o.machine = sim::load_parameters(sim::default_machine);
  return o;
}

inline void work(sim::world& w, int rank, sim::time_ps for_ps) {
  w.charge(rank, for_ps, sim::activity::compute);
  w.pass_charged_time(rank);
}

}  // namespace rma::test
