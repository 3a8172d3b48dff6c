// SPDX-License-Identifier: Apache-2.0
// Goal: the ledger decides when a hybrid lock migrates, and what a dead rank left half done is mended.
#include "sync/lock_hybrid.hpp"

#include <catch2/catch.hpp>
#include <cstdint>

#include "sync/lock_network.hpp"
#include "window/lock_experience.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

/// Migrations of a lock that sees bursts of `length` requests from each side in turn.
unsigned migrations(lock_policy policy, std::uint32_t threshold, unsigned length, unsigned bursts) {
  migration_ledger ledger;
  bool at_first_side = true;
  unsigned count = 0;
  for (unsigned b = 0; b < bursts; ++b) {
    for (unsigned i = 0; i < length; ++i) {
      ledger = accounted(ledger, policy, threshold, at_first_side == (b % 2 == 0));
      if (!ledger.migrate) continue;
      at_first_side = !at_first_side;
      ++count;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("policies of migration", "[sync][lock_hybrid]") {
  CHECK(migrations(lock_policy::naive, 0, 1, 1000) == 999);  // every request is of the other side
  CHECK(migrations(lock_policy::threshold, 3, 2, 1000) == 0);
  CHECK(migrations(lock_policy::threshold, 3, 3, 1000) == 999);
  CHECK(migrations(lock_policy::adaptive, 0, 1, 1000) == 0);     // both sides at once: it stays
  CHECK(migrations(lock_policy::adaptive, 0, 6, 1000) <= 99);    // bursts too short to be worth it
  CHECK(migrations(lock_policy::adaptive, 0, 2000, 100) >= 90);  // phases: it follows
  CHECK(migrations(lock_policy::adaptive, 0, 100'000, 1) == 0);  // a burst of its own side
  CHECK(migrations(lock_policy::pattern, 0, 1, 1000) == 0);      // half of the requests: no majority
  CHECK(migrations(lock_policy::pattern, 0, 5, 1000) == 0);
  CHECK(migrations(lock_policy::pattern, 0, 12, 100) == 99);
  CHECK(accounted({}, lock_policy::priority, 0, false).migrate);
  CHECK(accounted({}, lock_policy::adaptive, 0, false, 1).migrate);  // a rank without neighbors
}

TEST_CASE("a lock manager that answers costs nothing, one that is away does", "[sync][lock_hybrid]") {
  lock_experience e;
  CHECK(excess_locks(after_answer(e, 1'000'000, atomics_per_answer(e))) == 0);  // nothing to compare it with
  e = after_atomic(after_atomic(e, 30'000), 10'000);
  e = after_atomic(e, 20'000);
  CHECK(e.atomic_ns == 10'000);
  for (int i = 0; i < 1000; ++i) e = after_answer(e, 25'000, atomics_per_answer(e));
  CHECK(excess_locks(e) == 0);
  lock_experience once = after_answer(e, 5'000'000, atomics_per_answer(e));
  CHECK(excess_locks(once) == excess_once_locks);  // it has neighbors: one absence says little
  for (int i = 0; i < 4; ++i) once = after_answer(once, 25'000, atomics_per_answer(e));
  CHECK(excess_locks(once) == 0);
  for (int i = 0; i < 3; ++i) once = after_answer(once, 60'000, atomics_per_answer(e));
  CHECK(excess_locks(once) >= excess_of_benefit);
  CHECK(excess_locks(found_at(once, lock_place::network)) == 0);
  e.alone = true;
  CHECK(excess_locks(after_answer(e, 5'000'000, atomics_per_answer(e))) == excess_locks_max);
  CHECK(excess_locks(after_answer(e, 130'000, atomics_per_answer(e))) == 5);
  e.writes = true;  // the network's unlock does not wait for them
  CHECK(excess_locks(after_answer(e, 130'000, atomics_per_answer(e))) == 6);
}

TEST_CASE("what the dead left half done", "[sync][lock_hybrid]") {
  // Told to bring the lock to the network word, and dead before: back to CPU mode.
  CHECK(mended(granted_tag(3) | lock_waiters, network_away) == lock_waiters);
  // It had brought it: network mode, nothing to mend.
  CHECK(mended(granted_tag(3), network_hold(3, exclusive)) == granted_tag(3));
  CHECK(mended(granted_tag(3), 0) == granted_tag(3));
  // On the way to CPU mode, still holding the network word: network mode, where its name is found.
  CHECK(mended(migrating_tag(3), network_hold(3, exclusive)) == granted_tag(3));
  // Had left the network word: CPU mode.
  CHECK(mended(migrating_tag(3), network_away) == 0);
  // Holds of the living and of CPU mode stay.
  CHECK(mended(lock_tag(3), network_away) == lock_tag(3));
  CHECK(holder_of(migrating_tag(3) | lock_waiters) == 3);
}
