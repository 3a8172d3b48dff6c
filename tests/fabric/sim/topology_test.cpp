// SPDX-License-Identifier: Apache-2.0
// Goal: every route leads from its source to its target over links that join, and is as short as the shape allows.
// Method: all pairs of nodes; lengths and numbers of links worked out here in another way.
#include "fabric/sim/topology.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "rma/error.hpp"

namespace rma::sim {
namespace {

std::vector<link_id> route(const topology& over, int from, int to) {
  std::vector<link_id> path(over.hops_max());
  path.resize(over.route(from, to, path.data()));
  return path;
}

/// The error in the route; "" if there is none.
std::string fault(const topology& over, int from, int to, const std::vector<link_id>& path) {
  auto at = topology::end{true, 0, static_cast<std::uint32_t>(from)};
  std::set<link_id> seen;
  for (const link_id link : path) {
    if (link >= over.links()) return "no such link";
    if (!(over.source_of(link) == at)) return over.name_of(at) + " is not where " + over.name_of(link) + " starts";
    if (!seen.insert(link).second) return over.name_of(link) + " twice";
    at = over.target_of(link);
  }
  return at == topology::end{true, 0, static_cast<std::uint32_t>(to)} ? "" : "ends at " + over.name_of(at);
}

template <class Length>
void check_all_pairs(const topology& over, Length expected) {
  for (int from = 0; from < over.nodes(); ++from) {
    for (int to = 0; to < over.nodes(); ++to) {
      if (from == to) continue;
      const auto path = route(over, from, to);
      const auto wrong = fault(over, from, to, path);
      if (!wrong.empty() || path.size() != expected(from, to)) {
        CAPTURE(over.text(), from, to);
        CHECK(wrong.empty());
        REQUIRE(path.size() == expected(from, to));
      }
    }
  }
  SUCCEED();
}

std::string complaint(std::string_view text, int nodes, status code) {
  try {
    topology(text, nodes);
    return "";
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
}

}  // namespace

TEST_CASE("through one switch it is two links", "[sim][topology]") {
  const topology over("switch", 9);
  CHECK(over.links() == 18);
  check_all_pairs(over, [](int, int) { return 2U; });
  CHECK(over.name_of(3) == "node 3 -> switch");
  CHECK(over.name_of(route(over, 0, 3)[1]) == "switch -> node 3");
}

TEST_CASE("in a fat tree a packet goes up to the first common level", "[sim][topology]") {
  const auto [k, n, nodes] = GENERATE(table<unsigned, unsigned, int>(
      {{2, 1, 2}, {4, 1, 3}, {2, 2, 4}, {4, 2, 16}, {2, 4, 16}, {3, 3, 27}, {4, 3, 50}, {5, 3, 125}}));
  const topology over("fat-tree:k=" + std::to_string(k) + ",n=" + std::to_string(n), nodes);
  unsigned places = 1;
  for (unsigned i = 0; i < n; ++i) places *= k;
  CHECK(over.links() == 2 * n * places);
  check_all_pairs(over, [k = k](int from, int to) {
    unsigned length = 2;
    for (from /= static_cast<int>(k), to /= static_cast<int>(k); from != to;
         from /= static_cast<int>(k), to /= static_cast<int>(k)) {
      length += 2;
    }
    return length;
  });
}

TEST_CASE("every cable of a fat tree joins neighbors of two levels, each switch has k of them up", "[sim][topology]") {
  const topology over("fat-tree:k=3,n=3", 27);
  std::set<std::string> names;
  std::vector<int> ups(2 * 9);
  for (link_id link = 0; link < over.links(); ++link) {
    names.insert(over.name_of(link));
    const auto from = over.source_of(link);
    const auto to = over.target_of(link);
    if (from.is_node || to.is_node) continue;
    REQUIRE((from.level + 1 == to.level || to.level + 1 == from.level));
    if (from.level < to.level) ++ups[from.level * 9 + from.index];
  }
  CHECK(names.size() == over.links());
  CHECK(std::all_of(ups.begin(), ups.end(), [](int n) { return n == 3; }));
  CHECK(over.name_of(0) == "node 0 -> switch 0.0");
  CHECK(over.group_name(over.group_of(route(over, 0, 26)[1])) == "switch level 0 to 1");
}

TEST_CASE("d-mod-k: packets to one target share the way down, those to others the fewest links", "[sim][topology]") {
  const topology over("fat-tree:k=4,n=3", 64);
  for (int to = 0; to < 64; ++to) {
    std::set<link_id> last;
    for (int from = 0; from < 64; ++from) {
      if (from / 16 != to / 16) last.insert(route(over, from, to)[3]);  // the first link down
    }
    REQUIRE(last.size() == 1);
  }
  // A shift of all nodes by half the tree has every link up to itself.
  std::vector<int> used(over.links());
  for (int from = 0; from < 64; ++from) {
    for (const link_id link : route(over, from, (from + 32) % 64)) ++used[link];
  }
  CHECK(*std::max_element(used.begin(), used.end()) == 1);
}

TEST_CASE("fat-tree alone is the smallest that fits", "[sim][topology]") {
  CHECK(topology("fat-tree", 2).text() == "fat-tree:k=2,n=2");
  CHECK(topology("fat-tree", 16).text() == "fat-tree:k=4,n=2");
  CHECK(topology("fat-tree", 17).text() == "fat-tree:k=5,n=2");
  CHECK(topology("fat-tree", 1024).text() == "fat-tree:k=32,n=2");
  CHECK(topology("fat-tree", 1025).text() == "fat-tree:k=11,n=3");
  CHECK(topology("fat-tree", 4096).text() == "fat-tree:k=16,n=3");
}

TEST_CASE("in a torus a packet takes the shorter way round in each dimension", "[sim][topology]") {
  struct sides {
    int x, y, z;
  };
  const auto s = GENERATE(sides{8, 8, 1}, sides{5, 3, 1}, sides{2, 2, 2}, sides{4, 3, 5}, sides{1, 6, 1});
  const auto text =
      "torus:" + std::to_string(s.x) + "x" + std::to_string(s.y) + (s.z > 1 ? "x" + std::to_string(s.z) : "");
  const topology over(text, s.x * s.y * s.z);
  CHECK(over.text() == text);
  check_all_pairs(over, [s](int from, int to) {
    const auto round = [](int a, int b, int side) { return std::min(std::abs(a - b), side - std::abs(a - b)); };
    return static_cast<std::size_t>(2 + round(from % s.x, to % s.x, s.x) +
                                    round(from / s.x % s.y, to / s.x % s.y, s.y) +
                                    round(from / s.x / s.y, to / s.x / s.y, s.z));
  });
}

TEST_CASE("x comes before y, and a tie goes up from even, down from odd coordinates", "[sim][topology]") {
  const topology over("torus:4x4", 16);
  const auto path = route(over, 0, 10);  // (0,0) to (2,2)
  std::string names;
  for (const link_id link : path) names += over.name_of(link) + "; ";
  CHECK(names ==
        "node 0 -> router (0,0); router (0,0) -> router (1,0); router (1,0) -> router (2,0); "
        "router (2,0) -> router (2,1); router (2,1) -> router (2,2); router (2,2) -> node 10; ");
  CHECK(over.group_name(over.group_of(path[1])) == "x+");
  CHECK(over.name_of(route(over, 1, 3)[1]) == "router (1,0) -> router (0,0)");
  CHECK(over.group_name(over.group_of(route(over, 0, 12)[1])) == "y-");
}

TEST_CASE("4096 nodes and more are no trouble", "[sim][topology]") {
  for (const auto* text : {"fat-tree", "torus:16x16x16", "torus:64x64", "switch"}) {
    const topology over(text, 4096);
    for (int from = 0; from < 4096; from += 41) {
      for (int to = 0; to < 4096; to += 37) {
        if (from != to) REQUIRE(fault(over, from, to, route(over, from, to)).empty());
      }
    }
  }
}

TEST_CASE("an impossible topology is one clear line", "[sim][topology]") {
  const std::string forms = " is not one of switch, fat-tree, fat-tree:k=16,n=3, torus:8x8 or torus:8x8x4";
  for (const auto* text : {"", "ring", "fat-tree:", "fat-tree:k=4", "fat-tree:n=2,k=4", "fat-tree:k=4,n=2,m=1", "torus",
                           "torus:", "torus:8", "torus:8x", "torus:8x8x8x8", "torus:0x8", "torus:-1x8", "switch:8",
                           "fat-tree:k=99999999999,n=2"}) {
    CHECK(complaint(text, 4, status::bad_setting) == "topology '" + std::string(text) + "'" + forms);
  }
  CHECK(complaint("torus:8x8", 65, status::bad_argument) ==
        "topology 'torus:8x8' has room for 64 nodes, 65 are needed");
  CHECK(complaint("fat-tree:k=4,n=2", 17, status::bad_argument) ==
        "topology 'fat-tree:k=4,n=2' has room for 16 nodes, 17 are needed");
  CHECK(complaint("fat-tree:k=1,n=2", 1, status::bad_argument) == "topology 'fat-tree:k=1,n=2': k is at least 2");
  CHECK(complaint("fat-tree:k=2,n=99", 4, status::bad_argument) ==
        "topology 'fat-tree:k=2,n=99' has more than 16777216 nodes");
  CHECK(complaint("torus:5000x2", 4, status::bad_argument) ==
        "topology 'torus:5000x2' has routes of 2503 links, 1000 are allowed");
  CHECK(complaint("torus:100000x100000", 4, status::bad_argument) ==
        "topology 'torus:100000x100000' has more than 16777216 nodes");
  CHECK(complaint("switch", 0, status::bad_argument) == "a simulated machine of 0 nodes is not possible");
}

}  // namespace rma::sim
