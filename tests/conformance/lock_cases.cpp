// SPDX-License-Identifier: Apache-2.0
// Passive target epochs: locks exclude, flush completes, sync orders.
#include <algorithm>
#include <cstdint>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

// Goal: an exclusive lock excludes: no update under it is lost.
// Method: every rank counts up a word at every target by get, put, unlock, without atomics.
// Break: take the lock by a plain store instead of compare-and-exchange.
void exclusive_counters(context& ctx) {
  test_window<std::uint64_t> win(ctx, 2);
  const std::size_t rounds = ctx.rounds(2000);
  for (std::size_t i = 0; i < rounds; ++i) {
    const int to = i % 2 == 0 ? 0 : ctx.size() - 1;
    const auto hold = win->lock(rma::exclusive, to);
    const std::uint64_t seen = win->get(to, win.at(to, 1));
    win->put(seen + 1, to, win.at(to, 1));
  }
  ctx.world().barrier();
  const std::uint64_t at_first = (rounds + 1) / 2 * static_cast<std::uint64_t>(ctx.size());
  const std::uint64_t at_last = rounds / 2 * static_cast<std::uint64_t>(ctx.size());
  const std::uint64_t wanted = ctx.size() == 1 ? at_first + at_last : ctx.rank() == 0 ? at_first : at_last;
  if (ctx.rank() == 0 || ctx.rank() == ctx.size() - 1) ctx.equal(win.local()[1], wanted, "updates under the lock");
  win.free();
}

// Goal: the owner's plain loads and stores under an exclusive lock of its own part are excluded, too.
void owner_locks_itself(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1);
  const std::size_t rounds = ctx.rounds(1000);
  for (std::size_t i = 0; i < rounds; ++i) {
    if (ctx.rank() == 0) {
      const auto hold = win->lock(rma::exclusive, 0);
      win.local()[0] = win.local()[0] + 1;
    } else {
      const auto hold = win->lock(rma::exclusive, 0);
      win->put(win->get(0, win.at(0, 0)) + 1, 0, win.at(0, 0));
    }
  }
  ctx.world().barrier();
  if (ctx.rank() == 0) {
    ctx.equal(win.local()[0], rounds * static_cast<std::uint64_t>(ctx.size()), "updates by owner and others");
  }
  win.free();
}

// Goal: shared holders, by lock or lock_all, never see half of what a writer does; writers never meet.
// Method: writers set two distant words to the same new value under exclusive locks; readers compare them.
void readers_and_writers(context& ctx) {
  constexpr std::size_t apart = 10000;
  test_window<std::uint64_t> win(ctx, apart + 1);
  const std::size_t rounds = ctx.rounds(3000);
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::uint64_t what = ctx.random()() % 4;
    if (what == 0) {
      const auto hold = win->lock(rma::exclusive, 0);
      const std::uint64_t next = win->get(0, win.at(0, 0)) + 1;
      win->put(next, 0, win.at(0, 0));
      win->put(next, 0, win.at(0, apart));
      ++written;
    } else {
      const auto hold = what == 1 ? win->lock_all() : win->lock(rma::shared, 0);
      const std::uint64_t a = win->get(0, win.at(0, 0));
      const std::uint64_t b = win->get(0, win.at(0, apart));
      if (a != b) ctx.fail("a reader saw half of an update");
    }
  }
  const std::uint64_t total = ctx.world().allreduce(written, rma::sum);
  if (ctx.rank() == 0) ctx.equal(win.local()[apart], total, "updates of all writers");
  win.free();
}

// Goal: the same when writers are so rare that readers get the lock by their records, and lose that again.
// Method: as above, one epoch in 200 is a writer's; readers that stay make the writer wait for them.
// Break: let the writer in without looking at the readers' records.
void rare_writers(context& ctx) {
  constexpr std::size_t apart = 10000;
  test_window<std::uint64_t> win(ctx, apart + 1);
  const std::size_t rounds = ctx.rounds(ctx.world().one_node() ? 200000 : 20000);  // by a network: far slower
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::uint64_t what = ctx.random()() % 200;
    if (what == 0) {
      const auto hold = win->lock(rma::exclusive, 0);
      const std::uint64_t next = win->get(0, win.at(0, 0)) + 1;
      win->put(next, 0, win.at(0, 0));
      for (int k = 0; k < 20; ++k) (void)win->get(0, win.at(0, 1));
      win->put(next, 0, win.at(0, apart));
      ++written;
    } else {
      const auto hold = what % 2 == 1 ? win->lock_all() : win->lock(rma::shared, 0);
      const std::uint64_t a = win->get(0, win.at(0, 0));
      for (std::uint64_t k = 0; k < what % 32; ++k) (void)win->get(0, win.at(0, 1));
      const std::uint64_t b = win->get(0, win.at(0, apart));
      if (a != b) ctx.fail("a reader saw half of an update");
    }
  }
  const std::uint64_t total = ctx.world().allreduce(written, rma::sum);
  if (ctx.rank() == 0) ctx.equal(win.local()[apart], total, "updates of all writers");
  win.free();
}

