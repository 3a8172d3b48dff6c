// SPDX-License-Identifier: Apache-2.0
// post, start, complete, wait, test: epochs between chosen ranks.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

std::vector<int> everyone(const context& ctx, bool but_me) {
  std::vector<int> group(static_cast<std::size_t>(ctx.size()));
  std::iota(group.begin(), group.end(), 0);
  if (but_me) std::erase(group, ctx.rank());
  return group;
}

// Goal: in a ring each rank exposes its part to its left and writes to its right, again and again; data put is there
// after wait, values stored before post are what the origin gets.
// Break: let start return before the target has posted, or wait before the origin has completed.
void ring(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8);
  const int left[] = {ctx.left()};
  const int right[] = {ctx.right()};
  const std::size_t rounds = ctx.rounds(2000);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    win.local()[0] = round * 7 + static_cast<std::uint64_t>(ctx.rank());
    win->post(left);
    win->start(right);
    win->put(round, ctx.right(), win.at(ctx.right(), 1));
    const std::uint64_t seen = win->get(ctx.right(), win.at(ctx.right(), 0));
    win->complete();
    win->wait();
    if (seen != round * 7 + static_cast<std::uint64_t>(ctx.right())) ctx.fail("a store before post was not seen");
    if (win.local()[1] != round) ctx.fail("a put is missing after wait");
  }
  win.free();
}

// Goal: one target, many origins.
// Method: all others post nothing and start to rank 0, which posts to all others; each writes its slot.
void star_into_one(context& ctx) {
  test_window<std::uint64_t> win(ctx, static_cast<std::size_t>(ctx.size()) + 1);
  const std::vector<int> others = everyone(ctx, true);
  const int root[] = {0};
  const std::size_t rounds = ctx.rounds(1000);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (ctx.rank() == 0) {
      win->post(others);
      win->wait();
      for (const int r : others) {
        if (win.local()[static_cast<std::size_t>(r)] != round) ctx.fail("slot of rank " + std::to_string(r));
      }
    } else {
      win->start(root);
      win->put(round, 0, win.at(0, static_cast<std::size_t>(ctx.rank())));
      win->complete();
    }
  }
  win.free();
}

// Goal: one origin, many targets.
void star_from_one(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  const std::vector<int> others = everyone(ctx, true);
  const int root[] = {0};
  const std::size_t rounds = ctx.rounds(1000);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (ctx.rank() == 0) {
      win->start(others);
      for (const int r : others) win->accumulate(std::uint64_t{2}, r, win.at(r, 2), rma::sum);
      win->complete();
    } else {
      win->post(root);
      win->wait();
      if (win.local()[2] != 2 * round) ctx.fail("accumulate of the one origin");
    }
  }
  win.free();
}

// Goal: everybody with everybody, itself included; spans large enough for every protocol.
void everyone_with_everyone(context& ctx) {
  const auto ranks = static_cast<std::size_t>(ctx.size());
  constexpr std::size_t count = 3000;
  test_window<std::uint32_t> win(ctx, count * ranks);
  const std::vector<int> group = everyone(ctx, false);
  std::vector<std::uint32_t> from(count);
  const std::size_t rounds = ctx.rounds(100);
  for (std::size_t round = 1; round <= rounds; ++round) {
    fill_tagged(std::span(from), ctx.rank(), round);
    win->post(group);
    win->start(group);
    for (const int to : group) {
      win->put(std::span<const std::uint32_t>(from), to, win.at(to, count * static_cast<std::size_t>(ctx.rank())));
    }
    win->complete();
    win->wait();
    for (const int r : group) {
      const std::span<const std::uint32_t> part = win.local().subspan(count * static_cast<std::size_t>(r), count);
      if (first_untagged(part, r, round) != count) ctx.fail("block of rank " + std::to_string(r));
    }
  }
  win.free();
}

