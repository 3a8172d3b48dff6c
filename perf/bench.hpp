// SPDX-License-Identifier: Apache-2.0
/// \file
/// The harness around this library: starts the runtime, gives the session its job.
#pragma once

#include <functional>
#include <rma/rma.hpp>

#include "perf.hpp"

namespace perf {

/// The arguments of a benchmark's body.
struct bench {
  rma::Runtime& runtime;
  rma::Team world;
  session& points;

  [[nodiscard]] int rank() const { return world.rank(); }
  [[nodiscard]] int ranks() const { return world.size(); }
  [[nodiscard]] bool first() const { return world.rank() == 0; }
};

/// The whole main() of a benchmark: a job of at least `ranks` ranks, options, then `measure`, then the last words.
/// An error of one rank ends the job.
int run(int argc, char** argv, const char* summary, int ranks, const std::function<void(bench&)>& measure);

}  // namespace perf