// Goal: a rank may hold several targets, shared and exclusive mixed, and release them in any order.
void several_targets(context& ctx) {
  test_window<std::uint64_t> win(ctx, 2);
  const std::size_t rounds = ctx.rounds(300);
  for (std::size_t i = 0; i < rounds; ++i) {
    for (int to = 0; to < ctx.size(); ++to) {  // in rising order: no circle of waiters
      ctx.expect(win->lock_nothrow(to % 2 == 0 ? rma::exclusive : rma::shared, to), rma::status::done,
                 "lock of one of several");
    }
    for (int to = 0; to < ctx.size(); ++to) {
      if (to % 2 == 0) win->put(win->get(to, win.at(to, 0)) + 1, to, win.at(to, 0));
      win->accumulate(std::uint64_t{1}, to, win.at(to, 1), rma::sum);
    }
    for (int step = 0; step < ctx.size(); ++step) {
      const int to = (ctx.rank() + step) % ctx.size();
      ctx.expect(win->try_unlock(to), rma::status::done, "unlock of one of several");
    }
  }
  ctx.world().barrier();
  const std::uint64_t wanted = rounds * static_cast<std::uint64_t>(ctx.size());
  if (ctx.rank() % 2 == 0) ctx.equal(win.local()[0], wanted, "counter under exclusive locks");
  ctx.equal(win.local()[1], wanted, "counter by accumulate");
  win.free();
}

// Goal: flush and flush_all make puts visible to others before the epoch ends; a rank sees its own puts after them.
// Method: under lock_all, a ring: put, flush, then tell by a barrier; the target reads by get from itself.
void flush_completes(context& ctx) {
  constexpr std::size_t count = 5000;
  test_window<std::uint32_t> win(ctx, count);
  std::vector<std::uint32_t> from(count);
  std::vector<std::uint32_t> back(count);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(100);
  for (std::size_t round = 1; round <= rounds; ++round) {
    fill_tagged(std::span(from), ctx.rank(), round);
    win->put(std::span<const std::uint32_t>(from), ctx.right(), win.at(ctx.right(), 0));
    if (round % 2 == 0) {
      win->flush(ctx.right());
    } else {
      win->flush_all();
    }
    win->get(std::span(back), ctx.right(), win.at(ctx.right(), 0));
    if (round % 2 == 0) {
      win->flush_local(ctx.right());
    } else {
      win->flush_local_all();
    }
    if (first_untagged(std::span<const std::uint32_t>(back), ctx.rank(), round) != count)
      ctx.fail("own put after flush");
    ctx.world().barrier();
    win->sync();
    const std::span<const std::uint32_t> part(win.local());
    if (first_untagged(part, ctx.left(), round) != count) ctx.fail("put of the left after flush and barrier");
    ctx.world().barrier();
  }
  win->unlock_all();
  win.free();
}

// Goal: sync makes the owner's plain stores visible to gets, inside one long epoch.
void sync_publishes_stores(context& ctx) {
  test_window<std::uint64_t> win(ctx, 16);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(500);
  for (std::size_t round = 1; round <= rounds; ++round) {
    fill_tagged(win.local(), ctx.rank(), round);
    win->sync();
    ctx.world().barrier();
    const std::size_t i = ctx.random()() % 16;
    if (win->get(ctx.right(), win.at(ctx.right(), i)) != tagged<std::uint64_t>(ctx.right(), i, round)) {
      ctx.fail("a store before sync was not seen");
    }
    ctx.world().barrier();
  }
  win->unlock_all();
  win.free();
}

// Goal: the scope and the explicit calls are the same lock: unlock through either ends it once.
void scopes_and_calls(context& ctx) {
  test_window<std::uint64_t> win(ctx, 2);
  for (int i = 0; i < 50; ++i) {
    rma::Epoch outer = win->lock(rma::exclusive, ctx.right());
    win->put(std::uint64_t{5}, ctx.right(), win.at(ctx.right(), 0));
    outer.flush();
    rma::Epoch moved = std::move(outer);
    win->put(std::uint64_t{6}, ctx.right(), win.at(ctx.right(), 1));
    moved.unlock();
    ctx.expect(win->try_unlock(ctx.right()), rma::status::not_locked, "unlock after the scope's unlock");
    ctx.throws(rma::status::not_locked, {"unlock"}, [&] { moved.unlock(); });
    ctx.throws(rma::status::not_locked, {"flush"}, [&] { moved.flush(); });
    ctx.throws(rma::status::not_locked, {"flush"}, [&] { outer.flush(); });  // NOLINT: moved from, that is the point
    auto all = win->lock_all();
    ctx.equal(win->get(ctx.right(), win.at(ctx.right(), 1)), std::uint64_t{6}, "put before the scope's unlock");
    all.unlock();
    ctx.expect(win->try_unlock_all(), rma::status::not_locked, "unlock_all after the scope's unlock");
  }
  ctx.world().barrier();
  win.free();
}

