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

std::string found_with(mutation broken, model::counts locks = {1, 1, 1, 1}, bool at_network = false) {
  return found(choosing(locks, at_network, true), broken);
}

}  // namespace

TEST_CASE("all states of lock auto of two nodes of two ranks", "[sync][lock_auto]") {
  std::size_t states = 0;
  for (const bool at_network : {false, true}) states += search(choosing({1, 1, 1, 1}, at_network, true));
  states += search(choosing({1, 1, 2, 0}, true, true));
  states += search(choosing({0, 1, 2, 1}, true, false));
  WARN("lock auto: " << states << " states");
  CHECK(states >= 100'000);
}

TEST_CASE("all states of lock auto, two locks each of the other node's ranks, one death", "[.][long]") {
  for (const bool at_network : {false, true}) {
    const std::size_t states = search(choosing({1, 1, 2, 2}, at_network, true), 100'000'000);
    WARN("lock auto, begun at the " << (at_network ? "network: " : "CPU: ") << states << " states");
  }
}

TEST_CASE("the search finds what is broken in lock auto", "[sync][lock_auto][mutation]") {
  CHECK(found_with(mutation::forgotten_waiter) == stuck);
  CHECK(found_with(mutation::grant_to_two) == "two hold it");
  CHECK(found_with(mutation::lost_grant) == stuck);
  CHECK(found_with(mutation::dead_holder_kept) == stuck);
  CHECK(found_with(mutation::hasty_offer, {0, 1, 2, 1}, true) != "");
  CHECK(found_with(mutation::blind_return, {0, 1, 2, 1}, true) != "");
}
