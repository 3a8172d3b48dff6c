// SPDX-License-Identifier: Apache-2.0
// Locks by name: each protocol, home and policy keeps what a lock promises, on whatever connects the ranks.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::lock_protocol;
using rma::LockChoice;

const LockChoice variants[] = {
    "auto",
    "auto:deferred",
    "two-sided",
    "two-sided:deferred",
    "network:word",
    "network:agent",
    "network:fompi",
    "cpu",
    "hybrid:naive:home=cpu",
    "hybrid:naive:home=network",
    "hybrid:threshold:3:home=cpu",
    "hybrid:adaptive:home=network",
    "hybrid:pattern:home=cpu",
    "hybrid:priority:home=network",
    "hybrid:native:home=network",
};

/// The variant's window; none if the fabric cannot have that lock, which every rank is told.
std::optional<test_window<std::uint64_t>> window_of(context& ctx, const LockChoice& v, std::size_t count) {
  rma::Hints hints;
  hints.lock = v;
  std::optional<test_window<std::uint64_t>> win;
  try {
    win.emplace(ctx, count, hints);
    for (int r = 0; r < ctx.size() && v.protocol != lock_protocol::automatic; ++r)
      ctx.check((*win)->locking(r) == v.protocol, "another lock than the hint's");
  } catch (const rma::Error& e) {
    ctx.check(e.code() == rma::status::not_supported, e.what());
    ctx.check(v.protocol == lock_protocol::network || v.protocol == lock_protocol::hybrid,
              "a lock that needs no atomics");
  }
  return win;
}

/// Whether lock() has to hold the lock when it returns.
bool holds_at_once(const context& ctx, const LockChoice& v) {
  if (v.protocol != lock_protocol::automatic) return !v.deferred;
  const std::vector<rma::Setting> settings = ctx.runtime().settings();
  const auto lock = std::ranges::find(settings, "RMA_LOCK", &rma::Setting::name);
  return !v.deferred && !lock->value.ends_with(":deferred");
}

/// Words at one rank that tell how many are inside a lock: a rank that comes in finds nobody, or readers beside
/// readers.
class occupancy {
 public:
  occupancy(context& ctx, test_window<std::uint64_t>& words, int at) : ctx_(ctx), words_(words), at_(at) {}
  void enter(rma::lock_kind kind) {
    const std::uint64_t found = words_->fetch_and_op(weight(kind), at_, words_.at(at_, 0), rma::sum);
    if (found >= writer || (kind == rma::exclusive && found != 0))
      ctx_.fail("the lock was not held when lock returned");
  }
  void leave(rma::lock_kind kind) {
    (void)words_->fetch_and_op(std::uint64_t{0} - weight(kind), at_, words_.at(at_, 0), rma::sum);
  }
  /// Without atomics: whoever counts beside another loses one.
  void count() {
    const std::uint64_t before = words_->get(at_, words_.at(at_, 1));
    words_->put(before + 1, at_, words_.at(at_, 1));
    words_->flush(at_);
  }

 private:
  static constexpr std::uint64_t writer = 1U << 20;
  static constexpr std::uint64_t weight(rma::lock_kind kind) noexcept { return kind == rma::exclusive ? writer : 1; }

  context& ctx_;
  test_window<std::uint64_t>& words_;
  int at_;
};

// Goal: a lock is a mutex. When lock returns it is held, exclusive or shared, though its epoch has no operation; what
// it guards is in another window. Break: let acquire_two_sided or acquire_auto defer what is not deferrable.
void lock_is_held(context& ctx) {
  const std::size_t rounds = ctx.rounds(100);
  for (const LockChoice& v : variants) {
    if (!holds_at_once(ctx, v) || !ctx.sampled()) continue;
    auto made = window_of(ctx, v, 1);
    if (!made) continue;
    test_window<std::uint64_t>& mutex = *made;
    test_window<std::uint64_t> guarded(ctx.world(), window_kind::allocated, 2);
    ctx.expect(guarded->lock_all_nothrow(), rma::status::done, "lock_all");
    ctx.world().barrier();
    std::uint64_t counted = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      const int to = i % 3 == 0 ? ctx.size() - 1 : 0;
      const rma::lock_kind kind = i % 4 == 3 ? rma::shared : rma::exclusive;
      occupancy inside(ctx, guarded, to);
      auto held = mutex->lock(kind, to);
      inside.enter(kind);
      if (kind == rma::exclusive) {
        inside.count();
        ++counted;
      }
      inside.leave(kind);
      held.unlock();
    }
    const std::uint64_t all = ctx.world().allreduce(counted, rma::sum);
    guarded->unlock_all();
    ctx.world().barrier();
    std::uint64_t found = ctx.rank() == 0 || ctx.rank() == ctx.size() - 1 ? guarded.local()[1] : 0;
    found = ctx.world().allreduce(found, rma::sum);
    ctx.equal(found, all, "counted by get and put under a lock of another window");
    guarded.free();
    mutex.free();
  }
}

