// SPDX-License-Identifier: Apache-2.0
// Goal: a barrier lets nobody through before everybody has come, whatever some of them gave up before.
// Method: members of one barrier in one thread; who waits is told at once that somebody is missing.
#include "channel/node_barrier.hpp"

#include <array>
#include <catch2/catch.hpp>

#include "channel/fakes.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

struct members {
  explicit members(std::uint32_t count) : size(count) {
    for (std::uint32_t i = 0; i < size; ++i) all[i].attach(&lines[i], &lines[0], &lines[1 - i % 2], size);
  }
  /// `missing`: what the member is told if it would wait.
  status arrive(std::size_t member, status missing = status::peer_failed) {
    return all[member].arrive_and_wait(
        one.ctx, [] {}, [missing]() noexcept { return missing; });
  }

  rma::test::fake_rank one{0};
  std::uint32_t size;
  std::array<barrier_lines, 4> lines{};
  std::array<node_barrier, 4> all;
};

}  // namespace

TEST_CASE("one member passes always, of several only the last one without waiting", "[channel][node_barrier]") {
  members alone(1);
  CHECK(alone.arrive(0) == status::done);
  CHECK(alone.arrive(0) == status::done);
  members three(3);
  CHECK(three.arrive(0) == status::peer_failed);
  CHECK(three.arrive(1) == status::peer_failed);
  CHECK(three.arrive(2) == status::done);
}

TEST_CASE("who gives up and comes again does not stand in for the missing one", "[channel][node_barrier]") {
  members three(3);  // the third is dead
  CHECK(three.arrive(0) == status::peer_failed);
  CHECK(three.arrive(0) == status::peer_failed);
  CHECK(three.arrive(1) == status::peer_failed);
  CHECK(three.lines[0].release.load() == 0);
}
