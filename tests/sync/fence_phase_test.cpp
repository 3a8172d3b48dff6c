// SPDX-License-Identifier: Apache-2.0
// Goal: each design of fences goes through the steps of its figure, with each set of promises, from each step to one
// that is allowed; every one ends.
#include <catch2/catch.hpp>

#include <vector>

#include "sync/fence_def.hpp"
#include "sync/fence_imm_naive.hpp"
#include "sync/fence_imm_opt.hpp"
#include "sync/fence_imm_ri.hpp"
#include "sync/fence_neighbors.hpp"

using rma::assertion;
using rma::no_precede;
using rma::no_succeed;
using rma::detail::fence_phase;

namespace {

using design = fence_phase (*)(fence_phase, assertion);
using steps = std::vector<fence_phase>;

steps all_steps(design next, assertion promises) {
  steps found;
  for (fence_phase at = next(fence_phase::begin, promises); at != fence_phase::over; at = next(at, promises)) {
    found.push_back(at);
    REQUIRE(found.size() < 10);
  }
  return found;
}

constexpr fence_phase finish = fence_phase::finish, complete = fence_phase::complete, count = fence_phase::count,
                      issue = fence_phase::issue, arrive = fence_phase::arrive, barrier = fence_phase::barrier,
                      flags = fence_phase::flags;
constexpr auto both = no_precede | no_succeed;

struct expected {
  design next;
  steps plain, preceded, succeeded, neither;
};

}  // namespace

namespace {

fence_phase ri_acked(fence_phase now, assertion promises) noexcept {
  return rma::detail::after_imm_ri(now, promises, false);
}
fence_phase ri_placed(fence_phase now, assertion promises) noexcept {
  return rma::detail::after_imm_ri(now, promises, true);
}

}  // namespace

TEST_CASE("each design has the steps of its figure", "[fence]") {
  using namespace rma::detail;
  const expected designs[] = {
      {after_placed, {complete, barrier}, {complete, barrier}, {complete, barrier}, {complete}},
      {after_def, {count, issue, complete, arrive}, {complete}, {count, issue, complete, arrive}, {complete}},
      {after_imm_naive,
       {finish, complete, count, arrive, flags},
       {complete, flags},
       {finish, complete, count, arrive},
       {complete}},
      {after_imm_opt,
       {finish, complete, count, arrive, barrier},
       {complete, barrier},
       {finish, complete, count, arrive},
       {complete}},
      {ri_acked,
       {finish, complete, count, arrive, barrier},
       {complete, barrier},
       {finish, complete, count, arrive},
       {complete}},
      {ri_placed,
       {finish, complete, count, arrive},
       {complete, barrier},
       {finish, complete, count, arrive},
       {complete}},
      {after_neighbors, {complete, finish, arrive, flags}, {complete, flags}, {complete, finish, arrive}, {complete}},
  };
  for (const expected& e : designs) {
    CHECK(all_steps(e.next, assertion::none) == e.plain);
    CHECK(all_steps(e.next, no_precede) == e.preceded);
    CHECK(all_steps(e.next, no_succeed) == e.succeeded);
    CHECK(all_steps(e.next, both) == e.neither);
    // The others are for this rank alone: they change no step that another rank waits for.
    CHECK(all_steps(e.next, rma::no_store | rma::no_put) == e.plain);
  }
}

TEST_CASE("every design comes to its end, whatever is promised", "[fence]") {
  using namespace rma::detail;
  for (const design next :
       {after_placed, after_def, after_imm_naive, after_imm_opt, ri_acked, ri_placed, after_neighbors}) {
    for (unsigned promises = 0; promises < 32; ++promises) {
      auto at = fence_phase::begin;
      for (unsigned n = 0; at != fence_phase::over; ++n) {
        REQUIRE(n < 10);
        at = next(at, static_cast<assertion>(promises));
      }
    }
  }
}