// Goal: a lock that is taken first takes the deferred ones before it, so that ranks which lock in one order never wait
// for each other in a cycle. Method: all lock every rank's part in order, all but the last deferrably; then they hold
// all. Break: leave send_deferred_before out of acquire_two_sided or acquire_now.
void deferred_locks_keep_order(context& ctx) {
  const std::size_t rounds = ctx.rounds(20);
  for (const LockChoice& v : variants) {
    if (!holds_at_once(ctx, v) || !ctx.sampled()) continue;
    auto made = window_of(ctx, v, 1);
    if (!made) continue;
    test_window<std::uint64_t>& win = *made;
    test_window<std::uint64_t> guarded(ctx.world(), window_kind::allocated, 2);
    ctx.expect(guarded->lock_all_nothrow(), rma::status::done, "lock_all");
    ctx.world().barrier();
    const int last = ctx.size() - 1;
    for (std::size_t i = 0; i < rounds; ++i) {
      for (int to = 0; to < last; ++to) {
        ctx.expect(win->lock_nothrow(rma::exclusive, to, rma::deferrable), rma::status::done, "a deferrable lock");
        win->accumulate(std::uint64_t{1}, to, win.at(to, 0), rma::sum);
      }
      ctx.expect(win->lock_nothrow(rma::exclusive, last), rma::status::done, "lock");
      for (int to = 0; to <= last; ++to) occupancy(ctx, guarded, to).enter(rma::exclusive);
      for (int to = 0; to <= last; ++to) occupancy(ctx, guarded, to).leave(rma::exclusive);
      for (int to = 0; to <= last; ++to) ctx.expect(win->try_unlock(to), rma::status::done, "unlock");
    }
    guarded->unlock_all();
    ctx.world().barrier();
    const std::uint64_t wanted = ctx.rank() == last ? 0 : rounds * static_cast<std::uint64_t>(ctx.size());
    ctx.equal(win.local()[0], wanted, "updates of deferrable epochs");
    guarded.free();
    win.free();
  }
}

// Goal: no_check takes no lock and excludes nobody. Method: rank 0 holds its own part exclusively while all others go
// in by no_check, in each kind of epoch, and while they are there. Break: take the lock all the same.
void no_check_takes_none(context& ctx) {
  const auto mine = static_cast<std::size_t>(ctx.rank());
  for (const LockChoice& v : variants) {
    if (!ctx.sampled()) continue;
    auto made = window_of(ctx, v, static_cast<std::size_t>(ctx.size()) + 1);
    if (!made) continue;
    test_window<std::uint64_t>& win = *made;
    const rma::LockCounts before = win->lock_counts();
    for (std::uint64_t round = 1; round <= 6; ++round) {
      const bool all = round % 3 == 2;
      if (ctx.rank() == 0 && round % 2 == 0)
        ctx.expect(win->lock_nothrow(rma::exclusive, 0), rma::status::done, "lock");
      ctx.world().barrier();
      if (ctx.rank() != 0) {
        auto in = all ? win->lock_all(rma::no_check)
                      : win->lock(round % 3 == 0 ? rma::shared : rma::exclusive, 0, rma::no_check);
        win->put(round, 0, win.at(0, mine));
        in.flush();
        ctx.equal(win->get(0, win.at(0, mine)), round, "a put with no_check, flushed");
        win->accumulate(round, 0, win.at(0, static_cast<std::size_t>(ctx.size())), rma::sum);
        ctx.world().barrier();  // all are inside
        in.unlock();
      } else {
        ctx.world().barrier();
        if (round % 2 != 0) {  // beside those that are inside, now or a moment ago
          win->lock(rma::exclusive, 0).unlock();
        } else {
          ctx.expect(win->try_unlock(0), rma::status::done, "unlock");
        }
      }
      ctx.world().barrier();
    }
    const auto others = static_cast<std::uint64_t>(ctx.size() - 1);
    if (ctx.rank() == 0) {
      for (std::size_t r = 1; r <= others; ++r) ctx.equal(win.local()[r], std::uint64_t{6}, "the last put");
      ctx.equal(win.local()[others + 1], others * 21, "accumulates with no_check");
    } else {
      const rma::LockCounts after = win->lock_counts();
      ctx.equal(after.local + after.remote, before.local + before.remote, "requests for locks");
    }
    // Nothing is left of it.
    for (int r = 0; r < ctx.size(); ++r) win->lock(rma::exclusive, r).unlock();
    win->lock_all().unlock();
    win.free();
  }
}

