// SPDX-License-Identifier: Apache-2.0
/// \file
/// All orders in which the ranks of a small world can take their steps, up to a number of preemptions.
///
/// A step ends before an access to a word that ranks share (rma::detail::word), before an operation is posted to the
/// network and before a look at what it has brought: there, and only there, another rank may go on. Without a
/// preemption a rank runs until it waits. A schedule is the list of the steps before which the running rank goes to the
/// end of the queue; the search runs them all, from the empty list on, each in a fresh world. Sequentially consistent:
/// what processors reorder, the litmus tests look for.
///
/// Between nodes the network takes no time, and a preempted rank is away for a little longer than a rank that waits for
/// a lock of the network pauses before it looks again, and for that much longer than those that were preempted before.
///
/// Schedules that come to the same are told from each other by the last preemption alone. If what the rank was about to
/// use is not what the others used while it was away, it could as well have been preempted one step later: that
/// schedule is run, too, and this one is not gone on from.
///
/// Time passes only where everybody waits. Whoever sleeps looks again after 100 ms of it even if nobody wakes him: a
/// world in which that has happened has lost a wake-up.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fabric/sim/world.hpp"
#include "rma/rma.hpp"

namespace rma::explore {

/// The job to be explored. Ranks set up in peace and say when it begins.
struct scenario {
  int ranks = 2;
  int ranks_per_node = 0;    ///< 0: all on one
  unsigned preemptions = 2;  ///< at most
  std::uint64_t runs_max = 1'000'000;
  bool inlined = false;  ///< the inlined halves of calls, too
  bool all = false;      ///< goes on from schedules that come to the same as others, too
  std::map<std::string, std::string> settings{};
};

class explorer;

/// A rank's view.
class player {
 public:
  player(explorer& by, Runtime& runtime) : by_(by), rt(runtime) {}
  /// From here on the order of steps is what the schedule says: after a barrier of all ranks.
  void begin();
  /// From here on this rank is not preempted any more. It comes back when the others have ended, too, but for those
  /// that nobody has woken: so that what it does next wakes none of them.
  void end();
  /// Ends the search with this schedule if `what`, a condition that must hold, does not.
  void check(bool holds, const char* what);

 private:
  explorer& by_;

 public:
  Runtime& rt;
};

struct verdict {
  std::uint64_t runs = 0;
  std::uint64_t equal = 0;      ///< number of these that are equal to others
  std::uint64_t steps_max = 0;  ///< steps of the longest run
  std::string failure;          ///< empty, or what did not hold, with the schedule
};

/// Runs `play` in every rank for each schedule. The first schedule that fails ends it. With EXPLORE_PROGRESS in the
/// environment it says on stderr how far it is; the share of the work left falls with the cube of the steps left.
verdict explore(const scenario& what, const std::function<void(player&)>& play);
/// Runs it in so many schedules that are drawn at random, from this seed on, with any number of preemptions.
verdict explore_at_random(const scenario& what, std::uint64_t seed_first, std::uint64_t runs,
                          const std::function<void(player&)>& play);

}  // namespace rma::explore
