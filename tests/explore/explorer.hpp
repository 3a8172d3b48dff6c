// SPDX-License-Identifier: Apache-2.0
/// \file
/// All orders in which the ranks of a small world can take their steps, up to a number of preemptions.
///
/// A step ends before an access to a word that ranks share (rma::detail::word): there, and only there, another rank may
/// go on. Without a preemption a rank runs until it waits. A schedule is the list of the steps after which the running
/// rank goes to the end of the queue; the search runs them all, from the empty list on, each in a fresh world.
/// Sequentially consistent: what processors reorder, the litmus tests look for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fabric/sim/world.hpp"
#include "rma/rma.hpp"

namespace rma::explore {

/// What is explored. Ranks set up in peace and say when it begins.
struct scenario {
  int ranks = 2;
  unsigned preemptions = 2;  ///< at most
  std::uint64_t runs_max = 1'000'000;
  std::map<std::string, std::string> settings{};
};

class explorer;

/// A rank's view.
class player {
 public:
  player(explorer& by, Runtime& runtime) : by_(by), rt(runtime) {}
  /// From here on the order of steps is what the schedule says: after a barrier of all ranks.
  void begin();
  /// What must hold: ends the search with this schedule if it does not.
  void check(bool holds, const char* what);

 private:
  explorer& by_;

 public:
  Runtime& rt;
};

struct verdict {
  std::uint64_t runs = 0;
  std::uint64_t steps_max = 0;  ///< of one run
  std::string failure;          ///< empty, or what did not hold, with the schedule
};

/// Runs `play` in every rank for each schedule. The first schedule that fails ends it.
verdict explore(const scenario& what, const std::function<void(player&)>& play);

}  // namespace rma::explore
