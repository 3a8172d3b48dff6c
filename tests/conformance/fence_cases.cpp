// SPDX-License-Identifier: Apache-2.0
// Fence epochs: what was put before is there after, for everybody; assertions are promises.
#include <algorithm>
#include <cstdint>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

// Goal: after fence each rank reads, by plain loads, what every rank put before it, and the gets before it have read.
// Method: all-to-all puts of round-tagged words while gets read the words of the round before from another half.
// Ranks arrive at random times. Break: return from fence without its barrier, or without the full fence before it.
void puts_are_visible(context& ctx) {
  const auto ranks = static_cast<std::size_t>(ctx.size());
  test_window<std::uint64_t> win(ctx, 2 * ranks);
  const auto me = static_cast<std::size_t>(ctx.rank());
  std::vector<std::uint64_t> got(ranks);
  const std::size_t rounds = ctx.rounds(2000);
  win->fence();
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const std::size_t now = (round % 2) * ranks;
    const std::size_t before = ((round + 1) % 2) * ranks;
    for (std::uint64_t stall = ctx.random()() % 8; stall > 0; --stall) ctx.runtime().progress();
    for (int to = 0; to < ctx.size(); ++to) {
      win->put(round * 100 + me, to, win.at(to, now + me));
      win->get(std::span(got).subspan(static_cast<std::size_t>(to), 1), to, win.at(to, before + me));
    }
    win->fence();
    for (std::size_t r = 0; r < ranks; ++r) {
      if (win.local()[now + r] != round * 100 + r) ctx.fail("a put is missing after fence " + std::to_string(round));
      const std::uint64_t wanted = round == 1 ? 0 : (round - 1) * 100 + me;
      if (got[r] != wanted) ctx.fail("a get is wrong after fence " + std::to_string(round));
    }
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: plain stores before a fence are what others get after it.
void stores_are_visible(context& ctx) {
  constexpr std::size_t count = 1000;
  test_window<std::uint32_t> win(ctx, count);
  std::vector<std::uint32_t> got(count);
  const std::size_t rounds = ctx.rounds(200);
  for (std::size_t round = 0; round < rounds; ++round) {
    fill_tagged(win.local(), ctx.rank(), round);
    win->fence();
    win->get(std::span(got), ctx.right(), win.at(ctx.right(), 0));
    win->fence();
    const std::span<const std::uint32_t> part(got);
    if (first_untagged(part, ctx.right(), round) != count) ctx.fail("old values after fence " + std::to_string(round));
  }
  win.free();
}

// Goal: every legal combination of assertions gives the right data.
// Method: the textbook sequence (nothing precedes; puts; reads; nothing succeeds), with every promise that is true.
void assertions_are_honored(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  for (std::uint64_t round = 0; round < ctx.rounds(50, 50); ++round) {
    win->fence(rma::no_precede);
    win->put(round * 10 + static_cast<std::uint64_t>(ctx.rank()), ctx.right(), win.at(ctx.right(), 1));
    win->fence(rma::no_store | rma::no_put);
    ctx.equal(win.local()[1], round * 10 + static_cast<std::uint64_t>(ctx.left()), "put between fences with promises");
    const std::uint64_t seen = win->get(ctx.right(), win.at(ctx.right(), 1));
    ctx.equal(seen, round * 10 + static_cast<std::uint64_t>(ctx.rank()), "get between fences with promises");
    win->fence(rma::no_store | rma::no_succeed);
    win.local()[1] = 0;
    win->fence(rma::no_precede | rma::no_put | rma::no_succeed);
    win->fence(rma::no_precede | rma::no_store | rma::no_put);
    win->fence(rma::no_precede | rma::no_store | rma::no_put | rma::no_succeed);
  }
  win.free();
}

// Goal: after fence(no_succeed) there is no epoch: operations are refused by name and change nothing; the next fence
// opens one again.
void no_succeed_closes(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4, {.name = "shut"});
  win->fence();
  win->fence(rma::no_succeed);
  std::uint64_t value = 3;
  const std::vector<std::uint64_t> several = {1, 2};
  const int to = ctx.right();
  const auto wrong = rma::status::wrong_epoch;
  ctx.expect(win->try_put(value, to, win.at(to, 0)), wrong, "put after no_succeed");
  ctx.expect(win->try_get(value, to, win.at(to, 0)), wrong, "get after no_succeed");
  ctx.expect(win->try_put(std::span(several), to, win.at(to, 0)), wrong, "span put after no_succeed");
  ctx.expect(win->try_accumulate(value, to, win.at(to, 0), rma::sum), wrong, "accumulate after no_succeed");
  ctx.expect(win->try_fetch_and_op(value, value, to, win.at(to, 0), rma::sum), wrong, "fetch_and_op after no_succeed");
  ctx.expect(win->try_compare_and_swap(value, value, value, to, win.at(to, 0)), wrong,
             "compare_and_swap after no_succeed");
  ctx.throws(wrong, {"put", "shut", "fence"}, [&] { win->put(value, to, win.at(to, 0)); });
  ctx.world().barrier();
  ctx.equal(win.local()[0], std::uint64_t{0}, "a refused operation wrote");
  win->fence();
  win->put(std::uint64_t{8}, to, win.at(to, 0));
  win->fence(rma::no_succeed);
  ctx.equal(win.local()[0], std::uint64_t{8}, "put after the next fence");
  win.free();
}

