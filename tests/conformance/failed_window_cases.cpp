// SPDX-License-Identifier: Apache-2.0
// Scopes left by an exception: the epoch is abandoned, the window is marked failed here, the others go on.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::status;

constexpr std::uint64_t canary = 0xdead'cafe'dead'cafe;

/// Lets all that may still come do so.
void settle(context& ctx) {
  ctx.world().barrier();
  for (int i = 0; i < 200; ++i) ctx.runtime().progress();
  ctx.world().barrier();
}

/// Rank 0 leaves an epoch by an exception.
template <class Open>
void leave_by_exception(context& ctx, test_window<std::uint64_t>& win, Open open) {
  bool caught = false;
  try {
    const auto hold = open();
    win->put(std::uint64_t{1}, ctx.right(), win.at(ctx.right(), 0));
    throw std::runtime_error("the program's own trouble");
  } catch (const std::runtime_error&) {
    caught = true;
  }
  ctx.check(caught, "the exception did not get out");
}

void refused_here(context& ctx, test_window<std::uint64_t>& win) {
  std::uint64_t value = 0;
  const int to = ctx.right();
  ctx.expect(win->try_put(value, to, win.at(to, 1)), status::window_failed, "put on a failed window");
  ctx.expect(win->try_get(value, to, win.at(to, 1)), status::window_failed, "get on a failed window");
  ctx.expect(win->lock_nothrow(rma::shared, to), status::window_failed, "lock on a failed window");
  ctx.expect(win->lock_all_nothrow(), status::window_failed, "lock_all on a failed window");
  ctx.throws(status::window_failed, {"put", "torn", "scope of an epoch", "free"},
             [&] { win->put(value, to, win.at(to, 1)); });
}

/// The others use the same target under locks, then all free the window, then a new one works.
void others_go_on(context& ctx, test_window<std::uint64_t>& win) {
  if (ctx.rank() != 0) {
    const int home = 1 % ctx.size();
    for (int i = 0; i < 100; ++i) {
      const auto hold = win->lock(rma::exclusive, home);
      win->put(win->get(home, win.at(home, 2)) + 1, home, win.at(home, 2));
    }
  }
  ctx.world().barrier();
  if (ctx.rank() == 1) {
    ctx.equal(win.local()[2], 100 * static_cast<std::uint64_t>(ctx.size() - 1), "updates of the others");
  }
  win.free();
  test_window<std::uint64_t> next(ctx, 2);
  next->fence();
  next->put(std::uint64_t{3}, ctx.right(), next.at(ctx.right(), 0));
  next->fence(rma::no_succeed);
  ctx.equal(next.local()[0], std::uint64_t{3}, "put into the next window");
  next.free();
}

// Goal: an exclusive lock left by an exception is given back without waiting, and only this rank's window is failed.
void exclusive_lock(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4, {.name = "torn"});
  if (ctx.rank() == 0) {
    leave_by_exception(ctx, win, [&] { return win->lock(rma::exclusive, ctx.right()); });
    refused_here(ctx, win);
  }
  others_go_on(ctx, win);
}

// Goal: the same for lock_all.
void lock_all(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4, {.name = "torn"});
  if (ctx.rank() == 0) {
    leave_by_exception(ctx, win, [&] { return win->lock_all(); });
    refused_here(ctx, win);
  }
  others_go_on(ctx, win);
}

// Goal: two scopes left by one exception give both locks back.
void two_scopes(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4, {.name = "torn"});
  const int last = ctx.size() - 1;
  if (ctx.rank() == 0) {
    try {
      const auto first = win->lock(rma::shared, 0);
      const auto second = last == 0 ? rma::Epoch(nullptr, 0) : win->lock(rma::exclusive, last);
      throw std::runtime_error("the program's own trouble");
    } catch (const std::runtime_error&) {
      refused_here(ctx, win);
    }
  }
  others_go_on(ctx, win);
}

