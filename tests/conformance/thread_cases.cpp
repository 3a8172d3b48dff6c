// SPDX-License-Identifier: Apache-2.0
// Several threads of one rank: what each thread level allows, and that the others are refused. Cases of level multiple
// need RMA_THREADS=multiple; simulated ranks are fibers, of which a thread knows nothing.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using words = std::span<const std::uint64_t>;

constexpr std::size_t thread_count = 3;

void need_threads(context& ctx) {
  for (const rma::Setting& s : ctx.runtime().settings()) {
    if (s.name == "RMA_BOOT" && s.value.starts_with("sim:")) context::skip("a simulated rank has one thread");
  }
}

void need_multiple(context& ctx) {
  need_threads(ctx);
  if (ctx.runtime().threads() != rma::thread_level::multiple) context::skip("needs RMA_THREADS=multiple");
}

/// Runs `work(index)` on so many threads at once, and waits for them. An exception of one of them ends the case.
void at_once(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::mutex lock;
  std::string wrong;
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back([&, i] {
      try {
        work(i);
      } catch (const std::exception& e) {
        const std::scoped_lock hold(lock);
        wrong = e.what();
      }
    });
  }
  for (std::thread& t : all) t.join();
  if (!wrong.empty()) throw std::runtime_error("on another thread: " + wrong);
}

std::uint64_t all_threads(const context& ctx) { return static_cast<std::uint64_t>(ctx.size()) * thread_count; }

// Goal: the level is what was asked for, by its name.
void level_is_granted(context& ctx) {
  for (const rma::Setting& s : ctx.runtime().settings()) {
    if (s.name == "RMA_THREADS") ctx.equal(s.value, std::string(name_of(ctx.runtime().threads())), "level");
  }
}

// Goal: at levels single and funneled a call of another thread is refused and changes nothing, and the one that made
// the runtime goes on. Method: a runtime of one rank for each level; its calls from another thread.
// Break: leave out check_caller.
void foreign_thread_is_refused(context& ctx) {
  need_threads(ctx);
  for (const rma::thread_level level : {rma::thread_level::single, rma::thread_level::funneled}) {
    rma::Runtime alone(rma::Config{.environment = false, .threads = level});
    auto win = rma::Window<std::uint64_t>::allocate(alone.world(), 4, {.name = "mine", .signals = 1});
    const auto remote = [&](const std::function<void()>& call, std::string_view name) {
      std::thread([&] { ctx.throws(rma::status::wrong_thread, {name, "RMA_THREADS", "serialized"}, call); }).join();
    };
    remote([&] { alone.world().barrier(); }, "barrier");
    remote([&] { (void)alone.world().split(0); }, "split");
    remote([&] { (void)alone.team_of("rma://self"); }, "team_of");
    remote([&] { (void)rma::Window<std::uint64_t>::allocate(alone.world(), 1); }, "allocate");
    remote([&] { win.fence(); }, "fence");
    remote([&] { win.wait_signal(0); }, "wait_signal");
    const unsigned signals[] = {0};
    remote([&] { (void)win.wait_any_signal(signals); }, "signal");
    remote([&] { (void)win.test_any_signal(signals); }, "signal");
    remote([&] { (void)alone.world().scan(1, rma::sum); }, "scan");
    remote([&] { (void)alone.world().alltoall(std::span(signals)); }, "alltoall");
    remote([&] { (void)alone.world().allgatherv(std::span(signals)); }, "allgatherv");
    remote([&] { win.free(); }, "free");
    {
      const auto hold = win.lock(rma::exclusive, 0);
      win.put(5, 0, 1);
      remote([&] { win.rput(words(win.local()).first(1), 0, 5).wait(); }, "put");
    }
    ctx.equal(win.local()[1], std::uint64_t{5}, "what the runtime's thread has put");
    win.free();
  }
}

// Goal: threads that make, use and free windows of a team each do not disturb each other, at the default level, too.
// Method: different orders on different ranks, so that the same place is asked for by several at once.
// Break: let segment_map::take say yes always.
void team_for_each_thread(context& ctx) {
  need_threads(ctx);
  if (ctx.runtime().threads() < rma::thread_level::serialized) context::skip("needs several threads");
  std::vector<rma::Team> teams;
  for (std::size_t i = 0; i < thread_count; ++i) teams.push_back(ctx.world().split(0));
  const std::size_t rounds = ctx.rounds(40, 2);
  std::atomic<std::uint64_t> wrong = 0;
  at_once(thread_count, [&](std::size_t t) {
    rma::Team& team = teams[t];
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::size_t count = 100 + 3000 * ((t + i) % 3);
      test_window<std::uint64_t> win(team, ctx.kind(), count);
      fill_tagged(win.local(), ctx.rank(), t);
      team.barrier();
      std::vector<std::uint64_t> got(count);
      {
        const auto hold = win->lock(rma::shared, ctx.right());
        win->get(std::span(got), ctx.right(), win.at(ctx.right(), 0));
      }
      if (first_untagged(words(got), ctx.right(), t) != count) ++wrong;
      win.free();
    }
  });
  ctx.equal(wrong.load(), std::uint64_t{0}, "windows with another window's data");
}

