// SPDX-License-Identifier: Apache-2.0
// Goal: lock "hybrid" is held by one rank at a time, whatever way each goes and whenever the lock migrates, nobody
// waits for ever, and a death leaves nothing that is not mended. Method: all states of two ranks of the target's node
// and two of another (hybrid_model.hpp), one or two exclusive locks each, one death, under every policy: whether a
// request migrates is a choice of the search.
#include <catch2/catch.hpp>
#include <cstddef>

#include "sync/hybrid_model.hpp"

using namespace rma::test::hybrid;

namespace {

/// One lock each is enough to find what is broken.
std::string found_early(mutation broken, bool at_network = false) {
  return found(beginning({1, 1, 1, 1}, at_network, true), broken);
}

}  // namespace

TEST_CASE("all states of a hybrid lock of two nodes of two ranks", "[sync][lock_hybrid]") {
  std::size_t states = 0;
  for (const bool at_network : {false, true}) states += search(beginning({1, 1, 1, 1}, at_network, true));
  states += search(beginning({1, 2, 1, 1}, false, true));
  states += search(beginning({1, 1, 2, 1}, false, true));
  states += search(beginning({1, 2, 2, 1}, false, false));
  WARN("lock hybrid: " << states << " states");
  CHECK(states >= 100'000);
}

TEST_CASE("all states of a hybrid lock, two locks each, one death", "[.][long]") {
  for (const bool at_network : {false, true}) {
    const std::size_t states = search(beginning({2, 2, 2, 2}, at_network, true), 100'000'000);
    WARN("lock hybrid, begun at the " << (at_network ? "network: " : "CPU: ") << states << " states");
  }
}

TEST_CASE("the search finds what is broken in a hybrid lock", "[sync][lock_hybrid][mutation]") {
  CHECK(found_early(mutation::forgotten_waiter) == stuck);
  CHECK(found_early(mutation::skipped_cpu_lock) == "two hold it");
  CHECK(found_early(mutation::grant_to_two) == "two hold it");
  CHECK(found_early(mutation::lost_grant) == stuck);
  CHECK(found_early(mutation::silent_move) == stuck);
  CHECK(found_early(mutation::dead_holder_kept) == stuck);
  CHECK(found_early(mutation::dead_sleeper) == stuck);
  CHECK(found_early(mutation::skipped_leave, true) != "");
}