// Goal: a promise that is seen to be broken is wrong_epoch, one that is not seen does no harm: never a hang.
// Method: a put before fence(no_precede) on all ranks alike.
void broken_no_precede(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  win->fence();
  win->put(std::uint64_t{1}, ctx.right(), win.at(ctx.right(), 0));
  const rma::status s = win->try_fence(rma::no_precede);
  ctx.check(s == rma::status::done || s == rma::status::wrong_epoch,
            std::string("fence(no_precede) after a put gives ") + std::string(rma::name_of(s)));
  ctx.world().barrier();
  ctx.expect(win->try_fence(rma::no_succeed), rma::status::done, "the fence after a broken promise");
  win.free();
}

// Goal: fences of two windows do not depend on each other; a window of part of the ranks fences without the rest.
void fences_of_parts(context& ctx) {
  rma::Team half = ctx.world().split(ctx.rank() % 2, ctx.rank());
  test_window<int> all(ctx, 2);
  test_window<int> part(half, ctx.kind(), 2);
  all->fence();
  part->fence();
  const int next = (half.rank() + 1) % half.size();
  const std::size_t rounds = ctx.rounds(300) * (ctx.rank() % 2 == 0 ? 1 : 2);
  for (std::size_t i = 1; i <= rounds; ++i) {
    part->put(static_cast<int>(i), next, part.at(next, i % 2));
    part->fence();
    if (part.local()[i % 2] != static_cast<int>(i)) ctx.fail("put inside a part of the ranks");
  }
  all->put(5, ctx.right(), all.at(ctx.right(), 0));
  all->fence();
  ctx.equal(all.local()[0], 5, "put across the parts");
  part.free();
  all.free();
}

// Goal: a fence waits for large transfers, too: their last byte is there.
void large_transfers_complete(context& ctx) {
  constexpr std::size_t count = 400000;
  test_window<std::uint64_t> win(ctx, count);
  std::vector<std::uint64_t> from(count);
  win->fence();
  for (std::size_t round = 0; round < ctx.rounds(5, 5); ++round) {
    fill_tagged(std::span(from), ctx.rank(), round);
    win->put(std::span<const std::uint64_t>(from), ctx.right(), win.at(ctx.right(), 0));
    win->fence();
    const std::span<const std::uint64_t> part(win.local());
    ctx.equal(first_untagged(part, ctx.left(), round), count, "first element that is not there");
    win->fence();
  }
  win.free();
}

// Goal: accumulates of all ranks into all words in one epoch are all there after it.
void accumulates_complete(context& ctx) {
  constexpr std::size_t count = 5000;
  test_window<std::int64_t> win(ctx, count);
  const std::vector<std::int64_t> ones(count, 1);
  win->fence();
  const std::size_t rounds = ctx.rounds(40);
  for (std::size_t round = 1; round <= rounds; ++round) {
    for (int to = 0; to < ctx.size(); ++to) {
      win->accumulate(std::span<const std::int64_t>(ones), to, win.at(to, 0), rma::sum);
    }
    win->fence();
    const std::int64_t wanted = static_cast<std::int64_t>(round) * ctx.size();
    if (!std::ranges::all_of(win.local(), [&](std::int64_t v) { return v == wanted; })) ctx.fail("a sum is incomplete");
    win->fence();
  }
  win.free();
}

// Goal: fence, then lock, then fence: one window may change between kinds of epochs.
void fence_then_lock(context& ctx) {
  test_window<std::uint64_t> win(ctx, 3);
  for (std::uint64_t round = 1; round <= ctx.rounds(50, 50); ++round) {
    win->fence();
    win->put(round, ctx.right(), win.at(ctx.right(), 0));
    win->fence();
    ctx.equal(win.local()[0], round, "put between fences");
    {
      const auto hold = win->lock(rma::exclusive, 0);
      const std::uint64_t seen = win->get(0, win.at(0, 1));
      win->put(seen + 1, 0, win.at(0, 1));
    }
    win->fence();
    if (ctx.rank() == 0) {
      ctx.equal(win.local()[1], round * static_cast<std::uint64_t>(ctx.size()),
                "counter under the lock between fences");
    }
    win->fence(rma::no_succeed);
  }
  win.free();
}

constexpr test_case fence_table[] = {
    {"fence.puts_are_visible", puts_are_visible, each_kind},
    {"fence.stores_are_visible", stores_are_visible, each_kind},
    {"fence.assertions_are_honored", assertions_are_honored, each_kind},
    {"fence.no_succeed_closes", no_succeed_closes, each_kind},
    {"fence.broken_no_precede", broken_no_precede, each_kind},
    {"fence.fences_of_parts", fences_of_parts, each_kind},
    {"fence.large_transfers_complete", large_transfers_complete, each_kind},
    {"fence.accumulates_complete", accumulates_complete, each_kind},
    {"fence.fence_then_lock", fence_then_lock, each_kind},
};

}  // namespace

std::span<const test_case> fence_cases() noexcept { return fence_table; }

}  // namespace conformance
