// SPDX-License-Identifier: Apache-2.0
// Atomicity under contention, in every accumulate mode: exact totals, no torn elements, order of one origin kept.
#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <optional>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

constexpr rma::accumulate_mode modes[] = {rma::accumulate_mode::element, rma::accumulate_mode::striped,
                                          rma::accumulate_mode::handler};

/// Runs `body(window)` once for each accumulate mode that this kind of window can have.
template <class T, class Body>
void each_mode(context& ctx, std::size_t count, Body body) {
  for (const auto mode : modes) {
    rma::Hints hints;
    hints.accumulate = mode;
    std::optional<test_window<T>> win;
    try {
      win.emplace(ctx, count, hints);
    } catch (const rma::Error& e) {
      if (e.code() != rma::status::not_supported) throw;
      continue;
    }
    body(*win);
    win->free();
  }
}

// Goal: fetch_and_op hands out every number once, to whoever asks, from whatever rank.
// Method: a ticket counter at the last rank; all tickets are collected at rank 0 and must be 0 ... n-1; each rank sees
// its own rise. Break: take no stripe lock in the slow path of fetch_and_op.
void tickets(context& ctx) {
  each_mode<std::uint64_t>(ctx, 1, [&](test_window<std::uint64_t>& win) {
    const std::size_t rounds = ctx.rounds(4000);
    const int home = ctx.size() - 1;
    std::vector<std::uint64_t> mine(rounds);
    {
      const auto hold = win->lock_all();
      for (std::uint64_t& ticket : mine) ticket = win->fetch_and_op(std::uint64_t{1}, home, win.at(home, 0), rma::sum);
    }
    ctx.check(std::ranges::is_sorted(mine), "tickets of one rank do not rise");
    const std::uint64_t total = rounds * static_cast<std::uint64_t>(ctx.size());
    std::vector<std::uint8_t> taken(total, 0);
    for (const std::uint64_t ticket : mine) {
      if (ticket < total) taken[ticket] = 1;
    }
    ctx.world().allreduce(std::span(taken), rma::sum);
    ctx.check(std::ranges::all_of(taken, [](std::uint8_t t) { return t == 1; }),
              "a ticket is missing or was given twice");
    ctx.world().barrier();
    if (ctx.rank() == home) ctx.equal(win.local()[0], total, "tickets given");
  });
}

template <class T>
void swap_counter(context& ctx) {
  each_mode<T>(ctx, 3, [&](test_window<T>& win) {
    const std::size_t rounds = ctx.rounds(sizeof(T) == 1 ? 30 : 1000);
    {
      const auto hold = win->lock_all();
      for (std::size_t i = 0; i < rounds; ++i) {
        T expected = 0;
        while (true) {
          const T found = win->compare_and_swap(expected, static_cast<T>(expected + 1), 0, win.at(0, 1));
          if (found == expected) break;
          expected = found;
        }
      }
    }
    ctx.world().barrier();
    if (ctx.rank() == 0) {
      ctx.check(win.local()[1] == static_cast<T>(rounds * static_cast<std::size_t>(ctx.size())), "swaps are lost");
      ctx.check(win.local()[0] == 0 && win.local()[2] == 0, "a neighbor of the swapped word changed");
    }
  });
}

// Goal: compare_and_swap is atomic for every width of integer, and touches its element only.
// Method: counters kept by swap loops.
void compare_and_swap_counters(context& ctx) {
  swap_counter<std::uint8_t>(ctx);
  swap_counter<std::int16_t>(ctx);
  swap_counter<std::uint32_t>(ctx);
  swap_counter<std::int64_t>(ctx);
}

// Goal: compare_and_swap returns what was there and writes only on equality, also by run-time type.
void compare_and_swap_values(context& ctx) {
  test_window<std::int32_t> win(ctx, 2);
  win.local()[0] = 5;
  win->fence();
  const int to = ctx.right();
  ctx.equal(win->compare_and_swap(4, 9, to, win.at(to, 0)), 5, "a swap that must not happen");
  ctx.equal(win->compare_and_swap(5, -6, to, win.at(to, 0)), 5, "a swap that must happen");
  ctx.equal(win->get(to, win.at(to, 0)), -6, "value after a swap");
  const std::int32_t expected = -6;
  const std::int32_t desired = 11;
  std::int32_t old = 0;
  ctx.expect(win->compare_and_swap_as(rma::element::i32, &expected, &desired, &old, to, win.at(to, 0)),
             rma::status::done, "compare_and_swap_as");
  ctx.equal(old, -6, "old value of compare_and_swap_as");
  ctx.equal(win->get(to, win.at(to, 0)), 11, "value after compare_and_swap_as");
  win->fence(rma::no_succeed);
  win.free();
}

