// SPDX-License-Identifier: Apache-2.0
// Memory order: the store-buffering and message-passing litmus tests on puts, flushes and gets.
//
// Two ranks meet before each round, so that both are in its middle at the same time; the others wait. Break: remove
// full_fence() from flush in detail/window_ops.hpp; store_buffering[allocated] then fails within one run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

constexpr std::size_t lines_apart = 16;  // words between two variables: two cache lines

std::uint64_t look(const test_window<std::uint64_t>& win, std::size_t i) {
  return std::atomic_ref<std::uint64_t>(win.local()[i]).load(std::memory_order_acquire);
}

/// Enough is enough: on a crowded machine each meeting of two ranks may cost a time slice, and then the rounds that
/// this much time allows must do; more with a greater effort. How many they were is said.
class patience {
 public:
  explicit patience(context& ctx)
      : runtime_(ctx.runtime()), begin_(runtime_.now()), limit_(std::max(normal_ms, ctx.rounds(normal_ms))) {}
  [[nodiscard]] bool over() const { return runtime_.now() - begin_ > limit_; }
  static void tell(std::uint64_t done, std::uint64_t wanted) {
    std::printf("litmus: %llu rounds of %llu\n", static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(wanted));
  }

 private:
  static constexpr std::size_t normal_ms = 3000;

  rma::Runtime& runtime_;
  std::chrono::nanoseconds begin_;
  std::chrono::milliseconds limit_;
};

/// The two ranks of the test, and where their variables are.
struct pair_of_ranks {
  context& ctx;
  test_window<std::uint64_t>& win;
  int me;
  int other;

