// SPDX-License-Identifier: Apache-2.0
// Goal: lock "auto" is held by one rank at a time, whatever is chosen for each epoch: deferred and sent whole to the
// manager, asked of it, or by the network, and whoever brings the lock to CPU mode; nobody waits for ever, and a death
// leaves nothing that is not mended. Method: all states of two ranks of the target's node and two of another
// (hybrid_model.hpp), one or two exclusive locks each, one death; whatever the library decides by times or by counts is
// a choice of the search.
#include <catch2/catch.hpp>
#include <cstddef>

#include "sync/hybrid_model.hpp"

using namespace rma::test::hybrid;

namespace {

model choosing(model::counts locks, bool at_network, bool deaths) {
  model first = beginning(locks, at_network, deaths);
  first.chooses = true;
  return first;
}

std::string found(mutation broken, model::counts locks = {1, 1, 1, 1}, bool at_network = false) {
  model first = choosing(locks, at_network, true);
  first.broken = broken;
  return rma::test::state_search<model>().run(first).failure;
}

std::size_t search(model::counts locks, bool at_network, bool deaths, std::size_t states_max = 4'000'000) {
  const rma::test::search_result r =
      rma::test::state_search<model>().run(choosing(locks, at_network, deaths), states_max);
  CAPTURE(int{locks[0]}, int{locks[1]}, int{locks[2]}, int{locks[3]}, at_network, deaths, r.states, r.steps);
  CHECK(r.failure == "");
  return r.states;
}

}  // namespace

TEST_CASE("all states of lock auto of two nodes of two ranks", "[sync][lock_auto]") {
  std::size_t states = 0;
  for (const bool at_network : {false, true}) states += search({1, 1, 1, 1}, at_network, true);
  states += search({1, 1, 2, 0}, true, true);
  states += search({0, 1, 2, 1}, true, false);
  WARN("lock auto: " << states << " states");
  CHECK(states >= 100'000);
}

TEST_CASE("all states of lock auto, two locks each of the other node's ranks, one death", "[.][long]") {
  for (const bool at_network : {false, true}) {
    const std::size_t states = search({1, 1, 2, 2}, at_network, true, 100'000'000);
    WARN("lock auto, begun at the " << (at_network ? "network: " : "CPU: ") << states << " states");
  }
}

TEST_CASE("the search finds what is broken in lock auto", "[sync][lock_auto][mutation]") {
  CHECK(found(mutation::forgotten_waiter) == stuck);
  CHECK(found(mutation::grant_to_two) == "two hold it");
  CHECK(found(mutation::lost_grant) == stuck);
  CHECK(found(mutation::dead_holder_kept) == stuck);
  CHECK(found(mutation::hasty_offer, {0, 1, 2, 1}, true) != "");
  CHECK(found(mutation::blind_return, {0, 1, 2, 1}, true) != "");
}
