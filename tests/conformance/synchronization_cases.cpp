// SPDX-License-Identifier: Apache-2.0
// Synchronization by requests, locks of ranges, fences among neighbors.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

// Goal: ifence is fence, but the rank is free until it looks: what was put is there when the request is complete, in
// the meantime there is no epoch, then there is one. Break: open the epoch at once, or let the request end before the
// others' puts are there.
void ifence(context& ctx) {
  const auto ranks = static_cast<std::size_t>(ctx.size());
  test_window<std::uint64_t> win(ctx, ranks);
  const auto me = static_cast<std::size_t>(ctx.rank());
  win->ifence().wait();
  for (std::uint64_t round = 1; round <= ctx.rounds(200); ++round) {
    for (int to = 0; to < ctx.size(); ++to) win->put(round * 100 + me, to, win.at(to, me));
    rma::Request request = win->ifence(round % 3 == 0 ? rma::no_store : rma::assertion::none);
    if (request.pending()) {
      ctx.expect(win->try_put(round, 0, win.at(0, 0)), rma::status::wrong_epoch, "put while an ifence is under way");
      ctx.throws(rma::status::wrong_epoch, {"a request that ends an epoch is not complete"},
                 [&] { win->put(round, 0, win.at(0, 0)); });
      ctx.expect(win->try_fence(), rma::status::wrong_epoch, "fence while an ifence is under way");
      ctx.expect(win->lock_nothrow(rma::shared, 0), rma::status::wrong_epoch, "lock while an ifence is under way");
    }
    if (round % 2 == 0) {
      request.wait();
    } else {
      ctx.wait_until([&] { return request.test(); });
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      if (win.local()[r] != round * 100 + r) ctx.fail("a put is missing after ifence " + std::to_string(round));
    }
    win->ifence().wait();
  }
  win->ifence(rma::no_succeed).wait();
  ctx.expect(win->try_put(std::uint64_t{1}, 0, win.at(0, 0)), rma::status::wrong_epoch, "put after no_succeed");
  win.free();
}

// Goal: fences of two windows under way at once, waited for together and in any order; a dropped request is waited for.
void several_at_once(context& ctx) {
  test_window<std::uint64_t> first(ctx, 2);
  test_window<std::uint64_t> second(ctx, 2);
  first->fence();
  second->fence();
  const int to = ctx.right();
  const auto mine = static_cast<std::uint64_t>(ctx.rank());
  const auto left = static_cast<std::uint64_t>(ctx.left());
  for (std::uint64_t round = 1; round <= ctx.rounds(100); ++round) {
    first->put(round * 10 + mine, to, first.at(to, 0));
    second->put(round * 20 + mine, to, second.at(to, 1));
    std::array<rma::Request, 2> both = {first->ifence(), second->ifence()};
    if (ctx.rank() % 2 == 0) {
      rma::wait_all(both);
    } else {
      while (rma::wait_any(both) != both.size()) continue;
    }
    if (first.local()[0] != round * 10 + left) ctx.fail("a put into the first window is missing");
    if (second.local()[1] != round * 20 + left) ctx.fail("a put into the second window is missing");
    { const rma::Request dropped = first->ifence(); }
    { const rma::Request dropped = second->ifence(); }
  }
  first.free();
  second.free();
}

// Goal: ilock holds when its request is complete, and nobody else does; iunlock gives it back with all updates there.
// Break: let ilock end at once, or iunlock before the put is at the target.
void ilock_excludes(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  const std::size_t rounds = ctx.rounds(100);
  for (std::size_t i = 0; i < rounds; ++i) {
    rma::Request lock = win->ilock(rma::exclusive, 0);
    if (i % 2 == 0) {
      lock.wait();
    } else {
      ctx.wait_until([&] { return lock.test(); });
    }
    const std::uint64_t before = win->get(0, win.at(0, 1));
    win->put(before + 1, 0, win.at(0, 1));
    rma::Request flushed = win->iflush(0);
    flushed.wait();
    win->put(before + 1, 0, win.at(0, 2));
    win->iunlock(0).wait();
  }
  ctx.world().barrier();
  if (ctx.rank() == 0) {
    const auto wanted = static_cast<std::uint64_t>(rounds) * static_cast<std::uint64_t>(ctx.size());
    ctx.equal(win.local()[1], wanted, "updates under ilock");
    ctx.equal(win.local()[2], wanted, "puts behind iflush");
  }
  win.free();
}

