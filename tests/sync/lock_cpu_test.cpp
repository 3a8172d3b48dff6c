// SPDX-License-Identifier: Apache-2.0
// Goal: the word of lock "cpu" keeps what waits beside a hold, and names the heir; an heir that dies, before or after
// the lock was handed over to it, keeps nobody out. Method: the functions of the word by themselves; then simulated
// ranks, of which the heir is killed at each moment around the one at which the lock becomes its own. Break: let
// recover_from look at records only.
#include "sync/lock_cpu.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

using namespace rma;
using namespace rma::detail;
using namespace std::chrono_literals;

namespace {

constexpr int holder = 0, heir = 1, waiter = 2, latecomer = 3;

/// `status` of a lock that is got in the end: nobody may be told of one death twice.
void get_lock(Window<std::uint64_t>& win, lock_kind kind, bool death) {
  status s = win.lock_nothrow(kind, holder);
  if (s == status::peer_failed && death) s = win.lock_nothrow(kind, holder);
  if (s != status::done) throw std::runtime_error("lock: " + std::string(name_of(s)));
}

/// When the heir had the lock, if it got that far. `kind` is what it wants.
std::chrono::nanoseconds play(lock_kind kind, std::chrono::nanoseconds dies) {
  sim::Config job{.ranks = 4};
  job.settings["RMA_LOCK_BYPASSES"] = "0";
  job.limit = 20s;
  const bool death = dies != 0ns;
  if (death) job.kills.push_back({heir, dies});
  std::chrono::nanoseconds got{};
  const auto outcome = sim::run(job, [&](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 2);
    if (rt.rank() == holder) get_lock(win, exclusive, false);
    rt.world().barrier();
    if (rt.rank() == holder) {
      rt.compute(100us);
      win.unlock(holder);
      rt.compute(1s);  // its memory is there for the others
      return;
    }
    if (rt.rank() == waiter) rt.compute(20us);
    if (rt.rank() == latecomer) rt.compute(400ms);
    get_lock(win, rt.rank() == heir ? kind : exclusive, death);
    if (rt.rank() == heir) got = rt.now();
    win.unlock(holder);
  });
  CAPTURE(dies.count());
  INFO(outcome.text());
  CHECK(outcome.ok());
  return got;
}

}  // namespace

TEST_CASE("what is beside a hold in the word", "[sync][lock_cpu]") {
  const std::uint64_t mine = lock_tag(5);
  const std::uint64_t contended = lock_inherited_by(mine, 3) + 2;
  CHECK(lock_heir_of(contended) == 3);
  CHECK((contended & lock_waiters) != 0);
  CHECK(lock_held_as(contended, mine));
  CHECK(!lock_held_as(contended, lock_tag(4)));
  CHECK(!lock_held_as(contended, mine | lock_proxy));
  CHECK(holder_of(contended) == 5);
  CHECK(lock_released(contended, shared) == contended - 1);
  CHECK(lock_heir_of(lock_released(contended, exclusive)) == 3);
  CHECK((lock_released(contended, exclusive) & lock_writer) == 0);
  CHECK((lock_released(contended, exclusive) & lock_readers) == 2);
  CHECK((lock_abandoned(contended) & lock_counted) == 0);
  CHECK((lock_abandoned(contended) & lock_readers) == 2);
  CHECK(lock_heir_of(lock_inherited_by(mine, lock_heir_max - 1)) == static_cast<int>(lock_heir_max) - 1);
  CHECK(lock_held_as(lock_inherited_by(mine, lock_heir_max - 1), mine));
  CHECK(lock_heir_of(lock_handed_over(mine)) == -1);
}

TEST_CASE("an heir may die at any moment", "[sync][lock_cpu][deaths]") {
  for (const lock_kind kind : {exclusive, shared}) {
    const auto got = play(kind, 0ns);
    REQUIRE(got > 0ns);
    for (auto dies = got - 4us; dies < got + 1us; dies += 50ns) (void)play(kind, dies);
    (void)play(kind, got - 60us);  // while the holder computes
  }
}