/// The window is usable for this rank, and its lock of the target has been given back.
void usable_here(context& ctx, test_window<std::uint64_t>& win, int to, std::uint64_t value) {
  const auto hold = win->lock(rma::exclusive, to);
  win->put(value, to, win.at(to, 3));
  win->flush(to);
  ctx.equal(win->get(to, win.at(to, 3)), value, "get after an epoch that a refusal has ended");
}

// Goal: the Error of a refused call, of the window or not, ends the epoch whose scope it leaves; the window stays
// usable here, and the lock is free for all. Break: leave_epoch abandons each epoch.
void refused_in_a_scope(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4, {.name = "torn"});
  const int to = ctx.right();
  const auto refused = [&](status wanted, const std::function<void()>& call, rma::assertion promises) {
    ctx.throws(wanted, {}, [&] {
      const auto hold = win->lock(rma::exclusive, to, promises);
      win->put(std::uint64_t{1}, to, win.at(to, 0));
      call();
    });
    usable_here(ctx, win, to, 7);
    ctx.throws(wanted, {}, [&] {
      const auto hold = win->lock_all();
      win->put(std::uint64_t{1}, to, win.at(to, 0));
      call();
    });
    usable_here(ctx, win, to, 8);
  };
  for (const rma::assertion promises : {rma::assertion::none, rma::deferrable}) {
    refused(
        status::bad_rank, [&] { win->put(std::uint64_t{1}, ctx.size(), 0); }, promises);
    refused(
        status::out_of_window, [&] { win->put(std::uint64_t{1}, to, std::size_t{1} << 40); }, promises);
    refused(
        status::wrong_epoch, [&] { win->fence(); }, promises);
    refused(
        status::bad_rank, [&] { ctx.world().send(std::span<const std::uint64_t>(), ctx.size(), 0); }, promises);
  }
  ctx.world().barrier();
  others_go_on(ctx, win);
}

// Goal: a refusal that leaves two scopes ends both epochs; what was to be fetched is not written any more.
void refused_in_two_scopes(context& ctx) {
  constexpr std::size_t count = 3000;
  std::vector<std::uint64_t> buffer(count, canary);
  test_window<std::uint64_t> first(ctx, count), second(ctx, 4);
  const int to = ctx.right();
  for (const rma::assertion promises : {rma::assertion::none, rma::deferrable}) {
    ctx.throws(status::out_of_window, {}, [&] {
      const auto outer = first->lock(rma::shared, to, promises);
      first->get(std::span(buffer), to, first.at(to, 0));
      const auto inner = second->lock(rma::shared, to);
      second->put(std::uint64_t{1}, to, std::size_t{1} << 40);
    });
    std::fill(buffer.begin(), buffer.end(), canary);
    usable_here(ctx, first, to, 7);
    usable_here(ctx, second, to, 8);
  }
  settle(ctx);
  const auto touched = std::count_if(buffer.begin(), buffer.end(), [](std::uint64_t v) { return v != canary; });
  ctx.equal(touched, 0, "words written after the epoch was left");
  first.free();
  second.free();
}

// Goal: an exception of the program abandons the epoch, though a refusal was caught before it, is being handled, or is
// kept as a copy. Break: is_left_by_refusal without its look at `caught`; a refusal_mark that copies.
void left_after_a_refusal(context& ctx) {
  const auto refused = [&](test_window<std::uint64_t>& win) { win->put(std::uint64_t{1}, ctx.size(), 0); };
  const auto leaves = [&](const std::function<void(test_window<std::uint64_t>&)>& leave) {
    test_window<std::uint64_t> win(ctx, 4, {.name = "torn"});
    if (ctx.rank() == 0) {
      try {
        leave(win);
        ctx.fail("no exception");
      } catch (const std::runtime_error&) {}
      refused_here(ctx, win);
    }
    others_go_on(ctx, win);
  };
  leaves([&](test_window<std::uint64_t>& win) {
    std::optional<rma::Error> kept;
    const auto hold = win->lock(rma::shared, ctx.right());
    try {
      refused(win);
    } catch (const rma::Error& e) {
      kept = e;
    }
    throw std::runtime_error("later");
  });
  leaves([&](test_window<std::uint64_t>& win) {
    try {
      refused(win);
    } catch (const rma::Error&) {
      const auto hold = win->lock(rma::shared, ctx.right());
      throw std::runtime_error("meanwhile");
    }
  });
}