constexpr std::size_t scattered_count = 700;

/// Places of words, more than a batch of update_batch holds, some of them next to each other.
std::vector<std::ptrdiff_t> scattered_words(std::size_t count, std::size_t words, std::size_t seed) {
  std::vector<std::ptrdiff_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = static_cast<std::ptrdiff_t>((i * (i % 5 + 977) + seed) % words);
  return places;
}

// Goal: an accumulate with a layout updates each element in the order of the layout, by memory in every mode.
// Method: a layout names its words several times, and replaces them; the last value of each is there. Break: sort the
// batch in update_batch so that equal stripes change their order.
void scattered_in_order(context& ctx) {
  constexpr std::size_t words = 8192;
  each_mode<std::uint64_t>(ctx, words, [&](test_window<std::uint64_t>& win) {
    if (win->atomicity() != rma::accumulate_mode::element && win->atomicity() != rma::accumulate_mode::striped) return;
    std::vector<std::ptrdiff_t> places = scattered_words(scattered_count, words, 0);
    for (std::size_t i = 1; i < scattered_count; i += 3) places[i] = places[i - 1];
    std::vector<std::uint64_t> values(scattered_count), wanted(words, 0);
    for (std::size_t i = 0; i < scattered_count; ++i) wanted[static_cast<std::size_t>(places[i])] = values[i] = i + 1;
    if (ctx.rank() == ctx.size() - 1) {
      const auto hold = win->lock_all();
      win->accumulate(values.data(), rma::Layout::contiguous<std::uint64_t>(scattered_count), 0, win.at(0, 0),
                      rma::Layout::indexed<std::uint64_t>(1, places), rma::replace);
    }
    ctx.world().barrier();
    if (ctx.rank() == 0) ctx.check(std::ranges::equal(win.local(), wanted), "an earlier value replaced a later one");
  });
}

// Goal: single-element, bulk and aggregated updates of the same words are atomic to each other, in every mode.
// Method: half of the ranks add to 64 KiB at once, the other half to single words of it by fetch_and_op and
// accumulate; with one rank both in turn; then all by layouts of scattered words, and by an aggregate handle. All
// totals are known. Break: update without the stripe's lock in the bulk path or in update_batch
// (scattered_updates.cpp), or without a locked instruction in element mode.
void race_of_single_and_bulk(context& ctx) {
  constexpr std::size_t words = 8192;
  each_mode<std::uint64_t>(ctx, words, [&](test_window<std::uint64_t>& win) {
    const std::size_t bulk_rounds = ctx.rounds(60);
    const std::size_t single_rounds = ctx.rounds(20000);
    const std::vector<std::uint64_t> ones(words, 1);
    std::uint64_t added = 0;
    {
      const auto hold = win->lock_all();
      if (ctx.rank() % 2 == 0) {
        for (std::size_t i = 0; i < bulk_rounds; ++i) {
          win->accumulate(std::span<const std::uint64_t>(ones), 0, win.at(0, 0), rma::sum);
          added += words;
        }
      }
      if (ctx.rank() % 2 == 1 || ctx.size() == 1) {
        for (std::size_t i = 0; i < single_rounds; ++i) {
          const std::size_t place = (i * 97) % words;
          if (i % 3 == 0) {
            win->accumulate(std::uint64_t{2}, 0, win.at(0, place), rma::sum);
          } else {
            (void)win->fetch_and_op(std::uint64_t{2}, 0, win.at(0, place), rma::sum);
          }
          added += 2;
        }
      }
      for (std::size_t i = 0; i < bulk_rounds; ++i) {
        const auto scattered = rma::Layout::indexed<std::uint64_t>(1, scattered_words(scattered_count, words, i));
        win->accumulate(ones.data(), rma::Layout::contiguous<std::uint64_t>(scattered_count), 0, win.at(0, 0),
                        scattered, rma::sum);
        added += scattered_count;
      }
      auto batch = win->aggregate();
      for (std::size_t i = 0; i < single_rounds / 20; ++i) {
        batch.accumulate(std::uint64_t{3}, 0, win.at(0, (i * 89) % words), rma::sum);
        added += 3;
      }
    }
    const std::uint64_t wanted = ctx.world().allreduce(added, rma::sum);
    if (ctx.rank() == 0) {
      const std::uint64_t total = std::accumulate(win.local().begin(), win.local().end(), std::uint64_t{0});
      ctx.equal(total, wanted, "total in mode " + std::to_string(static_cast<int>(win->atomicity())));
    }
  });
}