// Goal: an ilock that is dropped is given up, whether the lock is held then or free: nobody waits for it. Shared
// ones do not exclude each other.
// Break: in drop_request, look once more whether the lock can be had.
void ilock_dropped(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1);
  for (std::size_t i = 0; i < ctx.rounds(20); ++i) {
    if (ctx.rank() == 0) win->lock_nothrow(rma::exclusive, 0) == rma::status::done ? void() : ctx.fail("lock");
    ctx.world().barrier();
    {
      rma::Request wanted;
      if (ctx.rank() != 0) {
        wanted = win->ilock(rma::exclusive, 0);
        ctx.check(!wanted.test(), "a second holder");
        if (i % 2 == 0) wanted = rma::Request();
      }
      ctx.world().barrier();
      if (ctx.rank() == 0) win->unlock(0);
      ctx.world().barrier();
    }
    ctx.world().barrier();
    rma::Request shared = win->ilock(rma::shared, 0);
    shared.wait();
    ctx.world().barrier();  // all hold it
    win->iunlock(0).wait();
    ctx.world().barrier();
  }
  win.free();
}

// Goal: while an ilock has not ended, no other lock of its target begins, nor an epoch that does not go with a lock;
// locks of others do, and all that ends with it. Break: in ilock, look at what is held alone; in lock_slow, too.
void ilock_pending(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1);
  constexpr auto refused = rma::status::wrong_epoch;
  for (std::size_t i = 0; i < ctx.rounds(20); ++i) {
    if (ctx.rank() == 0) ctx.expect(win->lock_nothrow(rma::exclusive, 0), rma::status::done, "lock");
    ctx.world().barrier();
    if (ctx.rank() == 0) {
      ctx.world().barrier();
      win->unlock(0);
    } else {
      rma::Request wanted = win->ilock(rma::exclusive, 0);
      ctx.expect(win->lock_nothrow(rma::shared, 0), refused, "a lock beside an ilock");
      ctx.expect(win->lock_all_nothrow(), refused, "a lock_all beside an ilock");
      ctx.throws(refused, {"the request of ilock(0) is not complete; wait for it first"},
                 [&] { (void)win->ilock(rma::shared, 0); });
      ctx.throws(refused, {"the request of ilock(0) is not complete"}, [&] { win->fence(); });
      ctx.expect(win->lock_nothrow(rma::exclusive, ctx.rank()), rma::status::done, "a lock of another target");
      win->unlock(ctx.rank());
      if (i % 2 == 0) wanted = rma::Request();
      ctx.world().barrier();
      if (i % 2 != 0) {
        wanted.wait();
        win->unlock(0);
      }
    }
    { const auto epoch = win->lock_all(); }
    ctx.world().barrier();
  }
  win.free();
}

// Goal: an ilock whose window is dropped is given up as well, and its request says so.
// Break: let drop_window leave it to itself.
void ilock_outlives_window(context& ctx) {
  auto win = rma::Window<std::uint64_t>::allocate(ctx.world(), 1);
  if (ctx.rank() == 0) ctx.expect(win.lock_nothrow(rma::exclusive, 0), rma::status::done, "lock");
  ctx.world().barrier();
  rma::Request wanted;
  rma::Request unasked;
  if (ctx.rank() == 1) {
    wanted = win.ilock(rma::exclusive, 0);
    const auto dropped = std::move(win);
  } else if (ctx.rank() != 0) {
    unasked = win.ilock(rma::shared, 0);
  }
  ctx.world().barrier();
  if (ctx.rank() == 0) win.unlock(0);
  if (ctx.rank() == 1) {
    ctx.expect(wanted.wait_nothrow(), rma::status::window_freed, "ilock of a window that was dropped");
  } else {
    if (ctx.rank() != 0) unasked.wait();
    if (ctx.rank() != 0) win.unlock(0);
    ctx.expect(win.lock_nothrow(rma::exclusive, 0), rma::status::done, "lock behind it");
    win.unlock(0);
  }
  ctx.world().barrier();
}

