// SPDX-License-Identifier: Apache-2.0
// The promises of docs/guide/memory-model.md: a litmus test for each line of it, by the line's name
// (tests/guide/claims_test.py has the list).
//
// Every rank writes into the part of the rank to its right, with the number of the round, and looks at its own part.
// Break: look before the call that makes the data visible.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using words = std::span<const std::uint64_t>;
constexpr std::size_t part_elements = 300;

/// One case: a window, an epoch of lock_all if it is asked for, and rounds.
template <class Round>
void in_rounds(context& ctx, bool lock_all, Round&& each) {
  test_window<std::uint64_t> win(ctx, part_elements);
  if (lock_all) ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  std::vector<std::uint64_t> data(part_elements);
  for (std::uint64_t round = 1; round <= ctx.rounds(40); ++round) {
    std::ranges::fill(data, round);
    each(win, words(data), round);
    ctx.world().barrier();
  }
  if (lock_all) win->unlock_all();
  win.free();
}

void put_right(context& ctx, test_window<std::uint64_t>& win, words data) {
  win->put(data, ctx.right(), win.at(ctx.right(), 0));
}

/// The left rank's data are in this rank's part, for plain loads.
void is_here(context& ctx, test_window<std::uint64_t>& win, std::uint64_t round) {
  const auto late = std::ranges::count_if(win.local(), [&](std::uint64_t v) { return v != round; });
  ctx.equal(late, 0, "elements that are not visible in round " + std::to_string(round));
}

void after_fence(context& ctx) {
  in_rounds(ctx, false, [&](auto& win, words data, std::uint64_t round) {
    win->fence();
    put_right(ctx, win, data);
    win->fence(rma::no_succeed);
    is_here(ctx, win, round);
  });
}

void after_complete_and_wait(context& ctx) {
  in_rounds(ctx, false, [&](auto& win, words data, std::uint64_t round) {
    win->post(std::array{ctx.left()});
    win->start(std::array{ctx.right()});
    put_right(ctx, win, data);
    win->complete();
    win->wait();
    is_here(ctx, win, round);
  });
}

void after_unlock(context& ctx) {
  in_rounds(ctx, false, [&](auto& win, words data, std::uint64_t round) {
    {
      const auto hold = win->lock(rma::shared, ctx.right());
      put_right(ctx, win, data);
    }
    ctx.world().barrier();
    is_here(ctx, win, round);
  });
}

void after_flush_and_barrier(context& ctx) {
  in_rounds(ctx, true, [&](auto& win, words data, std::uint64_t round) {
    put_right(ctx, win, data);
    win->flush(ctx.right());
    ctx.world().barrier();
    is_here(ctx, win, round);
  });
}

// A third rank hears of the flush by a message, and gets the data.
void after_flush_and_message(context& ctx) {
  in_rounds(ctx, true, [&](auto& win, words data, std::uint64_t round) {
    put_right(ctx, win, data);
    win->flush(ctx.right());
    const int reader = (ctx.right() + 1) % ctx.size();
    const int writer = (ctx.left() + ctx.size() - 1) % ctx.size();
    ctx.world().send(words(&round, 1), reader, 0);
    std::uint64_t told = 0;
    ctx.world().recv(std::span(&told, 1), writer, 0);
    ctx.equal(win->get(ctx.left(), win.at(ctx.left(), part_elements - 1)), told, "what the reader of a message gets");
  });
}

void after_atomic(context& ctx) {
  in_rounds(ctx, true, [&](auto& win, words data, std::uint64_t round) {
    win->put(data.first(part_elements - 1), ctx.right(), win.at(ctx.right(), 0));
    win->flush(ctx.right());
    (void)win->fetch_and_op(std::uint64_t{1}, ctx.right(), win.at(ctx.right(), part_elements - 1), rma::sum);
    (void)win->wait_until(
        win.at(ctx.rank(), part_elements - 1), [&](std::uint64_t v) noexcept { return v >= round; }, ctx.left());
    is_here(ctx, win, round);
  });
}

void after_signal(context& ctx) {
  in_rounds(ctx, true, [&](auto& win, words data, std::uint64_t round) {
    win->put_signal(data, ctx.right(), win.at(ctx.right(), 0), 0);
    win->wait_signal(0, 1, ctx.left());
    is_here(ctx, win, round);
    win->flush_local(ctx.right());
  });
}

void accumulates_in_order(context& ctx) {
  in_rounds(ctx, true, [&](auto& win, words, std::uint64_t round) {
    for (std::uint64_t i = 0; i <= round; ++i) win->accumulate(i, ctx.right(), win.at(ctx.right(), 0), rma::replace);
    win->flush(ctx.right());
    ctx.world().barrier();
    ctx.equal(win.local()[0], round, "the last of several accumulates");
  });
}

void overlapping_puts(context& ctx) {
  in_rounds(ctx, true, [&](auto& win, words, std::uint64_t round) {
    const std::vector<std::uint64_t> mine(part_elements, 1000 * round + static_cast<std::uint64_t>(ctx.rank()));
    win->put(words(mine), 0, win.at(0, 0));
    win->flush(0);
    ctx.world().barrier();
    if (ctx.rank() != 0) return;
    const auto torn = std::ranges::count_if(win.local(), [&](std::uint64_t v) {
      return v / 1000 != round || v % 1000 >= static_cast<std::uint64_t>(ctx.size());
    });
    ctx.equal(torn, 0, "elements that no rank has put");
  });
}

void own_part_beside_puts(context& ctx) {
  in_rounds(ctx, true, [&](auto& win, words, std::uint64_t round) {
    for (std::size_t i = 0; i < part_elements; i += 2) {
      win->put(round, ctx.right(), win.at(ctx.right(), i + 1));
      win.local()[i] = round;
    }
    win->flush(ctx.right());
    ctx.world().barrier();
    is_here(ctx, win, round);
  });
}

constexpr test_case memory_model_table[] = {
    {"litmus.after_fence", after_fence, each_kind},
    {"litmus.after_complete_and_wait", after_complete_and_wait, each_kind},
    {"litmus.after_unlock", after_unlock, each_kind},
    {"litmus.after_flush_and_barrier", after_flush_and_barrier, each_kind},
    {"litmus.after_flush_and_message", after_flush_and_message, each_kind},
    {"litmus.after_atomic", after_atomic, each_kind},
    {"litmus.after_signal", after_signal, each_kind},
    {"litmus.accumulates_in_order", accumulates_in_order, each_kind},
    {"litmus.overlapping_puts", overlapping_puts, each_kind},
    {"litmus.own_part_beside_puts", own_part_beside_puts, each_kind},
};

}  // namespace

std::span<const test_case> memory_model_cases() noexcept { return memory_model_table; }

}  // namespace conformance