// Goal: an exclusive lock excludes, whoever asks from wherever; so does it after shared epochs in between.
// Method: get, put, unlock of one word, by all ranks; every fourth epoch is a shared one, or lock_all, that only reads.
void protocols_exclude(context& ctx) {
  const std::size_t rounds = ctx.rounds(200);
  for (const LockChoice& v : variants) {
    auto made = window_of(ctx, v, 2);
    if (!made) continue;
    test_window<std::uint64_t>& win = *made;
    std::uint64_t written = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      const int to = i % 3 == 0 ? ctx.size() - 1 : 0;
      if (i % 4 == 3) {
        const auto hold = i % 8 == 3 ? win->lock_all() : win->lock(rma::shared, to);
        const std::uint64_t a = win->get(to, win.at(to, 0));
        const std::uint64_t b = win->get(to, win.at(to, 1));
        if (a != b) ctx.fail("a reader saw half of an update");
      } else {
        const auto hold = win->lock(rma::exclusive, to);
        const std::uint64_t next = win->get(to, win.at(to, 0)) + 1;
        win->put(next, to, win.at(to, 0));
        win->put(next, to, win.at(to, 1));
        ++written;
      }
    }
    const std::uint64_t all = ctx.world().allreduce(written, rma::sum);
    ctx.world().barrier();
    std::uint64_t found = ctx.rank() == 0 || ctx.rank() == ctx.size() - 1 ? win.local()[0] : 0;
    found = ctx.world().allreduce(found, rma::sum);
    ctx.equal(found, all, "updates under exclusive locks");
    win.free();
  }
}

// Goal: an epoch of puts, accumulates and gets without a flush, which a lock may keep back until unlock, is complete at
// its end; and a flush or a fetched value in the middle finds what came before it.
void epochs_are_complete(context& ctx) {
  constexpr std::size_t count = 2000;  // more than fits in one message
  const std::size_t rounds = ctx.rounds(20);
  for (const LockChoice& v : variants) {
    auto made = window_of(ctx, v, count + 2);
    if (!made) continue;
    test_window<std::uint64_t>& win = *made;
    const int to = ctx.right();
    std::vector<std::uint64_t> from(count);
    std::vector<std::uint64_t> back(count);
    for (std::size_t round = 1; round <= rounds; ++round) {
      fill_tagged(std::span(from), ctx.rank(), round);
      {
        const auto hold = win->lock(round % 2 == 0 ? rma::exclusive : rma::shared, to);
        win->put(std::span<const std::uint64_t>(from), to, win.at(to, 0));
        win->accumulate(std::uint64_t{1}, to, win.at(to, count), rma::sum);
        if (round % 3 == 0) win->flush(to);
        if (round % 5 == 0)
          ctx.equal(win->fetch_and_op(std::uint64_t{0}, to, win.at(to, count), rma::no_op), round, "updates so far");
        win->accumulate(std::uint64_t{2}, to, win.at(to, count + 1), rma::sum);
      }
      {
        const auto hold = win->lock(rma::shared, to);
        win->get(std::span(back), to, win.at(to, 0));
      }
      const std::span<const std::uint64_t> found(back);
      if (first_untagged(found, ctx.rank(), round) != count) ctx.fail("what an epoch had put was not there after it");
    }
    ctx.world().barrier();
    ctx.equal(win.local()[count], std::uint64_t{rounds}, "accumulates before a flush");
    ctx.equal(win.local()[count + 1], std::uint64_t{2 * rounds}, "accumulates after it");
    win.free();
  }
}

// Goal: requests are counted, and a naive hybrid lock migrates to who asks while an adaptive one stays with a burst.
void counts(context& ctx) {
  rma::Hints hints;
  hints.lock = "hybrid:naive:home=network";
  constexpr std::uint64_t locks = 20;
  try {
    test_window<std::uint64_t> win(ctx, 1, hints);
    for (std::uint64_t i = 0; i < locks; ++i) win->lock(rma::exclusive, ctx.rank()).unlock();
    const rma::LockCounts found = win->lock_counts();
    ctx.equal(found.local, locks, "requests for this node");
    ctx.equal(found.remote, std::uint64_t{0}, "requests for other nodes");
    ctx.equal(found.migrations, std::uint64_t{1}, "migrations: to the CPU, once");
    ctx.check(found.waited_ns >= 0, "time");
    ctx.world().barrier();
    win.free();
  } catch (const rma::Error& e) {
    if (e.code() != rma::status::not_supported) throw;
    context::skip("the fabric has no atomics");
  }
}

constexpr test_case lock_protocol_table[] = {
    {"lock_protocol.exclude", protocols_exclude, only(window_kind::allocated) | only(window_kind::created)},
    {"lock_protocol.epochs_are_complete", epochs_are_complete, each_kind},
    {"lock_protocol.lock_is_held", lock_is_held, only(window_kind::allocated) | only(window_kind::created)},
    {"lock_protocol.deferred_locks_keep_order", deferred_locks_keep_order, only(window_kind::allocated)},
    {"lock_protocol.no_check_takes_none", no_check_takes_none, each_kind},
    {"lock_protocol.counts", counts, only(window_kind::allocated)},
};

}  // namespace

std::span<const test_case> lock_protocol_cases() noexcept { return lock_protocol_table; }

}  // namespace conformance
