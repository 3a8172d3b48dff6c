// SPDX-License-Identifier: Apache-2.0
// Goal: no two holders in conflict, nobody starves, nothing is left behind; a death frees what was held, once.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "window/range_table.hpp"

using namespace rma::detail;
using rma::exclusive;
using rma::shared;

namespace {

using answers = std::vector<range_answer>;

range_entry ask(int rank, std::uint32_t ticket, rma::lock_kind kind, std::uint64_t offset, std::uint64_t bytes) {
  return {rank, ticket, kind, offset, bytes, false};
}

bool has(const answers& all, int rank, bool granted) {
  return std::any_of(all.begin(), all.end(),
                     [&](const range_answer& a) { return a.rank == rank && a.granted == granted; });
}

}  // namespace

TEST_CASE("disjoint ranges and shared ones are held together", "[range]") {
  range_table table;
  answers said;
  table.request(ask(0, 1, exclusive, 0, 8), said);
  table.request(ask(1, 1, exclusive, 8, 8), said);
  table.request(ask(2, 1, shared, 16, 8), said);
  table.request(ask(3, 1, shared, 20, 8), said);
  CHECK(said.size() == 4);
  table.request(ask(4, 1, exclusive, 15, 2), said);  // the last byte of 1, the first of 2
  CHECK(said.size() == 4);
  table.release(1, 1, said);
  CHECK(said.size() == 4);
  table.release(2, 1, said);
  CHECK(has(said, 4, true));
}

TEST_CASE("who came first is served first, among those in conflict", "[range]") {
  range_table table;
  answers said;
  table.request(ask(0, 1, shared, 0, 8), said);
  table.request(ask(1, 1, exclusive, 0, 8), said);
  table.request(ask(2, 1, shared, 0, 8), said);  // could be held, but would starve rank 1
  table.request(ask(3, 1, exclusive, 64, 8), said);
  CHECK(said.size() == 2);
  CHECK(has(said, 3, true));
  table.release(0, 1, said);
  CHECK(has(said, 1, true));
  CHECK_FALSE(has(said, 2, true));
  table.release(1, 1, said);
  CHECK(has(said, 2, true));
}

TEST_CASE("a dead holder fails who waits for it, once", "[range]") {
  const bool recover = GENERATE(true, false);
  range_table table;
  answers said;
  table.request(ask(0, 1, exclusive, 0, 8), said);
  table.request(ask(1, 1, exclusive, 4, 8), said);
  table.request(ask(2, 1, exclusive, 8, 8), said);  // waits for 1, not for 0
  table.request(ask(0, 2, exclusive, 8, 8), said);  // the dead one waits, too
  said.clear();
  table.forget_dead(0, recover, said);
  CHECK(has(said, 1, false));
  CHECK(has(said, 2, true));
  CHECK(said.size() == 2);
  said.clear();
  table.request(ask(1, 2, exclusive, 0, 4), said);
  CHECK(has(said, 1, true) == recover);
  table.forget_dead(0, recover, said);
  CHECK(has(said, 1, false) != recover);
  CHECK(table.size() == 2);  // rank 2, and rank 1 or what stays of rank 0
}

TEST_CASE("random requests, releases and deaths", "[range]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    range_table table;
    std::vector<range_entry> wanted;  // not answered yet
    std::vector<range_entry> held;
    std::uint32_t ticket = 0;
    const auto take = [&](const answers& said) {
      for (const range_answer& a : said) {
        const auto at = std::find_if(wanted.begin(), wanted.end(),
                                     [&](const range_entry& e) { return e.rank == a.rank && e.ticket == a.ticket; });
        REQUIRE(at != wanted.end());  // answered once
        const range_entry e = *at;
        wanted.erase(at);
        if (!a.granted) continue;
        for (const range_entry& other : held) REQUIRE_FALSE(conflict(e, other));
        held.push_back(e);
      }
    };
    for (int step = 0; step < 300; ++step) {
      answers said;
      const auto draw = random() % 16;
      if (draw < 8) {
        wanted.push_back(ask(static_cast<int>(random() % 5), ++ticket, random() % 2 == 0 ? shared : exclusive,
                             random() % 20, 1 + random() % 8));
        table.request(wanted.back(), said);
      } else if (draw < 15 && !held.empty()) {
        const auto at = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
        const range_entry e = *at;
        held.erase(at);
        table.release(e.rank, e.ticket, said);
      } else if (draw == 15 && step % 50 == 0) {
        const int dead = static_cast<int>(random() % 5);
        std::erase_if(held, [&](const range_entry& e) { return e.rank == dead; });
        std::erase_if(wanted, [&](const range_entry& e) { return e.rank == dead; });
        table.forget_dead(dead, true, said);
      }
      take(said);
    }
    while (!held.empty()) {
      answers said;
      const range_entry e = held.back();
      held.pop_back();
      table.release(e.rank, e.ticket, said);
      take(said);
    }
    INFO("seed " << seed);
    CHECK(wanted.empty());
    CHECK(table.size() == 0);
  }
}