// Goal: Hints::accumulate_granularity says what a stripe's lock guards; totals are exact at every granularity.
// Method: all ranks add to overlapping ranges, to a column and to single words. Break: let apply_striped, update_batch
// or the inlined update take the stripes of another granularity.
void granularity(context& ctx) {
  constexpr std::size_t words = 4096;
  const std::vector<std::uint64_t> ones(words, 1);
  for (const std::size_t wished : std::initializer_list<std::size_t>{0, 1, 64, 100, 4096, 1 << 24}) {
    rma::Hints hints;
    hints.accumulate_granularity = wished;
    test_window<std::uint64_t> win(ctx, words, hints);
    const std::size_t guarded = wished == 0 ? 8192 : std::bit_ceil(std::max<std::size_t>(wished, 64));
    const bool striped = win->atomicity() == rma::accumulate_mode::striped;
    ctx.equal(win->accumulate_granularity(), striped ? guarded : 0, "granularity");
    std::uint64_t added = 0;
    {
      const auto hold = win->lock_all();
      for (std::size_t i = 0; i < ctx.rounds(20); ++i) {
        const std::size_t first = (i * 37 + static_cast<std::size_t>(ctx.rank()) * 3) % 1000, length = 8 + i % 3000;
        win->accumulate(std::span(ones).first(length), 0, win.at(0, first), rma::sum);
        win->accumulate(ones.data(), rma::Layout::contiguous<std::uint64_t>(300), 0, win.at(0, first % 90),
                        rma::Layout::vector<std::uint64_t>(300, 1, 13), rma::sum);
        win->accumulate(std::uint64_t{1}, 0, win.at(0, first), rma::sum);
        added += length + 301;
      }
    }
    const std::uint64_t wanted = ctx.world().allreduce(added, rma::sum);
    const auto all = win.local();
    if (ctx.rank() == 0) ctx.equal(std::accumulate(all.begin(), all.end(), std::uint64_t{0}), wanted, "total");
    win.free();
  }
}

// Goal: the first bulk update of a target loses none of the single updates that are under way.
// Method: many windows; in each, half of the ranks begin with a bulk update at a moment drawn at random, the others
// with single ones. All totals are known. Break: never end the bias (owns_stripe in src/xfer/stripes.cpp). That it ends
// in the right order is explored: tests/explore/explore_test.cpp.
void first_bulk_beside_singles(context& ctx) {
  constexpr std::size_t words = 512;
  const std::vector<std::uint64_t> ones(words, 1);
  for (std::size_t round = 0; round < ctx.rounds(60); ++round) {
    test_window<std::uint64_t> win(ctx, words);
    std::uint64_t added = 0;
    {
      const auto hold = win->lock_all();
      (void)win->get(0, win.at(0, 0));
      ctx.world().barrier();
      const std::size_t singles = ctx.rank() % 2 == 1 ? 1500 : ctx.random()() % 1000;
      for (std::size_t i = 0; i < singles; ++i) {
        win->accumulate(std::uint64_t{1}, 0, win.at(0, i % words), rma::sum);
        added += 1;
      }
      if (ctx.rank() % 2 == 0) {
        for (int i = 0; i < 30; ++i) win->accumulate(std::span<const std::uint64_t>(ones), 0, win.at(0, 0), rma::sum);
        added += 30 * words;
      }
    }
    const std::uint64_t wanted = ctx.world().allreduce(added, rma::sum);
    if (ctx.rank() == 0) {
      ctx.equal(std::accumulate(win.local().begin(), win.local().end(), std::uint64_t{0}), wanted, "total");
    }
    win.free();
  }
}