// Goal: threads of one lock_all epoch put, get and update disjoint and common places of one window, and flush.
// Method: each thread has places of its own at every target, whose values it reads back; counters are everybody's.
// Break: leave out the window's mutex.
void one_window(context& ctx) {
  need_multiple(ctx);
  constexpr std::size_t each = 64;
  const auto ranks = static_cast<std::size_t>(ctx.size());
  test_window<std::uint64_t> win(ctx, (1 + ranks * thread_count) * each);
  const std::size_t rounds = ctx.rounds(2000, 5);
  std::atomic<std::uint64_t> wrong = 0;
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  at_once(thread_count, [&](std::size_t t) {
    const std::size_t mine = (1 + static_cast<std::size_t>(ctx.rank()) * thread_count + t) * each;
    std::vector<std::uint64_t> from(each);
    std::vector<std::uint64_t> back(each);
    for (std::size_t i = 0; i < rounds; ++i) {
      const int to = static_cast<int>((i + t) % ranks);
      fill_tagged(std::span(from), ctx.rank(), i * thread_count + t);
      win->put(words(from), to, win.at(to, mine));
      win->accumulate(std::uint64_t{1}, to, win.at(to, 0), rma::sum);
      win->flush(to);
      win->get(std::span(back), to, win.at(to, mine));
      (void)win->fetch_and_op(std::uint64_t{1}, to, win.at(to, 1), rma::sum);
      win->flush(to);
      if (first_untagged(words(back), ctx.rank(), i * thread_count + t) != each) ++wrong;
      win->put(i, to, win.at(to, mine + i % each));
      if (i % 16 == 0) {
        win->flush_all();
      } else {
        win->flush(to);
      }
    }
  });
  win->unlock_all();
  ctx.world().barrier();
  ctx.equal(wrong.load(), std::uint64_t{0}, "threads that did not get what they had put");
  const std::uint64_t sums = ctx.world().allreduce(win.local()[0], rma::sum);
  const std::uint64_t fetched = ctx.world().allreduce(win.local()[1], rma::sum);
  ctx.equal(sums, all_threads(ctx) * rounds, "accumulates");
  ctx.equal(fetched, all_threads(ctx) * rounds, "fetch_and_op");
  win.free();
}

// Goal: threads take locks of different targets of one window at once; what is counted under a lock is not lost.
// Method: thread t has the targets that are t modulo the number of threads; its rank's other threads and all other
// ranks compete. Break: hold the window mutex while waiting for a lock: ranks wait for each other in a cycle.
void locks_of_different_targets(context& ctx) {
  need_multiple(ctx);
  const auto ranks = static_cast<std::size_t>(ctx.size());
  test_window<std::uint64_t> win(ctx, 2);
  const std::size_t rounds = ctx.rounds(1000, 5);
  at_once(std::min(ranks, thread_count), [&](std::size_t t) {
    const std::size_t threads = std::min(ranks, thread_count);
    for (std::size_t i = 0; i < rounds; ++i) {
      for (std::size_t target = t; target < ranks; target += threads) {
        const int to = static_cast<int>(target);
        const auto hold = win->lock(rma::exclusive, to);
        if (i % 2 == 0) {
          win->put(win->get(to, win.at(to, 0)) + 1, to, win.at(to, 0));
        } else {
          win->accumulate(std::uint64_t{1}, to, win.at(to, 1), rma::sum);  // may wait for the unlock
        }
      }
    }
  });
  ctx.world().barrier();
  ctx.equal(win.local()[0], std::uint64_t{(rounds + 1) / 2 * ranks}, "updates under the lock");
  ctx.equal(win.local()[1], std::uint64_t{rounds / 2 * ranks}, "accumulates under the lock");
  win.free();
}