// Goal: iflush of several targets at once, iflush_all; buffers and targets are done when the requests are.
void iflush_all_targets(context& ctx) {
  constexpr std::size_t count = 3000;
  test_window<std::uint64_t> win(ctx, count * static_cast<std::size_t>(ctx.size()));
  std::vector<std::uint64_t> from(count);
  const std::size_t mine = count * static_cast<std::size_t>(ctx.rank());
  auto epoch = win->lock_all();
  for (std::size_t round = 0; round < ctx.rounds(10); ++round) {
    fill_tagged(std::span(from), ctx.rank(), round);
    for (int to = 0; to < ctx.size(); ++to) win->put(std::span<const std::uint64_t>(from), to, win.at(to, mine));
    if (round % 2 == 0) {
      win->iflush_all().wait();
    } else {
      std::vector<rma::Request> each;
      for (int to = 0; to < ctx.size(); ++to) each.push_back(win->iflush(to));
      rma::wait_all(each);
    }
    ctx.world().barrier();
    for (int r = 0; r < ctx.size(); ++r) {
      const auto part = std::span<const std::uint64_t>(win.local()).subspan(count * static_cast<std::size_t>(r), count);
      if (first_untagged(part, r, round) != count) ctx.fail("a put behind iflush is missing");
    }
    ctx.world().barrier();
  }
  epoch.unlock();
  win.free();
}

// Goal: icomplete closes the epoch of start; the target's wait sees what was put.
void icomplete(context& ctx) {
  test_window<std::uint64_t> win(ctx, 600);
  const int left[] = {ctx.left()};
  const int right[] = {ctx.right()};
  std::vector<std::uint64_t> from(500);
  for (std::uint64_t round = 1; round <= ctx.rounds(200); ++round) {
    std::ranges::fill(from, round);
    win->post(left);
    win->start(right);
    win->put(std::span<const std::uint64_t>(from), ctx.right(), win.at(ctx.right(), 10));
    rma::Request request = win->icomplete();
    if (request.pending()) {
      ctx.expect(win->try_put(round, ctx.right(), win.at(ctx.right(), 0)), rma::status::wrong_epoch,
                 "put while an icomplete is under way");
    }
    request.wait();
    win->wait();
    if (win.local()[509] != round) ctx.fail("a put is missing after wait");
  }
  win.free();
}

// Goal: disjoint ranges are held at the same time, overlapping ones are not, unless both are shared.
// Method: all ranks hold their own range of rank 0 and meet in a barrier; then they update one word under one range.
void ranges(context& ctx) {
  constexpr std::size_t slots = 8;
  const auto ranks = static_cast<std::size_t>(ctx.size());
  test_window<std::uint64_t> win(ctx, slots * (ranks + 1));
  const auto base = [&](std::size_t i) { return ctx.kind() == window_kind::dynamic ? win.at(0, i) : i * 8; };
  const std::size_t mine = slots * (static_cast<std::size_t>(ctx.rank()) + 1);
  for (std::size_t round = 1; round <= ctx.rounds(50); ++round) {
    win->lock_range(rma::exclusive, 0, base(mine), slots * 8);
    ctx.world().barrier();  // everybody holds one
    win->put(round, 0, win.at(0, mine));
    ctx.expect(win->lock_range_nothrow(rma::shared, 0, base(mine + 1), 8), rma::status::wrong_epoch,
               "a range that overlaps one's own");
    win->lock_range(rma::exclusive, 0, base(0), 8);
    const std::uint64_t before = win->get(0, win.at(0, 0));
    win->put(before + 1, 0, win.at(0, 0));
    win->unlock_range(0, base(0), 8);
    win->unlock_range(0, base(mine), slots * 8);
    ctx.world().barrier();
    win->lock_range(rma::shared, 0, base(0), slots * 8);
    ctx.world().barrier();  // everybody holds the same
    const std::uint64_t sum = win->get(0, win.at(0, 0));
    if (sum != round * ranks) ctx.fail("an update under a range is lost");
    win->unlock_range(0, base(0), slots * 8);
    ctx.world().barrier();
  }
  ctx.expect(win->try_unlock_range(0, base(0), 8), rma::status::not_locked, "a range that is not held");
  ctx.expect(win->lock_range_nothrow(rma::shared, ctx.size(), 0, 8), rma::status::bad_rank, "a range of nobody");
  if (ctx.kind() != window_kind::dynamic) {
    ctx.expect(win->lock_range_nothrow(rma::shared, 0, 8 * slots * (ranks + 1), 8), rma::status::out_of_window,
               "a range behind the window");
    ctx.throws(rma::status::bad_argument, {"lock", "range"}, [&] { win->lock_range(rma::shared, 0, 0, 0); });
  }
  ctx.world().barrier();
  win.free();
}