// Goal: an exception that is caught inside the scope does no harm to it.
void caught_inside(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  {
    const auto hold = win->lock(rma::exclusive, ctx.right());
    try {
      win->put(std::uint64_t{1}, ctx.size(), 0);
      ctx.fail("a put to nobody was taken");
    } catch (const rma::Error&) {
      win->put(std::uint64_t{5}, ctx.right(), win.at(ctx.right(), 0));
    }
  }
  ctx.world().barrier();
  ctx.equal(win.local()[0], std::uint64_t{5}, "put after an exception inside the scope");
  {
    const auto again = win->lock(rma::shared, ctx.right());
    ctx.equal(win->get(ctx.right(), win.at(ctx.right(), 0)), std::uint64_t{5}, "get in the next epoch");
  }
  ctx.world().barrier();
  win.free();
}

// Goal: a scope opened and closed while another exception is on its way (in a destructor) is a normal one.
void opened_while_unwinding(context& ctx) {
  struct writes_at_the_end {
    context& ctx;
    test_window<std::uint64_t>& win;
    ~writes_at_the_end() {
      const auto hold = win->lock(rma::exclusive, ctx.right());
      win->put(std::uint64_t{8}, ctx.right(), win.at(ctx.right(), 1));
    }
  };
  test_window<std::uint64_t> win(ctx, 4);
  try {
    const writes_at_the_end writer{ctx, win};
    throw std::runtime_error("the program's own trouble");
  } catch (const std::runtime_error&) {
    ctx.world().barrier();
  }
  ctx.equal(win.local()[1], std::uint64_t{8}, "put from a destructor");
  win->fence();
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: windows and requests that are destroyed by unwinding, during a fence epoch, wait for no rank. The data
// that they put may still be read then: it lives as long as the program.
void dropped_in_an_epoch(context& ctx) {
  static constexpr std::array<std::uint64_t, 1000> data{};
  for (int i = 0; i < 20; ++i) {
    try {
      auto win = rma::Window<std::uint64_t>::allocate(ctx.world(), 1000);
      win.fence();
      const rma::Request request = win.rput(std::span<const std::uint64_t>(data), ctx.right(), 0);
      if (ctx.rank() == i % ctx.size()) throw std::runtime_error("the program's own trouble");
    } catch (const std::runtime_error&) {
      ctx.runtime().progress();
    }
  }
}

// Goal: a window's own unlock inside the scope of an Epoch closes it for good: its end finds nothing to do, also where
// an exception comes later, and the window goes on. Break: let the scope's end take not_locked for a failure.
void closed_by_hand(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  const int to = ctx.right();
  {
    const auto hold = win->lock(rma::shared, to);
    win->put(std::uint64_t{1}, to, win.at(to, 0));
    win->unlock(to);
  }
  try {
    const auto hold = win->lock_all();
    win->put(std::uint64_t{2}, to, win.at(to, 1));
    win->unlock_all();
    throw std::runtime_error("later");
  } catch (const std::runtime_error&) {}
  ctx.expect(win->lock_nothrow(rma::shared, to), status::done, "lock after epochs that were closed by hand");
  win->put(std::uint64_t{3}, to, win.at(to, 2));
  win->unlock(to);
  ctx.world().barrier();
  for (std::size_t i = 0; i < 3; ++i) ctx.equal(win.local()[i], std::uint64_t{i} + 1, "what was put");
  win.free();
}

// Goal: what was to be fetched in an epoch that an exception has left is not written any more: its buffer may be gone.
// With a request that outlives the epoch it comes, and is seen by its wait; without, it does not.
// Method: rank 0 leaves while the target computes; canaries in the buffers. Break: leave_results does nothing.
void results_of_an_abandoned_epoch(context& ctx) {
  constexpr std::size_t count = 3000, values = 3;
  const int home = ctx.size() - 1;
  std::vector<std::uint64_t> plain(count, canary), dropped(count, canary), kept(count, canary), old(values, canary);
  const std::vector<std::uint64_t> one(values, 1);
  test_window<std::uint64_t> win(ctx, count + values);
  fill_tagged(win.local().first(count), ctx.rank());
  ctx.world().barrier();
  rma::Request request;
  if (ctx.rank() == 0) {
    try {
      const auto hold = win->lock(rma::shared, home);
      win->get(std::span(plain), home, win.at(home, 0));
      (void)win->rget(std::span(dropped), home, win.at(home, 0));
      win->get_accumulate(std::span(one), std::span(old), home, win.at(home, count), rma::sum);
      request = win->rget(std::span(kept), home, win.at(home, 0));
      throw std::runtime_error("the program's own trouble");
    } catch (const std::runtime_error&) {
      for (auto* const buffer : {&plain, &dropped, &old}) std::fill(buffer->begin(), buffer->end(), canary);
    }
  } else {
    ctx.runtime().compute(std::chrono::microseconds(200));
  }
  settle(ctx);
  for (const auto* const buffer : {&plain, &dropped, &old}) {
    const auto touched = std::count_if(buffer->begin(), buffer->end(), [](std::uint64_t v) { return v != canary; });
    ctx.equal(touched, 0, "words written after the epoch was left, of " + std::to_string(buffer->size()));
  }
  if (ctx.rank() == 0) {
    ctx.expect(request.wait_nothrow(), status::done, "a request that outlives its epoch");
    ctx.equal(first_untagged(std::span<const std::uint64_t>(kept), home), count, "what its request says is there");
  }
  win.free();
}

// Goal: the same for a window that its origin drops in the middle of a fence epoch.
void results_of_a_dropped_window(context& ctx) {
  constexpr std::size_t count = 3000;
  const int home = ctx.size() - 1;
  std::vector<std::uint64_t> buffer(count, canary);
  std::optional<test_window<std::uint64_t>> win(std::in_place, ctx, count);
  (*win)->fence();
  if (ctx.rank() == 0) {
    (*win)->get(std::span(buffer), home, win->at(home, 0));
    win.reset();
    std::fill(buffer.begin(), buffer.end(), canary);
  } else {
    ctx.runtime().compute(std::chrono::microseconds(200));
  }
  settle(ctx);
  win.reset();
  const auto touched = std::count_if(buffer.begin(), buffer.end(), [](std::uint64_t v) { return v != canary; });
  ctx.equal(touched, 0, "words written after the window was dropped");
}

constexpr test_case failed_window_table[] = {
    {"failed_window.results_of_an_epoch", results_of_an_abandoned_epoch, each_kind, 2},
    {"failed_window.results_of_a_window", results_of_a_dropped_window, each_kind, 2},
    {"failed_window.closed_by_hand", closed_by_hand, each_kind},
    {"failed_window.exclusive_lock", exclusive_lock, each_kind},
    {"failed_window.lock_all", lock_all, each_kind},
    {"failed_window.two_scopes", two_scopes, each_kind},
    {"failed_window.refused_in_a_scope", refused_in_a_scope, each_kind},
    {"failed_window.refused_in_two_scopes", refused_in_two_scopes, each_kind},
    {"failed_window.left_after_a_refusal", left_after_a_refusal, each_kind},
    {"failed_window.caught_inside", caught_inside, each_kind},
    {"failed_window.opened_while_unwinding", opened_while_unwinding, each_kind},
    {"failed_window.dropped_in_an_epoch", dropped_in_an_epoch},
};

}  // namespace

std::span<const test_case> failed_window_cases() noexcept { return failed_window_table; }

}  // namespace conformance
