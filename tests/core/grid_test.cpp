// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "rma/ranks.hpp"

// Goal: extents are as near to each other as the number of ranks allows. Break: try factors up to 2 only.
TEST_CASE("extents_for divides ranks into a grid", "[grid]") {
  using extents = std::vector<int>;
  CHECK(rma::Grid::extents_for(12, 2) == extents{4, 3});
  CHECK(rma::Grid::extents_for(8, 3) == extents{2, 2, 2});
  CHECK(rma::Grid::extents_for(7, 2) == extents{7, 1});
  CHECK(rma::Grid::extents_for(1, 3) == extents{1, 1, 1});
  CHECK(rma::Grid::extents_for(4096, 3) == extents{16, 16, 16});
}

// Goal: ranks and coordinates are each other's inverse; a neighbor beyond an end is no_rank, or the other end where the
// dimension is periodic. Break: do not go around.
TEST_CASE("a grid knows coordinates and neighbors", "[grid]") {
  const rma::Grid grid({3, 4}, {false, true});
  CHECK(grid.size() == 12);
  for (int rank = 0; rank < grid.size(); ++rank) {
    const auto at = grid.coordinates(rank);
    CHECK(grid.rank_at({at[0], at[1]}) == rank);
  }
  CHECK(grid.rank_at({1, 2}) == 6);
  CHECK(grid.neighbor(6, 0, 1) == 10);
  CHECK(grid.neighbor(10, 0, 1) == rma::no_rank);
  CHECK(grid.neighbor(0, 0, -1) == rma::no_rank);
  CHECK(grid.neighbor(4, 1, -1) == 7);
  CHECK(grid.neighbors(0) == std::vector<int>{4, 3, 1});
}

// Goal: what cannot be meant is an Error that says what is wrong. Break: do not look at the extents.
TEST_CASE("a grid refuses what cannot be meant", "[grid]") {
  CHECK_THROWS_AS(rma::Grid({0, 2}, {}), rma::Error);
  CHECK_THROWS_AS(rma::Grid({1, 2}, {true}), rma::Error);
  const rma::Grid grid({2, 2}, {});
  CHECK_THROWS_AS(grid.coordinates(4), rma::Error);
  CHECK_THROWS_AS(grid.neighbor(0, 2, 1), rma::Error);
}