// Goal: spans of get_accumulate are atomic element by element, wherever they begin.
// Method: overlapping spans of odd lengths at odd offsets, sums of ones; the sum of all fetched values of one word
// must be 0 + 1 + ... + n-1.
void overlapping_get_accumulates(context& ctx) {
  constexpr std::size_t words = 700;
  each_mode<std::int32_t>(ctx, words, [&](test_window<std::int32_t>& win) {
    const std::size_t rounds = ctx.rounds(300);
    const std::vector<std::int32_t> ones(words, 1);
    std::vector<std::int64_t> fetched(words, 0);
    std::vector<std::int64_t> touched(words, 0);
    std::vector<std::int32_t> old(words);
    {
      auto hold = win->lock_all();
      for (std::size_t i = 0; i < rounds; ++i) {
        const std::size_t first = ctx.random()() % (words / 2);
        const std::size_t n = 1 + ctx.random()() % (words - first - 1);
        win->get_accumulate(std::span<const std::int32_t>(ones).first(n), std::span(old).first(n), 0, win.at(0, first),
                            rma::sum);
        hold.flush();
        for (std::size_t k = 0; k < n; ++k) {
          fetched[first + k] += old[k];
          touched[first + k] += 1;
        }
      }
    }
    ctx.world().allreduce(std::span(fetched), rma::sum);
    ctx.world().allreduce(std::span(touched), rma::sum);
    for (std::size_t k = 0; k < words; ++k) {
      if (ctx.rank() == 0 && win.local()[k] != touched[k]) ctx.fail("total of word " + std::to_string(k));
      if (fetched[k] != touched[k] * (touched[k] - 1) / 2) ctx.fail("fetched values of word " + std::to_string(k));
    }
    ctx.world().barrier();
  });
}

// Goal: no accumulate is ever seen half done, also for 16-byte elements.
// Method: ranks replace complex numbers (x, x), whole ranges and single ones, while they read with no_op: both
// halves are always equal. Break: copy 8 bytes at a time without the stripe's lock.
void complex_is_not_torn(context& ctx) {
  using number = std::complex<double>;
  constexpr std::size_t count = 40;
  each_mode<number>(ctx, count, [&](test_window<number>& win) {
    const std::size_t rounds = ctx.rounds(2000);
    std::vector<number> range(count);
    std::vector<number> seen(count);
    {
      auto hold = win->lock_all();
      for (std::size_t i = 0; i < rounds; ++i) {
        const auto x = static_cast<double>(i * 8 + static_cast<std::size_t>(ctx.rank()));
        if (i % 2 == 0) {
          std::ranges::fill(range, number(x, x));
          win->accumulate(std::span<const number>(range), 0, win.at(0, 0), rma::replace);
        } else {
          win->accumulate(number(x, x), 0, win.at(0, i % count), rma::replace);
        }
        win->get_accumulate({}, std::span(seen), 0, win.at(0, 0), rma::no_op);
        const number one = win->fetch_and_op(number(), 0, win.at(0, (i * 7) % count), rma::no_op);
        hold.flush();
        for (const number& n : seen) {
          if (n.real() != n.imag()) ctx.fail("half of a 16-byte element was seen");
        }
        if (one.real() != one.imag()) ctx.fail("half of a 16-byte element was fetched");
      }
    }
    ctx.world().barrier();
  });
}

// Goal: accumulates of one origin to one location take effect in the order in which they were called, whatever the
// mixture of calls and sizes.
// Method: each origin replaces its own word by rising numbers, by single, range, fetching and request calls in a
// random order, while the target's other readers see them rise; the last number stays. Break: send small accumulates
// past queued large ones.
void order_of_one_origin(context& ctx) {
  constexpr std::size_t stride = 600;  // a range around the word, larger than a cache line and a page
  each_mode<std::uint64_t>(ctx, stride * static_cast<std::size_t>(ctx.size()), [&](test_window<std::uint64_t>& win) {
    const std::size_t rounds = ctx.rounds(3000);
    const std::size_t first = stride * static_cast<std::size_t>(ctx.rank());
    const std::size_t other = stride * static_cast<std::size_t>(ctx.right());
    std::vector<std::uint64_t> range(stride);
    std::uint64_t last_seen = 0;
    std::uint64_t old = 0;
    {
      auto hold = win->lock_all();
      for (std::uint64_t i = 1; i <= rounds; ++i) {
        const std::uint64_t kind = ctx.random()() % 4;
        if (kind == 0) {
          win->accumulate(i, 0, win.at(0, first), rma::replace);
        } else if (kind == 1) {
          hold.flush();  // `range` may still be read
          std::ranges::fill(range, i);
          const std::size_t n = 1 + ctx.random()() % stride;
          win->accumulate(std::span<const std::uint64_t>(range).first(n), 0, win.at(0, first), rma::replace);
        } else if (kind == 2) {
          old = win->fetch_and_op(i, 0, win.at(0, first), rma::max);
          if (old != i - 1) ctx.fail("an own update was overtaken: " + std::to_string(old));
        } else {
          win->rfetch_and_op(i, old, 0, win.at(0, first), rma::replace).wait();
          if (old != i - 1) ctx.fail("an own update was overtaken by a request: " + std::to_string(old));
        }
        const std::uint64_t seen = win->fetch_and_op(std::uint64_t{0}, 0, win.at(0, other), rma::no_op);
        if (ctx.size() > 1 && seen < last_seen) ctx.fail("numbers of another origin fell");
        last_seen = seen;
      }
    }
    ctx.world().barrier();
    if (ctx.rank() == 0) {
      for (std::size_t r = 0; r < static_cast<std::size_t>(ctx.size()); ++r) {
        ctx.equal(win.local()[r * stride], static_cast<std::uint64_t>(rounds), "last number of an origin");
      }
    }
    ctx.world().barrier();
  });
}