// Goal: an exclusive lock of the whole target excludes ranges, and ranges exclude it.
void range_and_whole(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  const auto base = [&](std::size_t i) { return ctx.kind() == window_kind::dynamic ? win.at(0, i) : i * 8; };
  const std::size_t rounds = ctx.rounds(50);
  for (std::size_t round = 0; round < rounds; ++round) {
    const bool whole = ctx.random()() % 2 == 0;
    if (whole) {
      ctx.expect(win->lock_nothrow(rma::exclusive, 0), rma::status::done, "lock");
    } else {
      win->lock_range(rma::exclusive, 0, base(1), 8);
    }
    const std::uint64_t before = win->get(0, win.at(0, 1));
    win->put(before + 1, 0, win.at(0, 1));
    whole ? win->unlock(0) : win->unlock_range(0, base(1), 8);
  }
  ctx.world().barrier();
  if (ctx.rank() == 0)
    ctx.equal(win.local()[1], static_cast<std::uint64_t>(rounds) * static_cast<std::uint64_t>(ctx.size()), "updates");
  win.free();
}

// Goal: fences in a ring of neighbors: puts from the left are there, and none of the next round come early.
// Break: leave the fence before the origins have finished, or before the targets are open.
void neighbors(context& ctx) {
  constexpr std::size_t count = 1000;
  test_window<std::uint64_t> win(ctx, 2 * count);
  std::vector<int> around = {ctx.left()};
  if (ctx.right() != ctx.left()) around.push_back(ctx.right());
  ctx.throws(rma::status::bad_argument, {"neighbors"}, [&] { win->fence_neighbors(); });
  win->neighbors(around, around);
  std::vector<std::uint64_t> from(count);
  win->fence_neighbors();
  const std::size_t rounds = ctx.rounds(500);
  for (std::size_t round = 1; round <= rounds; ++round) {
    fill_tagged(std::span(from), ctx.rank(), round);
    const std::size_t some = 1 + ctx.random()() % count;
    win->put(std::span<const std::uint64_t>(from).first(some), ctx.right(), win.at(ctx.right(), 0));
    win->put(static_cast<std::uint64_t>(some), ctx.left(), win.at(ctx.left(), count));
    win->put(std::span<const std::uint64_t>(from).subspan(count - 1), ctx.right(), win.at(ctx.right(), count - 1));
    win->fence_neighbors();
    const auto all = std::span<const std::uint64_t>(win.local());
    if (all[count - 1] != tagged<std::uint64_t>(ctx.left(), count - 1, round)) ctx.fail("the last put is missing");
    if (all[0] != tagged<std::uint64_t>(ctx.left(), 0, round)) ctx.fail("the first put is missing");
    if (all[count] == 0 || all[count] > count) ctx.fail("the put from the right is missing");
    win->fence_neighbors(rma::no_put);
  }
  if (ctx.size() > 3) {
    const int far = (ctx.rank() + 2) % ctx.size();
    ctx.expect(win->try_put(from[0], far, win.at(far, 0)), rma::status::wrong_epoch, "put to a rank that is none");
  }
  win->fence_neighbors(rma::no_succeed);
  win.free();
}