  /// Both have come to `round` when this returns.
  void meet(std::uint64_t round) {
    win->put(round, other, win.at(other, 0));
    const bool waits = win->locking(other) == rma::lock_protocol::two_sided;  // puts do, for the end of the epoch
    if (waits || win->pointer_to(other) == nullptr) win->flush(other);
    for (int spin = 0; spin < 2000 && look(win, 0) < round; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    ctx.wait_until([&] { return look(win, 0) >= round; });
  }
};

/// Rounds of litmus tests: 10^6 on memory that both ranks of `win` map, fewer where every put is a message.
std::size_t litmus_rounds(const context& ctx, test_window<std::uint64_t>& win) {
  const bool mapped = win->pointer_to(0) != nullptr && win->pointer_to(1) != nullptr;
  const std::size_t normal = ctx.kind() == window_kind::allocated && mapped ? 1000000 : 20000;
  return ctx.processor_for_each() ? ctx.rounds(normal) : ctx.rounds(normal / 10);
}

/// One batch of store-buffering rounds; true in `missed` where this rank did not see the other's put.
template <class PutAndGet>
void cross(pair_of_ranks& pair, std::uint64_t first, std::span<std::uint8_t> missed, PutAndGet&& put_and_get) {
  for (std::uint64_t round = first; round < first + missed.size(); ++round) {
    const int to = round % 2 == 1 ? pair.other : pair.me;
    pair.meet(round);
    missed[round - first] = put_and_get(round, to, 1 - to) < round ? 1 : 0;
  }
}

/// `put_and_get(win, round, to, from)` puts `round` to one variable and returns what it finds in the other; in an epoch
/// of lock_all, or in epochs of its own.
template <class PutAndGet>
void store_buffering_with(context& ctx, bool lock_all, PutAndGet&& put_and_get) {
  rma::Team both = ctx.world().split(ctx.rank() < 2 ? 0 : -1, ctx.rank());
  if (ctx.rank() < 2) {
    test_window<std::uint64_t> both_ready(both, ctx.kind(), 1);
    test_window<std::uint64_t> win(both, ctx.kind(), 4 * lines_apart);
    const std::size_t rounds = litmus_rounds(ctx, win);
    ctx.expect(both_ready->lock_all_nothrow(), rma::status::done, "lock_all");
    if (lock_all) ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
    pair_of_ranks pair{ctx, both_ready, both.rank(), 1 - both.rank()};
    const patience time(ctx);
    std::size_t done = 0;
    for (std::size_t batch = 100; done < rounds; batch = std::min<std::size_t>(2 * batch, 20000)) {
      std::vector<std::uint8_t> missed(std::min(batch, rounds - done), 0);
      cross(pair, done + 1, missed,
            [&](std::uint64_t round, int to, int from) { return put_and_get(win, round, to, from); });
      done += missed.size();
      both.allreduce(std::span(missed), rma::sum);
      const auto failures = std::ranges::count(missed, std::uint8_t{2});
      if (failures > 0)
        ctx.fail(std::to_string(failures) + " of " + std::to_string(missed.size()) + " rounds saw neither put");
      if (done < rounds && both.allreduce(time.over() ? 1 : 0, rma::max) != 0) {
        if (both.rank() == 0) patience::tell(done, rounds);
        break;
      }
    }
    both_ready->unlock_all();
    if (lock_all) win->unlock_all();
    both_ready.free();
    win.free();
  }
  ctx.world().barrier();
}

// Goal: put, flush, get (the flush orders them): of two ranks that do this crosswise, at least one sees the other.
// Method: x lies at rank 1, y at rank 0; in odd rounds each writes the other's variable and reads its own, in even
// rounds the other way round. Values rise, so nothing needs to be reset. 10^6 rounds take 0.1 s if both ranks run.
void store_buffering(context& ctx) {
  store_buffering_with(ctx, true, [](test_window<std::uint64_t>& win, std::uint64_t round, int to, int from) {
    win->put(round, to, win.at(to, lines_apart));
    win->flush(to);
    return win->get(from, win.at(from, lines_apart));
  });
}

// Goal: the same for an epoch that ends and another that begins: unlock orders what was stored in between.
// Method: shared locks, which a biased reader takes and gives back by plain stores. Break: leave out `stored = 1` in
// fast_put (detail/window_ops.hpp); with RMA_ACCUMULATE=element it then fails.
void store_buffering_of_epochs(context& ctx) {
  store_buffering_with(ctx, false, [](test_window<std::uint64_t>& win, std::uint64_t round, int to, int from) {
    {
      auto epoch = win->lock(rma::shared, to);
      win->put(round, to, win.at(to, lines_apart));
    }
    auto epoch = win->lock(rma::shared, from);
    return win->get(from, win.at(from, lines_apart));
  });
}

// Goal: put of data, flush, put of a flag: who gets the flag, then the data, gets the new data.
// Method: rank 0 publishes rising numbers without waiting; rank 1 follows. The flag lies at the reader or the writer.
void message_passing(context& ctx) {
  rma::Team both = ctx.world().split(ctx.rank() < 2 ? 0 : -1, ctx.rank());
  if (ctx.rank() < 2) {
    for (const int home : {0, 1}) {
      const patience time(ctx);
      test_window<std::uint64_t> win(both, ctx.kind(), 4 * lines_apart);
      const std::size_t rounds = litmus_rounds(ctx, win) / 2;
      ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
      std::uint64_t failures = 0;
      if (both.rank() == 0) {
        for (std::uint64_t round = 1; round <= rounds; ++round) {
          if (round < rounds && round % 64 == 0 && time.over()) {
            patience::tell(round, rounds);
            round = rounds;  // the reader waits for this one
          }
          win->put(round, 1, win.at(1, lines_apart));
          win->flush(1);
          win->put(round, home, win.at(home, 2 * lines_apart));
        }
        win->flush_all();
      } else {
        ctx.wait_until([&] {
          const std::uint64_t flag = win->get(home, win.at(home, 2 * lines_apart));
          win->flush(home);
          if (win->get(1, win.at(1, lines_apart)) < flag) ++failures;
          return flag == rounds;
        });
      }
      ctx.check(failures == 0, std::to_string(failures) + " flags came before their data");
      win->unlock_all();
      win.free();
    }
  }
  ctx.world().barrier();
}

// Goal: the same for data of many words, which may be written by other instructions than single values.
// Method: 16 KiB of the same rising number; the reader's copy has no older one than the flag. Not under the thread
// sanitizer, to which reading a range while it is written is a race.
void message_passing_of_ranges(context& ctx) {
  if (thread_sanitizer) context::skip("the thread sanitizer does not know fences");
  constexpr std::size_t count = 2048;
  rma::Team both = ctx.world().split(ctx.rank() < 2 ? 0 : -1, ctx.rank());
  if (ctx.rank() < 2) {
    test_window<std::uint64_t> win(both, ctx.kind(), count + 2 * lines_apart);
    const std::size_t rounds = litmus_rounds(ctx, win) / 50;
    ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
    std::vector<std::uint64_t> data(count);
    std::uint64_t failures = 0;
    const patience time(ctx);
    if (both.rank() == 0) {
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        if (round < rounds && round % 16 == 0 && time.over()) {
          patience::tell(round, rounds);
          round = rounds;
        }
        std::ranges::fill(data, round);
        win->put(std::span<const std::uint64_t>(data), 1, win.at(1, lines_apart));
        win->flush(1);
        win->put(round, 1, win.at(1, 0));
      }
      win->flush(1);
    } else {
      ctx.wait_until([&] {
        const std::uint64_t flag = win->get(1, win.at(1, 0));
        win->flush(1);
        win->get(std::span(data), 1, win.at(1, lines_apart));
        win->flush(1);
        if (std::ranges::any_of(data, [&](std::uint64_t v) { return v < flag; })) ++failures;
        return flag == rounds;
      });
    }
    ctx.check(failures == 0, std::to_string(failures) + " flags came before their range");
    win->unlock_all();
    win.free();
  }
  ctx.world().barrier();
}