template <class T>
void claim_by_requests(context& ctx) {
  const auto ranks = static_cast<std::size_t>(ctx.size());
  const std::size_t count = ctx.rounds(300, 20);
  each_mode<T>(ctx, count, [&](test_window<T>& win) {
    std::vector<T> seen(count);
    std::vector<T> numbers(count);
    std::vector<rma::Request> requests;
    const auto mine = static_cast<T>(ctx.rank() + 1);
    {
      const auto hold = win->lock_all();
      for (std::size_t i = 0; i < count; ++i) {
        T expected = 0;
        T desired = mine;
        requests.push_back(win->rcompare_and_swap(expected, desired, seen[i], 0, win.at(0, i)));
        expected = 77;  // both have been taken
        desired = 77;
      }
      rma::wait_all(requests);
      for (std::size_t i = 0; i < count; ++i) {
        const auto wanted = seen[i] == 0 ? mine : seen[i];
        requests[i] = win->rfetch_and_op(T{}, numbers[i], 0, win.at(0, i), rma::no_op);
        requests[i].wait();
        if (numbers[i] != wanted) ctx.fail("slot " + std::to_string(i) + " changed after it was claimed");
      }
    }
    const auto won = static_cast<std::uint64_t>(std::ranges::count(seen, T{0}));
    ctx.equal(ctx.world().allreduce(won, rma::sum), std::uint64_t{count}, "slots that were claimed, each once");
    const auto legal = [&](T value) { return value >= 1 && static_cast<std::size_t>(value) <= ranks; };
    if (ctx.rank() == 0) ctx.check(std::ranges::all_of(win.local(), legal), "a slot of nobody");
    ctx.world().barrier();
  });
}

// Goal: of many swaps that are under way at once each slot takes one, and each request's result says whose it was; what
// is compared and stored has been taken when the call returns. Method: every rank tries all slots of rank 0.
// Break: let args.compare of rcompare_and_swap_as be `desired`; end its request at once, without a result.
void claims_by_requests(context& ctx) {
  claim_by_requests<std::uint64_t>(ctx);
  claim_by_requests<std::int32_t>(ctx);
  claim_by_requests<std::uint8_t>(ctx);
}

// Goal: put and accumulate with layouts add element by element, too.
void accumulate_with_layouts(context& ctx) {
  constexpr std::size_t blocks = 50;
  each_mode<double>(ctx, blocks * 4, [&](test_window<double>& win) {
    const auto there = rma::Layout::vector<double>(blocks, 2, 4);
    const auto here = rma::Layout::contiguous<double>(blocks * 2);
    std::vector<double> add(blocks * 2);
    std::iota(add.begin(), add.end(), 1.0);
    const std::size_t rounds = ctx.rounds(50);
    win->fence();
    for (std::size_t i = 0; i < rounds; ++i) {
      win->accumulate(add.data(), here, ctx.right(), win.at(ctx.right(), 1), there, rma::sum);
      win->accumulate(add.data(), here, 0, win.at(0, 1), there, rma::sum);
    }
    win->fence();
    const std::size_t times = rounds * (ctx.rank() == 0 ? static_cast<std::size_t>(ctx.size()) + 1 : 1);
    for (std::size_t i = 0; i < blocks * 4; ++i) {
      const bool selected = i % 4 == 1 || i % 4 == 2;
      const double wanted = selected ? add[i / 4 * 2 + (i % 4 - 1)] * static_cast<double>(times) : 0.0;
      if (win.local()[i] != wanted) ctx.fail("element " + std::to_string(i) + " of a strided accumulate");
    }
    win->fence(rma::no_succeed);
  });
}