// Goal: groups that change from round to round, in any order of members, are matched one to one.
// Method: the same random matrix on all ranks says who writes to whom.
void random_groups(context& ctx) {
  const auto ranks = static_cast<std::size_t>(ctx.size());
  test_window<std::uint64_t> win(ctx, ranks);
  const std::size_t rounds = ctx.rounds(600);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::vector<int> origins;
    std::vector<int> targets;
    for (std::size_t o = 0; o < ranks; ++o) {
      for (std::size_t t = 0; t < ranks; ++t) {
        if (ctx.common_random()() % 3 != 0) continue;
        if (t == static_cast<std::size_t>(ctx.rank())) origins.push_back(static_cast<int>(o));
        if (o == static_cast<std::size_t>(ctx.rank())) targets.push_back(static_cast<int>(t));
      }
    }
    std::ranges::shuffle(origins, ctx.random());
    std::ranges::shuffle(targets, ctx.random());
    win->post(origins);
    win->start(targets);
    for (const int to : targets) win->put(round, to, win.at(to, static_cast<std::size_t>(ctx.rank())));
    win->complete();
    win->wait();
    for (const int from : origins) {
      if (win.local()[static_cast<std::size_t>(from)] != round) ctx.fail("put of a random group is missing");
    }
  }
  win.free();
}

// Goal: test is wait without blocking: false until all origins have completed, true once, then no epoch is open.
void test_instead_of_wait(context& ctx) {
  test_window<std::uint64_t> win(ctx, 2);
  const int left[] = {ctx.left()};
  const int right[] = {ctx.right()};
  for (std::uint64_t round = 1; round <= ctx.rounds(100, 100); ++round) {
    win->post(left);
    if (win->test()) ctx.fail("test is true before the origin has started");
    ctx.world().barrier();
    win->start(right);
    win->put(round, ctx.right(), win.at(ctx.right(), 1));
    win->complete();
    ctx.wait_until([&] { return win->test(); });
    if (win.local()[1] != round) ctx.fail("a put is missing after test");
  }
  bool again = true;
  ctx.throws(rma::status::wrong_epoch, {"test"}, [&] { again = win->test(); });
  ctx.check(again, "test without post returned");
  win.free();
}

// Goal: empty groups are allowed and block nobody; no_check is honored where the posts are known.
void empty_groups_and_no_check(context& ctx) {
  test_window<std::uint64_t> win(ctx, 2);
  win->post({});
  win->start({});
  win->complete();
  win->wait();
  const int left[] = {ctx.left()};
  const int right[] = {ctx.right()};
  for (std::uint64_t round = 1; round <= ctx.rounds(100, 100); ++round) {
    win->post(left, rma::no_check | rma::no_store);
    ctx.world().barrier();
    win->start(right, rma::no_check);
    win->put(round, ctx.right(), win.at(ctx.right(), 0));
    win->complete();
    win->wait();
    if (win.local()[0] != round) ctx.fail("put under no_check");
  }
  win.free();
}

// Goal: an origin may start its next epoch at once; the target's posts come when they come.
// Method: rank 1 does many short epochs to rank 0 in a row, while rank 0 works on what came before it posts again.
void fast_origin_slow_target(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  const int zero[] = {0};
  const int one[] = {1};
  const std::size_t rounds = ctx.rounds(1000);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (ctx.rank() == 1) {
      win->start(zero);
      win->put(round, 0, win.at(0, round % 4));
      win->complete();
    } else if (ctx.rank() == 0) {
      for (std::uint64_t stall = ctx.random()() % 16; stall > 0; --stall) ctx.runtime().progress();
      win->post(one);
      win->wait();
      if (win.local()[round % 4] != round) ctx.fail("put of round " + std::to_string(round));
    }
  }
  win.free();
}

constexpr test_case pscw_table[] = {
    {"pscw.ring", ring, each_kind},
    {"pscw.star_into_one", star_into_one, each_kind, 2},
    {"pscw.star_from_one", star_from_one, each_kind, 2},
    {"pscw.everyone_with_everyone", everyone_with_everyone, each_kind},
    {"pscw.random_groups", random_groups, each_kind},
    {"pscw.test_instead_of_wait", test_instead_of_wait, each_kind},
    {"pscw.empty_groups_and_no_check", empty_groups_and_no_check, each_kind},
    {"pscw.fast_origin_slow_target", fast_origin_slow_target, each_kind, 2},
};

}  // namespace

std::span<const test_case> pscw_cases() noexcept { return pscw_table; }

}  // namespace conformance