// Goal: a thread that waits for a lock does not keep another thread of its rank from giving one back.
// Method: the first and the last rank hold each its own lock by one thread, while a second thread wants the other's.
// Break: hold the window mutex while waiting for a lock.
void lock_waits_for_the_other(context& ctx) {
  need_multiple(ctx);
  test_window<std::uint64_t> win(ctx, 1);
  const std::size_t rounds = ctx.rounds(300, 2);
  const int last = ctx.size() - 1;
  const bool holder = ctx.rank() == 0 || ctx.rank() == last;
  const auto add = [&](int to) { win->put(win->get(to, win.at(to, 0)) + 1, to, win.at(to, 0)); };
  for (std::size_t i = 0; i < rounds; ++i) {
    if (holder) ctx.expect(win->lock_nothrow(rma::exclusive, ctx.rank()), rma::status::done, "lock of its own");
    ctx.world().barrier();
    if (holder) {
      std::thread other([&] {
        const int to = last - ctx.rank();
        if (win->lock_nothrow(rma::exclusive, to) == rma::status::done) add(to);
        (void)win->try_unlock(to);
      });
      add(ctx.rank());
      ctx.expect(win->try_unlock(ctx.rank()), rma::status::done, "unlock of its own");
      other.join();
    }
    ctx.world().barrier();
  }
  if (holder) ctx.equal(win.local()[0], std::uint64_t{2 * rounds}, "updates by the owner and the other");
  win.free();
}

// Goal: one thread locks, another puts in that epoch, a third flushes, the first unlocks; meanwhile a second lock of
// the same target is refused.
void shared_epoch(context& ctx) {
  need_multiple(ctx);
  test_window<std::uint64_t> win(ctx, 4);
  const int to = ctx.right();
  const auto place = win.at(to, 1);
  std::thread([&] { ctx.expect(win->lock_nothrow(rma::shared, to), rma::status::done, "lock"); }).join();
  std::thread([&] { ctx.expect(win->try_put(std::uint64_t{7}, to, place), rma::status::done, "put"); }).join();
  std::thread([&] { ctx.expect(win->try_flush(to), rma::status::done, "flush"); }).join();
  ctx.expect(win->lock_nothrow(rma::shared, to), rma::status::wrong_epoch, "a second lock");
  ctx.equal(win->get(to, place), std::uint64_t{7}, "what another thread has put and a third flushed");
  ctx.expect(win->try_unlock(to), rma::status::done, "unlock");
  ctx.world().barrier();
  win.free();
}

// Goal: a put with a signal wakes the thread that waits for it, and no other; other threads of that rank go on.
// Method: each thread of a rank sends round by round to the same thread of the next rank, by a signal of its own.
// Break: hold the window mutex in wait_signal.
void signal_for_each_thread(context& ctx) {
  need_multiple(ctx);
  constexpr std::size_t each = 200;
  test_window<std::uint64_t> win(ctx, thread_count * each);
  const std::size_t rounds = ctx.rounds(1000, 3);
  std::atomic<std::uint64_t> wrong = 0;
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  at_once(thread_count, [&](std::size_t t) {
    const auto there = static_cast<unsigned>(t);
    const auto taken = static_cast<unsigned>(thread_count + t);
    std::vector<std::uint64_t> from(each);
    for (std::size_t i = 0; i < rounds; ++i) {
      fill_tagged(std::span(from), ctx.rank(), i * thread_count + t);
      win->put_signal(words(from), ctx.right(), win.at(ctx.right(), t * each), there);
      win->wait_signal(there, 1, ctx.left());
      const words got = words(win.local()).subspan(t * each, each);
      if (first_untagged(got, ctx.left(), i * thread_count + t) != each) ++wrong;
      win->put_signal({}, ctx.left(), win.at(ctx.left(), 0), taken);
      win->wait_signal(taken, 1, ctx.right());
    }
  });
  win->unlock_all();
  ctx.equal(wrong.load(), std::uint64_t{0}, "signals that came before their data");
  win.free();
}

// Goal: a set of a rank's own signal by one of its threads ends the wait of another thread that it is high enough for.
// Method: two threads of each rank take turns. Break: let set_signal set one less (src/sync/active.cpp).
void set_wakes_a_thread(context& ctx) {
  need_multiple(ctx);
  test_window<std::uint64_t> win(ctx, 1);
  const std::size_t rounds = ctx.rounds(1000, 3);
  at_once(2, [&](std::size_t t) {
    const auto mine = static_cast<unsigned>(t);
    for (std::size_t i = 0; i < rounds; ++i) {
      if (t == 0) win->set_signal(1, 2);
      win->wait_signal(mine, 2);
      if (t == 1) win->set_signal(0, 2);
    }
  });
  ctx.equal(win->signal_value(0) + win->signal_value(1), std::uint64_t{0}, "signals left over");
  win.free();
}