// Goal: no_check is honored: with nobody competing it locks, operates and unlocks like any other.
void no_check(context& ctx) {
  test_window<std::uint64_t> win(ctx, static_cast<std::size_t>(ctx.size()));
  const auto mine = static_cast<std::size_t>(ctx.rank());
  for (std::uint64_t round = 1; round <= 100; ++round) {
    {
      const auto hold = win->lock(rma::shared, ctx.right(), rma::no_check);
      win->put(round, ctx.right(), win.at(ctx.right(), mine));
    }
    const auto hold = win->lock_all(rma::no_check);
    if (win->get(ctx.right(), win.at(ctx.right(), mine)) != round) ctx.fail("put under no_check");
  }
  ctx.world().barrier();
  win.free();
}

// Goal: shared holders do not exclude each other.
// Method: all ranks take rank 0's lock shared and meet in a barrier while they hold it: if they excluded each other,
// nobody would get out. Then lock and lock_all.
void shared_is_shared(context& ctx) {
  test_window<int> win(ctx, 1);
  for (int i = 0; i < 50; ++i) {
    const bool all = (ctx.rank() + i) % 2 == 0;
    const auto hold = all ? win->lock_all() : win->lock(rma::shared, 0);
    (void)win->get(0, win.at(0, 0));
    ctx.world().barrier();
  }
  win.free();
}

// Goal: every waiter gets the lock in the end, whoever competes.
// Method: all ranks take the same lock many times; the shares are known to be equal at the end, so nobody may starve
// for ever; shared and exclusive mixed with lock_all by rank.
void nobody_starves(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1);
  const std::size_t rounds = ctx.rounds(2000);
  for (std::size_t i = 0; i < rounds; ++i) {
    if (ctx.rank() % 3 == 2) {
      const auto hold = win->lock_all();
      win->accumulate(std::uint64_t{1}, 0, win.at(0, 0), rma::sum);
    } else {
      const auto hold = win->lock(ctx.rank() % 3 == 0 ? rma::exclusive : rma::shared, 0);
      win->accumulate(std::uint64_t{1}, 0, win.at(0, 0), rma::sum);
    }
  }
  ctx.world().barrier();
  if (ctx.rank() == 0)
    ctx.equal(win.local()[0], rounds * static_cast<std::uint64_t>(ctx.size()), "epochs of all ranks");
  win.free();
}

// Goal: a target that computes, and one that waits outside of all calls on the window, can be locked, read and written.
// Method: rank 0 waits in a broadcast for a message that rank 1 sends after its epochs.
void target_is_passive(context& ctx) {
  test_window<std::uint64_t> win(ctx, 64);
  std::uint64_t done = 0;
  if (ctx.rank() == 1) {
    for (std::uint64_t i = 0; i < 64; ++i) {
      const auto hold = win->lock(rma::exclusive, 0);
      win->put(i + 1, 0, win.at(0, i));
    }
    done = 1;
  }
  ctx.world().broadcast(std::span(&done, 1), 1);
  ctx.equal(done, std::uint64_t{1}, "message of rank 1");
  if (ctx.rank() == 0) {
    for (std::uint64_t i = 0; i < 64; ++i) ctx.equal(win.local()[i], i + 1, "put into a passive target");
  }
  win.free();
}

constexpr test_case lock_table[] = {
    {"lock.exclusive_counters", exclusive_counters, each_kind},
    {"lock.owner_locks_itself", owner_locks_itself, each_kind},
    {"lock.readers_and_writers", readers_and_writers, each_kind},
    {"lock.rare_writers", rare_writers, only(window_kind::allocated)},
    {"lock.several_targets", several_targets, each_kind},
    {"lock.flush_completes", flush_completes, each_kind},
    {"lock.sync_publishes_stores", sync_publishes_stores, each_kind},
    {"lock.scopes_and_calls", scopes_and_calls, each_kind},
    {"lock.no_check", no_check, each_kind},
    {"lock.shared_is_shared", shared_is_shared, each_kind},
    {"lock.nobody_starves", nobody_starves, each_kind},
    {"lock.target_is_passive", target_is_passive, each_kind, 2},
};

}  // namespace

std::span<const test_case> lock_cases() noexcept { return lock_table; }

}  // namespace conformance
