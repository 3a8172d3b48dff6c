// SPDX-License-Identifier: Apache-2.0
// Goal: after a death in a ring of ranks that wait for signals of their left neighbors, those that wait for living
// ranks are told, too: all survivors meet in the shrunken team.
//
// Method: rank 1 kills itself. Its right neighbor is told of it and revokes the team; the others wait for each other.
// Break: leave out the revoke(): all but one wait for ever.
#include <csignal>
#include <cstdio>

#include "rma/rma.hpp"

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team team = rt.world();
  auto win = rma::Window<long>::allocate(team, 1, {.signals = 1});
  team.barrier();
  if (rt.rank() == 1) std::raise(SIGKILL);
  const rma::status ended = win.wait_signal_nothrow(0, 1, (rt.rank() + rt.size() - 1) % rt.size());
  team.revoke();
  rma::Team rest = team.shrink();
  const bool told = ended == (rt.rank() == 2 ? rma::status::peer_failed : rma::status::revoked);
  const int all_told = rest.allreduce(told ? 1 : 0, rma::min);
  if (rest.rank() == 0) std::printf("%d ranks go on%s\n", rest.size(), all_told != 0 ? "" : ", told something else");
}
