// SPDX-License-Identifier: Apache-2.0
// Goal: an operation by the handler of a rank that has dropped the window ends with an error that says so, at its
// origin; it never looks as if it had been done, and other windows go on.
//
// Method: simulated ranks on one node and on two. Rank 1 drops a window behind a fence; rank 0 goes on in that fence's
// epoch, with each kind of operation that needs the other's handler, and does the same on a second window.
//
// Break: let the target's handler say nothing about a window that it does not find; in release, let the flush
// tell it again; in fail_dropped, tell the request alone.
#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using window = rma::Window<long>;
using rma::status;

void expect(status found, status wanted, const char* what) {
  if (found == wanted) return;
  throw std::runtime_error(std::string(what) + ": " + std::string(name_of(found)) + ", not " +
                           std::string(name_of(wanted)));
}

void must_say(const char* what, std::string_view words, const std::function<void()>& call) {
  try {
    call();
  } catch (const rma::Error& e) {
    expect(e.code(), status::transfer_failed, what);
    if (e.rank() == 1 && std::string_view(e.what()).find(words) != std::string_view::npos) return;
    throw std::runtime_error(std::string(what) + " says: " + e.what());
  }
  throw std::runtime_error(std::string(what) + " says nothing");
}

/// Rank 0 in the epoch of a window that rank 1 has dropped. `second` is a window that it has not.
void go_on(window& win, window& second) {
  long old = 41;
  expect(second.try_accumulate(1L, 1, 0, rma::sum), status::posted, "accumulate on the second window");
  expect(win.try_fetch_and_op(1L, old, 1, 0, rma::sum), status::transfer_failed, "fetch_and_op");
  expect(win.try_compare_and_swap(0L, 1L, old, 1, 0), status::transfer_failed, "compare_and_swap");
  if (old != 41) throw std::runtime_error("an old value that nobody has sent");
  must_say("fetch_and_op", "has dropped", [&] { (void)win.fetch_and_op(1L, 1, 0, rma::sum); });
  const std::vector<long> ones(1, 1);
  must_say("wait", "has dropped", [&] { win.raccumulate(std::span<const long>(ones), 1, 0, rma::sum).wait(); });
  expect(second.try_fetch_and_op(1L, old, 1, 0, rma::sum), status::done, "fetch_and_op on the second window");
  if (old != 1) throw std::runtime_error("what the second window has");
}

}  // namespace

TEST_CASE("operations on a window that its target has dropped end with an error", "[handler][dropped]") {
  const int per_node = GENERATE(1, 2);
  const bool created = GENERATE(true, false);
  rma::sim::Config job{.ranks = 2, .ranks_per_node = per_node};
  const auto out = rma::sim::run(job, [created](rma::Runtime& rt) {
    const rma::Hints hints{.accumulate = rma::accumulate_mode::handler};
    std::vector<long> memory(8);
    auto second = window::allocate(rt.world(), 8, hints);
    second.fence();
    {
      auto win = created ? window::create(rt.world(), memory, hints) : window::allocate(rt.world(), 8, hints);
      win.fence();
      if (rt.rank() == 0) {
        rt.world().barrier();
        go_on(win, second);
      }
    }
    if (rt.rank() == 1) rt.world().barrier();
    expect(second.try_fence(), status::done, "the second window's fence");
    if (rt.rank() == 1 && second[0] != 2) throw std::runtime_error("what came on the second window");
  });
  INFO(out.text());
  CHECK(out.ok());
}

namespace {

/// Rank 0 goes on with a window that rank 1 has dropped. The lock is in memory that is still there.
template <class Go>
rma::sim::Outcome behind_a_drop(Go&& go) {
  return rma::sim::run({.ranks = 2, .ranks_per_node = 2}, [&go](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 8, {.accumulate = rma::accumulate_mode::handler});
    rt.world().barrier();
    if (rt.rank() == 1) const window dropped = std::move(win);
    rt.world().barrier();
    if (rt.rank() == 0) {
      expect(win.lock_nothrow(rma::exclusive, 1), status::done, "lock");
      go(win);
      expect(win.try_unlock(1), status::done, "unlock");
    }
    rt.world().barrier();
  });
}

rma::Request add_one(window& win) {
  static constexpr long one[] = {1};
  return win.raccumulate(std::span<const long>(one), 1, 0, rma::sum);
}

}  // namespace

TEST_CASE("what a request has told of a window that is gone no flush tells again", "[handler][dropped]") {
  const auto out = behind_a_drop([](window& win) {
    long old = 0;
    expect(win.try_fetch_and_op(1L, old, 1, 0, rma::sum), status::transfer_failed, "fetch_and_op");
    expect(win.try_flush(1), status::done, "flush behind it");
  });
  INFO(out.text());
  CHECK(out.ok());
}

TEST_CASE("what no request has told of a window that is gone the next flush tells", "[handler][dropped]") {
  const auto out = behind_a_drop([](window& win) {
    rma::Request asked_late = add_one(win);
    expect(win.try_flush(1), status::transfer_failed, "flush ahead of the request");
    expect(asked_late.wait_nothrow(), status::transfer_failed, "the request");
    expect(win.try_flush(1), status::done, "flush behind both");
    {
      const rma::Request unasked = add_one(win);
      long old = 0;
      expect(win.try_fetch_and_op(1L, old, 1, 0, rma::sum), status::transfer_failed, "the second one");
    }
    expect(win.try_flush(1), status::transfer_failed, "flush behind a request that nobody asked");
    { const rma::Request early = add_one(win); }
    expect(win.try_flush(1), status::transfer_failed, "flush behind a request that was dropped before its end");
  });
  INFO(out.text());
  CHECK(out.ok());
}

TEST_CASE("a flush of what the target has turned down says so, once", "[handler][dropped]") {
  const auto out = behind_a_drop([](window& win) {
    expect(win.try_accumulate(1L, 1, 0, rma::sum), status::posted, "accumulate");
    must_say("flush", "has dropped", [&] { win.flush(1); });
  });
  INFO(out.text());
  CHECK(out.ok());
}
