// SPDX-License-Identifier: Apache-2.0
// Goal: of the threads of one rank that go to sleep, each is woken by a ring that came after it armed the doorbell.
// Method: the orders of arming, ringing and sleeping in which another thread takes the ring away, step by step; a sleep
// that misses its ring lasts until its end, which is far longer than the rest.
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "fabric/shm/node.hpp"
#include "fabric/shm/node_platform.hpp"

using namespace rma;
using namespace rma::shm;
using namespace rma::shm::test;

namespace {

constexpr std::int64_t long_ns = 20'000'000'000;

/// True if the sleep ended before its time.
bool wakes(node_platform& around, std::uint32_t armed) {
  const std::int64_t begin_ns = around.now_ns();
  around.sleep(armed, long_ns);
  return around.now_ns() - begin_ns < long_ns / 2;
}

}  // namespace

TEST_CASE("a ring is not lost when another thread arms the doorbell after it", "[fabric][shm][surroundings]") {
  lone_board alone;
  node_platform around(*alone.node, {1, 1});
  const std::uint32_t first = around.arm(false);
  around.ring(0);
  const std::uint32_t second = around.arm(false);
  CHECK(wakes(around, first));
  std::thread other([&] { around.sleep(second, long_ns); });
  const std::uint32_t third = around.arm(false);
  around.ring(0);
  CHECK(wakes(around, third));
  other.join();
}

// Goal: news for a waiting program leaves a thread that only serves asleep; but not once the program sleeps, too, in
// whatever order the two go to sleep.
// Break: leave the doorbell as the serving thread armed it.
TEST_CASE("news for who waits does not wake who serves", "[fabric][shm][surroundings]") {
  lone_board alone;
  node_platform around(*alone.node, {1, 1});
  word32& bell = alone.node->slot(0).doorbell;
  const std::uint32_t serving = around.arm(true);
  alone.node->ring_waiters(0);
  CHECK(bell.load() == serving);
  std::thread server([&] { around.sleep(serving, long_ns); });
  const std::uint32_t waiting = around.arm(false);
  CHECK(bell.load() != serving);
  CHECK(around.arm(true) == bell.load());
  alone.node->ring_waiters(0);
  CHECK(bell.load() == 0);
  CHECK(wakes(around, waiting));
  server.join();
  (void)around.arm(true);
  alone.node->ring_doorbell(0);
  CHECK(bell.load() == 0);
}

TEST_CASE("a ring that another thread took from the descriptors is not lost", "[fabric][shm][surroundings]") {
  lone_board alone;
  node_platform around(*alone.node, {1, 1});
  const int quiet = ::eventfd(0, EFD_CLOEXEC);
  REQUIRE(quiet >= 0);
  around.watch(quiet);
  const std::uint32_t first = around.arm(false);
  const std::uint32_t second = around.arm(false);
  std::thread other([&] { around.sleep(second, long_ns); });
  around.ring(0);
  other.join();
  CHECK(wakes(around, first));
  ::close(quiet);
}

TEST_CASE("all threads of a rank are woken, whichever watches the descriptors", "[fabric][shm][surroundings]") {
  lone_board alone;
  node_platform around(*alone.node, {1, 1});
  const int quiet = ::eventfd(0, EFD_CLOEXEC);
  REQUIRE(quiet >= 0);
  around.watch(quiet);
  std::atomic<int> slept = 0;
  std::atomic<bool> news = false;
  const auto wait = [&] {
    while (!news.load()) {
      const std::uint32_t armed = around.arm(false);
      if (news.load()) break;
      slept.fetch_add(1);
      around.sleep(armed, long_ns);
    }
  };
  const std::int64_t begin_ns = around.now_ns();
  std::thread a(wait);
  std::thread b(wait);
  std::thread c(wait);
  while (slept.load() < 3) std::this_thread::yield();
  news.store(true);
  detail::full_fence();
  around.ring(0);
  a.join();
  b.join();
  c.join();
  CHECK(around.now_ns() - begin_ns < long_ns / 2);
  ::close(quiet);
}