// Goal: requests of several threads on one window end each for its own thread; flush requests and lock requests, too.
void requests_of_threads(context& ctx) {
  need_multiple(ctx);
  constexpr std::size_t each = 500;
  test_window<std::uint64_t> win(ctx, static_cast<std::size_t>(ctx.size()) * thread_count * each);
  const std::size_t rounds = ctx.rounds(500, 3);
  std::atomic<std::uint64_t> wrong = 0;
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  at_once(thread_count, [&](std::size_t t) {
    const std::size_t mine = (static_cast<std::size_t>(ctx.rank()) * thread_count + t) * each;
    std::vector<std::uint64_t> from(each);
    std::vector<std::uint64_t> back(each);
    for (std::size_t i = 0; i < rounds; ++i) {
      const int to = static_cast<int>((i + t) % static_cast<std::size_t>(ctx.size()));
      fill_tagged(std::span(from), ctx.rank(), i + t);
      std::vector<rma::Request> puts;
      for (std::size_t part = 0; part < 5; ++part) {
        puts.push_back(win->rput(words(from).subspan(part * 100, 100), to, win.at(to, mine + part * 100)));
      }
      rma::wait_all(puts);
      win->iflush(to).wait();
      win->rget(std::span(back), to, win.at(to, mine)).wait();
      if (first_untagged(words(back), ctx.rank(), i + t) != each) ++wrong;
    }
  });
  win->unlock_all();
  ctx.equal(wrong.load(), std::uint64_t{0}, "requests that ended before their time");
  win.free();
}

// Goal: locks of ranges of one target by several threads exclude those of other ranks, and do not mix up.
void ranges_of_threads(context& ctx) {
  need_multiple(ctx);
  test_window<std::uint64_t> win(ctx, thread_count * 8);
  const std::size_t rounds = ctx.rounds(300, 2);
  at_once(thread_count, [&](std::size_t t) {
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::uint64_t offset = win.at(0, t * 8) * (ctx.kind() == window_kind::dynamic ? 1 : 8);
      win->lock_range(rma::exclusive, 0, offset, 64);
      win->put(win->get(0, win.at(0, t * 8)) + 1, 0, win.at(0, t * 8));
      win->unlock_range(0, offset, 64);
    }
  });
  ctx.world().barrier();
  for (std::size_t t = 0; t < thread_count && ctx.rank() == 0; ++t) {
    ctx.equal(win.local()[t * 8], rounds * static_cast<std::uint64_t>(ctx.size()), "updates under a range's lock");
  }
  win.free();
}

// Goal: a window of its own for each thread, all at once: fences, post/start/complete/wait, locks, atomics.
void window_for_each_thread(context& ctx) {
  need_threads(ctx);
  if (ctx.runtime().threads() < rma::thread_level::serialized) context::skip("needs several threads");
  std::vector<std::unique_ptr<test_window<std::uint64_t>>> windows;
  for (std::size_t t = 0; t < thread_count; ++t) {
    windows.push_back(std::make_unique<test_window<std::uint64_t>>(ctx.world(), ctx.kind(), 64));
  }
  const std::size_t rounds = ctx.rounds(500, 3);
  std::atomic<std::uint64_t> wrong = 0;
  at_once(thread_count, [&](std::size_t t) {
    test_window<std::uint64_t>& win = *windows[t];
    const int from = ctx.left();
    const int to = ctx.right();
    for (std::size_t i = 0; i < rounds; ++i) {
      win->fence();
      win->accumulate(std::uint64_t{1}, to, win.at(to, 0), rma::sum);
      win->fence(rma::no_succeed);
      win->post(std::span(&from, 1));
      win->start(std::span(&to, 1));
      win->put(i + 1, to, win.at(to, 1));
      win->complete();
      win->wait();
      if (win.local()[1] != i + 1) ++wrong;
      const auto hold = win->lock(rma::exclusive, 0);
      win->put(win->get(0, win.at(0, 2)) + 1, 0, win.at(0, 2));
    }
  });
  ctx.world().barrier();
  ctx.equal(wrong.load(), std::uint64_t{0}, "puts that were not there after wait");
  for (const auto& win : windows) {
    ctx.equal(win->local()[0], std::uint64_t{rounds}, "accumulates");
    if (ctx.rank() == 0)
      ctx.equal((*win).local()[2], rounds * static_cast<std::uint64_t>(ctx.size()), "under the lock");
  }
  for (const auto& win : windows) win->free();
}

constexpr test_case thread_table[] = {
    {"thread.level_is_granted", level_is_granted},
    {"thread.foreign_thread_is_refused", foreign_thread_is_refused},
    {"thread.team_for_each_thread", team_for_each_thread, each_kind},
    {"thread.window_for_each_thread", window_for_each_thread, each_kind},
    {"thread.one_window", one_window, each_kind},
    {"thread.locks_of_different_targets", locks_of_different_targets, each_kind},
    {"thread.lock_waits_for_the_other", lock_waits_for_the_other, each_kind, 2},
    {"thread.shared_epoch", shared_epoch, each_kind},
    {"thread.signal_for_each_thread", signal_for_each_thread, each_kind},
    {"thread.set_wakes_a_thread", set_wakes_a_thread, each_kind},
    {"thread.requests_of_threads", requests_of_threads, each_kind},
    {"thread.ranges_of_threads", ranges_of_threads, each_kind},
};

}  // namespace

std::span<const test_case> thread_cases() noexcept { return thread_table; }

}  // namespace conformance
