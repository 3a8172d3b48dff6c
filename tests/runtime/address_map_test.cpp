// SPDX-License-Identifier: Apache-2.0
// From addresses to windows, on any number of ranks.
#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "rma/rma.hpp"

namespace {

struct named {
  rma::Window<std::byte> window;
  int number = 0;
};

/// Whether all bytes of a part that are looked at are found in it, and the owner's first one is where it says.
bool finds_all(const rma::AddressMap& map, named& of, const rma::Team& world) {
  const rma::Team team = of.window.team();
  const auto firsts = rma::Team(team).allgather(reinterpret_cast<std::uintptr_t>(of.window.data()));
  for (int r = 0; r < team.size(); ++r) {
    const int in_world = team.world_rank(r);
    auto* const first = reinterpret_cast<std::byte*>(firsts[static_cast<std::size_t>(r)]);
    if (map.address_of(of.window, in_world) != first) return false;
    for (std::size_t at = 0; at < of.window.size(r); at += 13) {
      const auto place = map.find(in_world, first + at);
      if (place.object != &of || place.target != r || place.at != at) return false;
    }
    if (map.find(in_world, first - 1).object == &of) return false;
  }
  return world.size() > 0;
}

}  // namespace

// Goal: each byte of each part belongs to its window, whatever the members and the lengths of their parts.
// Method: many windows on the world and on halves of it, with parts that are long on one rank and empty on others.
TEST_CASE("every address is found in its window", "[api]") {
  rma::Runtime rt;
  const rma::Team world = rt.world();
  rma::AddressMap map(world);
  const rma::Team half = world.split(world.rank() % 2, -world.rank());
  std::vector<std::unique_ptr<named>> all;
  for (int i = 0; i < 40; ++i) {
    const rma::Team& team = i % 3 == 0 ? half : world;
    const std::size_t bytes = (world.rank() + i) % 4 == 0 ? 0 : static_cast<std::size_t>(1 + i * 100 + world.rank());
    all.push_back(std::make_unique<named>());
    all.back()->number = i;
    all.back()->window = rma::Window<std::byte>::allocate(team, bytes);
    REQUIRE(map.add(all.back()->window, all.back().get()) == rma::status::done);
  }
  CHECK(map.size() == 40);
  for (auto& each : all) CHECK(finds_all(map, *each, world));
  for (std::size_t i = 0; i < all.size(); i += 2) {
    CHECK(map.remove(all[i]->window) == rma::status::done);
    CHECK(map.remove(all[i]->window) == rma::status::bad_argument);
  }
  for (std::size_t i = 1; i < all.size(); i += 2) CHECK(finds_all(map, *all[i], world));
  int here = 0;
  CHECK_FALSE(map.find(world.rank(), &here));
  CHECK_FALSE(map.find(world.size(), all[1]->window.data()));
  CHECK_FALSE(map.find(-1, all[1]->window.data()));
  world.split(0).barrier();
}

TEST_CASE("memory that is not the library's is no address", "[api]") {
  rma::Runtime rt;
  rma::AddressMap map(rt.world());
  std::array<std::byte, 64> mine{};
  auto window = rma::Window<std::byte>::create(rt.world(), mine);
  CHECK(map.add(window, nullptr) == rma::status::not_supported);
  CHECK(map.address_of(window, 0) == nullptr);
  window.free();
}
