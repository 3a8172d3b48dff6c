// SPDX-License-Identifier: Apache-2.0
// Goal: the first entry of a key is found, whatever else there is, and however entries come and go.
// Method: random additions and removals beside a list that is searched from the front.
#include "p2p/match_table.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <list>
#include <memory>
#include <random>
#include <vector>

using namespace rma::detail;

TEST_CASE("the first of each key is found", "[p2p][match_table]") {
  std::mt19937 random(GENERATE(1U, 2U, 3U));
  const int keys = GENERATE(1, 3, 1000);
  match_table table;
  std::list<std::unique_ptr<match_entry>> model;
  const auto first = [&](const match_key& key) -> match_entry* {
    const auto at = std::ranges::find_if(model, [&](const auto& e) { return e->key == key; });
    return at == model.end() ? nullptr : at->get();
  };
  for (int step = 0; step < 5000; ++step) {
    const match_key key{random() % 2, static_cast<int>(random() % 3) - 1, static_cast<int>(random()) % keys};
    CHECK(table.find(key) == first(key));
    if (random() % 2 == 0) {
      model.push_back(std::make_unique<match_entry>());
      model.back()->key = key;
      table.add(*model.back());
    } else if (!model.empty()) {
      const auto at = std::next(model.begin(), static_cast<long>(random() % model.size()));
      table.remove(**at);
      model.erase(at);
    }
    REQUIRE(table.empty() == model.empty());
  }
  std::size_t visited = 0;
  table.for_each([&](match_entry& e) {
    ++visited;
    table.remove(e);
  });
  CHECK(visited == model.size());
  CHECK(table.empty());
}
