// SPDX-License-Identifier: Apache-2.0
// Goal: a thread that sleeps in wait_signal is woken when another thread of its rank sets the signal.
// Method: the doorbell is armed as a thread arms it that goes to sleep; a call that wakes it leaves it idle. A wait
// that nobody wakes would end, too, when it looks for dead ranks, but late. Break: leave out ring_waiters in set_signal
// (src/sync/active.cpp).
#include <catch2/catch.hpp>
#include <cstdint>

#include "fabric/shm/board.hpp"
#include "rma/rma.hpp"
#include "window/window_core.hpp"

using namespace rma;

TEST_CASE("set_signal wakes threads of its rank that sleep for a signal", "[sync][signals]") {
  Runtime runtime(Config{.environment = false});
  Team world = runtime.world();
  const detail::window_plan plan{detail::call::allocate, nullptr, 8, 8, 8};
  detail::window_view* const view = detail::make_window(world, plan, {.signals = 1});
  detail::word32& doorbell = detail::core_of(*view).board->slot(0).doorbell;
  constexpr std::uint32_t idle = 0, first = 1U << shm::doorbell_bits;
  constexpr auto asleep = first | static_cast<std::uint32_t>(shm::doorbell::futex);
  std::uint64_t before = 0;
  SECTION("a thread of the program") {
    doorbell.store(asleep);
    CHECK(detail::set_signal(*view, 0, 7, before) == status::done);
    CHECK(doorbell.load() == idle);
  }
  SECTION("not one that only serves others") {
    doorbell.store(asleep | shm::doorbell_serves);
    CHECK(detail::set_signal(*view, 0, 7, before) == status::done);
    CHECK(doorbell.load() == (asleep | shm::doorbell_serves));
  }
  SECTION("nor by a signal that the window does not have") {
    doorbell.store(asleep);
    CHECK(detail::set_signal(*view, 1, 7, before) == status::bad_argument);
    CHECK(doorbell.load() == asleep);
  }
  doorbell.store(idle);
  CHECK(before == 0);
  CHECK(detail::free_window(view) == status::done);
}
