// SPDX-License-Identifier: Apache-2.0
// Locks by name: each protocol, home and policy keeps what a lock promises, on whatever connects the ranks.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::lock_home;
using rma::lock_policy;
using rma::lock_protocol;
using rma::lock_scheme;

struct variant {
  lock_protocol lock;
  lock_home home = lock_home::automatic;
  lock_policy policy = lock_policy::automatic;
  unsigned threshold = 0;
  lock_scheme scheme = lock_scheme::automatic;
};
constexpr variant variants[] = {
    {lock_protocol::two_sided},
    {.lock = lock_protocol::network, .scheme = lock_scheme::word},
    {.lock = lock_protocol::network, .scheme = lock_scheme::agent},
    {.lock = lock_protocol::network, .scheme = lock_scheme::fompi},
    {lock_protocol::cpu},
    {lock_protocol::hybrid, lock_home::cpu, lock_policy::naive},
    {lock_protocol::hybrid, lock_home::network, lock_policy::naive},
    {lock_protocol::hybrid, lock_home::cpu, lock_policy::threshold, 3},
    {lock_protocol::hybrid, lock_home::network, lock_policy::adaptive},
};

/// The variant's window; none if the fabric cannot have that lock, which every rank is told.
std::optional<test_window<std::uint64_t>> window_of(context& ctx, const variant& v, std::size_t count) {
  rma::Hints hints;
  hints.lock = v.lock;
  hints.home = v.home;
  hints.policy = v.policy;
  hints.lock_threshold = v.threshold;
  hints.scheme = v.scheme;
  std::optional<test_window<std::uint64_t>> win;
  try {
    win.emplace(ctx, count, hints);
    for (int r = 0; r < ctx.size(); ++r) ctx.check((*win)->locking(r) == v.lock, "another lock than the hint's");
  } catch (const rma::Error& e) {
    ctx.check(e.code() == rma::status::not_supported, e.what());
    ctx.check(v.lock == lock_protocol::network || v.lock == lock_protocol::hybrid, "a lock that needs no atomics");
  }
  return win;
}

// Goal: an exclusive lock excludes, whoever asks from wherever; so does it after shared epochs in between.
// Method: get, put, unlock of one word, by all ranks; every fourth epoch is a shared one, or lock_all, that only reads.
void protocols_exclude(context& ctx) {
  const std::size_t rounds = ctx.rounds(200);
  for (const variant& v : variants) {
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
  for (const variant& v : variants) {
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
  hints.lock = lock_protocol::hybrid;
  hints.home = lock_home::network;
  hints.policy = lock_policy::naive;
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
    {"lock_protocol.counts", counts, only(window_kind::allocated)},
};

}  // namespace

std::span<const test_case> lock_protocol_cases() noexcept { return lock_protocol_table; }

}  // namespace conformance
