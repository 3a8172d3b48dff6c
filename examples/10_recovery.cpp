// SPDX-License-Identifier: Apache-2.0
/// \file
/// A job that survives the death of a rank. Each rank works on parts of a sum, and gives the rank on its right a copy
/// of them before each step. A rank that finds that it cannot go on revokes the team, so that nobody waits for it any
/// more; the survivors shrink the team, the dead rank's right neighbor takes its parts over, and all go on. The sum is
/// what it would have been. (Of two neighbors that die together one's parts are lost.)
///
/// \code
/// rmarun -n 4 --keep-going 10_recovery 1       # world rank 1 kills itself on the way
/// \endcode

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <rma/rma.hpp>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace {

constexpr int steps = 200;
constexpr std::size_t parts_max = 64;  // parts of one rank
constexpr unsigned copy_is_there = 0, copy_is_taken = 1;

struct Part {
  std::int64_t next_step;
  std::int64_t sum;
  std::int64_t number;  // counted from 1; 0: there is none
};

using Parts = std::vector<Part>;

/// The parts of a rank, and its copies of those of the rank on its left.
struct State {
  Parts mine;
  Parts of_left;
};

void advance(Parts& parts) {
  for (Part& part : parts) {
    if (part.number == 0 || part.next_step == steps) continue;
    part.sum += part.number * part.next_step;
    ++part.next_step;
  }
}

/// Gives the rank on the right a copy of this rank's parts, and takes one from the left. Nobody overwrites a copy that
/// has not been taken.
void exchange_copies(rma::Window<Part>& window, State& state, int left, int right) {
  auto epoch = window.lock_all();
  window.put_signal(std::span<const Part>(state.mine), right, 0, copy_is_there);
  window.wait_signal(copy_is_there, 1, left);
  state.of_left.assign(window.local().begin(), window.local().end());
  window.put_signal(std::span<const Part>(), left, 0, copy_is_taken);
  window.wait_signal(copy_is_taken, 1, right);
}

std::int64_t steps_left(const Parts& parts) {
  std::int64_t most = 0;
  for (const Part& part : parts)
    if (part.number != 0) most = std::max(most, steps - part.next_step);
  return most;
}

/// All that is left to do, and the sum of all parts. Throws when a rank has died.
std::int64_t finish(rma::Team& team, State& state, bool dies) {
  const int left = (team.rank() + team.size() - 1) % team.size();
  const int right = (team.rank() + 1) % team.size();
  auto window = rma::Window<Part>::allocate(team, parts_max, {.signals = 2});
  for (auto rounds = team.allreduce(steps_left(state.mine), rma::max); rounds > 0; --rounds) {
    exchange_copies(window, state, left, right);
    if (dies && rounds == steps / 2) std::raise(SIGKILL);
    advance(state.mine);
  }
  std::int64_t sum = 0;
  for (const Part& part : state.mine) sum += part.sum;
  return team.allreduce(sum, rma::sum);
}

/// The team of the survivors. The parts of a rank that is not in it are now this one's, if it was the one on the left.
rma::Team recover(rma::Team& team, State& state) {
  const int left = team.world_rank((team.rank() + team.size() - 1) % team.size());
  team.revoke();
  rma::Team rest = team.shrink();
  if (rest.rank_of(left) >= 0) return rest;
  auto free = state.mine.begin();
  for (const Part& part : state.of_left) {
    while (part.number != 0 && free->number != 0) ++free;
    if (part.number != 0) *free = part;
  }
  return rest;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const bool dies = argc > 1 && std::atoi(argv[1]) == rt.rank() && rt.size() > 1;
  rma::Team team = rt.world();
  State state{Parts(parts_max), Parts(parts_max)};
  state.mine[0].number = rt.rank() + 1;
  std::int64_t sum = 0;
  for (bool over = false; !over;) {
    try {
      sum = finish(team, state, dies);
      over = true;
    } catch (const rma::Error& e) {
      if (e.code() != rma::status::peer_failed && e.code() != rma::status::revoked) throw;
      team = recover(team, state);
    }
  }
  const std::int64_t expected = std::int64_t{rt.size()} * (rt.size() + 1) / 2 * (steps * (steps - 1) / 2);
  if (team.rank() == 0)
    fmt::print("{} of {} ranks have finished: the sum is {}\n", team.size(), rt.size(),
               sum == expected ? "right" : "wrong");
  return sum == expected ? 0 : 1;
}