/// A window with this design of fences; none if the fabric has no immediates, which imm-ri needs.
std::optional<test_window<std::uint64_t>> window_with(context& ctx, rma::fence_kind kind) {
  std::optional<test_window<std::uint64_t>> win;
  try {
    win.emplace(ctx, 3, rma::Hints{.fence = kind});
  } catch (const rma::Error& e) {
    const bool says_why =
        std::string_view(e.what()).find("needs a fabric that writes with an immediate") != std::string_view::npos;
    ctx.check(kind == rma::fence_kind::imm_ri && e.code() == rma::status::not_supported && says_why, e.what());
  }
  return win;
}

// Goal: each window can have its own design of fences, and says which; only imm-ri may be refused.
void designs(context& ctx) {
  for (const rma::fence_kind kind : {rma::fence_kind::placed, rma::fence_kind::def, rma::fence_kind::imm_naive,
                                     rma::fence_kind::imm_opt, rma::fence_kind::imm_ri}) {
    std::optional<test_window<std::uint64_t>> made = window_with(ctx, kind);
    if (!made) continue;
    test_window<std::uint64_t>& win = *made;
    ctx.check(win->fence_design() == kind, "the fence is not the one that was wished for");
    for (std::uint64_t round = 1; round <= ctx.rounds(50, 20); ++round) {
      win->fence();
      win->put(round, ctx.right(), win.at(ctx.right(), 0));
      win->accumulate(std::uint64_t{1}, 0, win.at(0, 1), rma::sum);
      (void)win->fetch_and_op(std::uint64_t{1}, 0, win.at(0, 2), rma::sum);
      win->fence();
      if (win.local()[0] != round) ctx.fail("a put is missing");
      const std::uint64_t sum = round * static_cast<std::uint64_t>(ctx.size());
      if (ctx.rank() == 0 && (win.local()[1] != sum || win.local()[2] != sum)) ctx.fail("an update is missing");
    }
    win->fence(rma::no_succeed);
    win.free();
  }
}

// Goal: any number of puts between two fences, more than there are receive descriptors; a target that calls nothing
// meanwhile.
void many_puts(context& ctx) {
  const std::size_t puts = std::max<std::size_t>(ctx.rounds(5000), 500);
  test_window<std::uint64_t> win(ctx, puts);
  win->fence();
  std::vector<std::uint64_t> from(puts);
  for (std::uint64_t round = 1; round <= 2; ++round) {
    for (std::size_t i = 0; i < puts; ++i) {
      from[i] = round * puts + i;
      win->put(std::span<const std::uint64_t>(from).subspan(i, 1), ctx.right(), win.at(ctx.right(), i));
    }
    win->fence();
    for (std::size_t i = 0; i < puts; ++i) {
      if (win.local()[i] != round * puts + i) ctx.fail("one of many puts is missing");
    }
    win->fence(rma::no_precede);
  }
  win->fence(rma::no_succeed);
  win.free();
}

constexpr test_case synchronization_table[] = {
    {"sync.ifence", ifence, each_kind},
    {"sync.several_at_once", several_at_once, each_kind},
    {"sync.ilock_excludes", ilock_excludes, each_kind},
    {"sync.ilock_dropped", ilock_dropped},
    {"sync.ilock_pending", ilock_pending},
    {"sync.ilock_outlives_window", ilock_outlives_window},
    {"sync.iflush_all_targets", iflush_all_targets, each_kind},
    {"sync.icomplete", icomplete, each_kind},
    {"sync.ranges", ranges, each_kind},
    {"sync.range_and_whole", range_and_whole},
    {"sync.neighbors", neighbors, each_kind},
    {"sync.fence_designs", designs, each_kind},
    {"sync.many_puts", many_puts, each_kind},
};

}  // namespace

std::span<const test_case> synchronization_cases() noexcept { return synchronization_table; }

}  // namespace conformance