// Goal: fetch_add, swap, atomic_load and atomic_store are the updates that they name. Break: let swap use sum.
void other_names(context& ctx) {
  test_window<std::int64_t> win(ctx, 2);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const int to = ctx.right();
  ctx.equal(win->fetch_add(5, to, win.at(to, 0)), std::int64_t{0}, "fetch_add returns what was there");
  ctx.equal(win->swap(7, to, win.at(to, 0)), std::int64_t{5}, "swap returns what was there");
  ctx.equal(win->atomic_load(to, win.at(to, 0)), std::int64_t{7}, "atomic_load");
  win->atomic_store(9, to, win.at(to, 1));
  win->flush(to);
  std::int64_t old = 0;
  ctx.expect(win->try_fetch_add(1, old, to, win.at(to, 1)), rma::status::done, "try_fetch_add");
  ctx.equal(old, std::int64_t{9}, "try_fetch_add");
  ctx.expect(win->try_swap(3, old, to, win.at(to, 1)), rma::status::done, "try_swap");
  ctx.equal(old, std::int64_t{10}, "try_swap");
  ctx.check(rma::ok(win->try_atomic_store(4, to, win.at(to, 1))), "try_atomic_store");
  win->flush(to);
  ctx.expect(win->try_atomic_load(old, to, win.at(to, 1)), rma::status::done, "try_atomic_load");
  ctx.equal(old, std::int64_t{4}, "try_atomic_load");
  win->unlock_all();
  win.free();
}

// Goal: an operation whose target is no_rank does nothing, in an epoch and without one; requests of it are complete.
// Break: let issue_any refuse it.
void to_no_rank(context& ctx) {
  test_window<std::int64_t> win(ctx, 4);
  std::fill(win.local().begin(), win.local().end(), 11);
  std::vector<std::int64_t> some(3, 5);
  const std::span<const std::int64_t> from(some);
  for (const bool in_epoch : {false, true}) {
    if (in_epoch) ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
    win->put(1, rma::no_rank, 0);
    win->put(from, rma::no_rank, 1'000'000);
    win->accumulate(from, rma::no_rank, 0, rma::sum);
    win->get(std::span(some), rma::no_rank, 0);
    ctx.equal(some[0], std::int64_t{5}, "a buffer for what no rank has");
    ctx.equal(win->get(rma::no_rank, 0), std::int64_t{0}, "a value of no rank");
    ctx.equal(win->fetch_add(1, rma::no_rank, 0), std::int64_t{0}, "fetch_add of no rank");
    ctx.equal(win->compare_and_swap(1, 2, rma::no_rank, 0), std::int64_t{0}, "compare_and_swap of no rank");
    rma::Request put = win->rput(from, rma::no_rank, 0);
    ctx.check(!put.pending(), "a request of no rank is complete");
    if (in_epoch) win->unlock_all();
  }
  ctx.expect(win->try_put(1, rma::no_rank - 1, 0), rma::status::bad_rank, "another number");
  ctx.world().barrier();
  for (const std::int64_t value : win.local()) ctx.equal(value, std::int64_t{11}, "the window's memory");
  win.free();
}

constexpr test_case atomic_table[] = {
    {"atomic.tickets", tickets, each_kind},
    {"atomic.compare_and_swap_counters", compare_and_swap_counters, each_kind},
    {"atomic.compare_and_swap_values", compare_and_swap_values, each_kind},
    {"atomic.race_of_single_and_bulk", race_of_single_and_bulk, each_kind},
    {"atomic.granularity", granularity, each_kind},
    {"atomic.scattered_in_order", scattered_in_order, each_kind},
    {"atomic.first_bulk_beside_singles", first_bulk_beside_singles, each_kind},
    {"atomic.overlapping_get_accumulates", overlapping_get_accumulates, each_kind},
    {"atomic.complex_is_not_torn", complex_is_not_torn, each_kind},
    {"atomic.order_of_one_origin", order_of_one_origin, each_kind},
    {"atomic.claims_by_requests", claims_by_requests, each_kind},
    {"atomic.accumulate_with_layouts", accumulate_with_layouts, each_kind},
    {"atomic.other_names", other_names, each_kind},
    {"atomic.to_no_rank", to_no_rank, each_kind},
};

}  // namespace

std::span<const test_case> atomic_cases() noexcept { return atomic_table; }

}  // namespace conformance