// Goal: one location never goes back in time for a reader, and updates by several writers are seen in one order.
// Method: all ranks but the last add to one word; the last reads it by get, as all others see it by fetch_and_op.
void coherence(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1);
  const std::size_t rounds = ctx.rounds(20000);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::uint64_t total = rounds * static_cast<std::uint64_t>(ctx.size() - 1);
  std::uint64_t last = 0;
  if (ctx.rank() == ctx.size() - 1) {
    ctx.wait_until([&] {
      const std::uint64_t seen = win->fetch_and_op(std::uint64_t{0}, 0, win.at(0, 0), rma::no_op);
      if (seen < last) ctx.fail("a word went back in time");
      last = seen;
      return seen == total;
    });
  } else {
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::uint64_t seen = win->fetch_and_op(std::uint64_t{1}, 0, win.at(0, 0), rma::sum);
      if (i > 0 && seen <= last) ctx.fail("an update was ordered before an earlier one");
      last = seen;
    }
  }
  win->unlock_all();
  win.free();
}

// Goal: the lock orders memory, too: what was put or stored under it is seen by the next holder, by get or by load.
void lock_hands_over(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4 * lines_apart);
  const std::size_t rounds = ctx.rounds(3000);
  for (std::size_t i = 0; i < rounds; ++i) {
    const auto hold = win->lock(rma::exclusive, 0);
    const std::uint64_t a = win->get(0, win.at(0, 0));
    const std::uint64_t b = win->get(0, win.at(0, 3 * lines_apart));
    if (a != b) ctx.fail("the lock came before what was put under it");
    if (ctx.rank() == 0) {
      win.local()[0] = a + 1;
      win.local()[3 * lines_apart] = a + 1;
    } else {
      win->put(a + 1, 0, win.at(0, 0));
      win->put(a + 1, 0, win.at(0, 3 * lines_apart));
    }
  }
  ctx.world().barrier();
  if (ctx.rank() == 0)
    ctx.equal(win.local()[0], rounds * static_cast<std::uint64_t>(ctx.size()), "turns under the lock");
  win.free();
}

constexpr test_case litmus_table[] = {
    {"litmus.store_buffering", store_buffering, each_kind, 2},
    {"litmus.store_buffering_of_epochs", store_buffering_of_epochs, each_kind, 2},
    {"litmus.message_passing", message_passing, each_kind, 2},
    {"litmus.message_passing_of_ranges", message_passing_of_ranges, each_kind, 2},
    {"litmus.coherence", coherence, each_kind, 2},
    {"litmus.lock_hands_over", lock_hands_over, each_kind},
};

}  // namespace

std::span<const test_case> litmus_cases() noexcept { return litmus_table; }

}  // namespace conformance
