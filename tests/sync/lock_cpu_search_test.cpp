// SPDX-License-Identifier: Apache-2.0
// Goal: lock "cpu" keeps writers alone, forgets nobody and goes on after a death: ranks of the target's node take the
// word themselves, readers by their records while it is biased towards them; the target's lock manager takes it for
// others. Method: all states of two ranks each, one or two locks each, of which one may die at any moment
// (cpu_model.hpp).
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "sync/cpu_model.hpp"

using namespace rma;
using namespace rma::test::cpu;

namespace {

test::search_result search(std::uint8_t kinds, std::size_t states_max = 5'000'000) {
  model first;
  first.kinds = kinds;
  return test::state_search<model>().run(first, states_max);
}

/// One rank of the other node is enough to find most of these.
std::string found(std::uint8_t kinds, mutation broken, std::uint8_t locks_of_second = 0) {
  model first;
  first.kinds = kinds;
  first.broken = broken;
  first.locks[3] = locks_of_second;
  return test::state_search<model>().run(first).failure;
}

constexpr std::uint8_t writers = 0b11'11'11'11;
constexpr std::uint8_t mixed = 0b01'10'11'00;  // 0 reads, 1 writes, 2 reads and writes, 3 writes and reads
constexpr const char* stuck = "a state from which the end cannot be reached";
constexpr const char* not_alone = "a writer is not alone";

}  // namespace

TEST_CASE("all states of a lock of the CPU with a lock manager, one or two locks each, one death", "[sync][lock_cpu]") {
  std::size_t states = 0;
  for (const std::uint8_t kinds : {mixed, writers}) {
    const test::search_result r = search(kinds);
    CAPTURE(int{kinds}, r.states, r.steps);
    CHECK(r.failure == "");
    states += r.states;
  }
  WARN("lock cpu: " << states << " states");
  CHECK(states >= 100'000);
}

// The two ranks of the other node are alike, and have one lock each.
TEST_CASE("all states of a lock of the CPU, all kinds of locks", "[.][long]") {
  std::size_t states = 0;
  for (unsigned near = 0; near < 16; ++near) {
    for (const unsigned far : {0b00'00U, 0b01'00U, 0b01'01U}) {
      const test::search_result r = search(static_cast<std::uint8_t>(far << 4 | near), 20'000'000);
      CAPTURE(near, far, r.states, r.steps);
      REQUIRE(r.failure == "");
      states += r.states;
    }
  }
  WARN("lock cpu: " << states << " states, all kinds of locks");
}

TEST_CASE("the search finds what is broken in a lock of the CPU", "[sync][lock_cpu][mutation]") {
  CHECK(found(writers, mutation::forgotten_waiter) == stuck);
  CHECK(found(writers, mutation::careless_wake) == stuck);
  CHECK(found(mixed, mutation::careless_mark) == stuck);
  CHECK(found(mixed, mutation::grant_to_two) == not_alone);
  CHECK(found(writers, mutation::lost_grant, 1) == stuck);
  CHECK(found(mixed, mutation::blind_reader) == not_alone);
  CHECK(found(mixed, mutation::deaf_writer) == not_alone);
  CHECK(found(mixed, mutation::quiet_leaver) == stuck);
  CHECK(found(writers, mutation::dead_holder_kept) == stuck);
  CHECK(found(mixed, mutation::hasty_return, 1) == not_alone);
}
