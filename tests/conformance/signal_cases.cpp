// SPDX-License-Identifier: Apache-2.0
// Notified operations: a signal at the target is raised when the data are there.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using words = std::span<const std::uint64_t>;

// Goal: after wait_signal plain loads see the whole notified put; sizes from none to large; the target needs no epoch.
// Method: a ring with two signals: "data are there" forward, "I have read them" backward. Break: raise the signal
// before the copy.
void put_ring(context& ctx) {
  constexpr std::size_t count = 20000;
  test_window<std::uint64_t> win(ctx, count);
  std::vector<std::uint64_t> from(count);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(500);
  for (std::size_t round = 1; round <= rounds; ++round) {
    const std::size_t n = round % 17 == 0 ? count : ctx.common_random()() % (round % 5 == 0 ? 3000 : 40);
    fill_tagged(std::span(from).first(n), ctx.rank(), round);
    win->put_signal(words(from).first(n), ctx.right(), win.at(ctx.right(), 0), 3);
    win->wait_signal(3, 1, ctx.left());
    if (first_untagged(words(win.local()).first(n), ctx.left(), round) != n) {
      ctx.fail("a signal came before its " + std::to_string(n) + " words");
    }
    win->put_signal({}, ctx.left(), win.at(ctx.left(), 0), 7);
    win->wait_signal(7, 1, ctx.right());
    win->flush_local(ctx.right());
  }
  ctx.equal(win->signal_value(3), std::uint64_t{0}, "signals left over");
  win->unlock_all();
  win.free();
}

// Goal: the signal of a put or get that is made in several parts, by both sides perhaps, comes once, behind the last.
// Method: each rank waits in the library, so that it is asked to help. Break: leave the signal to the parts.
void in_parts(context& ctx) {
  constexpr std::size_t count = (std::size_t{3} << 17) + 1;  // 3 MiB and a word
  test_window<std::uint64_t> win(ctx, 2 * count);
  std::vector<std::uint64_t> from(count), to(count);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(6);
  for (std::size_t round = 1; round <= rounds; ++round) {
    fill_tagged(std::span(from), ctx.rank(), round);
    fill_tagged(win.local().last(count), ctx.rank(), round + 1000);
    ctx.world().barrier();
    win->put_signal(words(from), ctx.right(), win.at(ctx.right(), 0), 5);
    win->wait_signal(5, 1, ctx.left());
    ctx.equal(first_untagged(words(win.local()).first(count), ctx.left(), round), count, "words there with the signal");
    win->get_signal(std::span(to), ctx.right(), win.at(ctx.right(), count), 6);
    win->flush(ctx.right());
    ctx.equal(first_untagged(words(to), ctx.right(), round + 1000), count, "words of a get with a signal");
    win->wait_signal(6, 1, ctx.left());
    ctx.world().barrier();
    ctx.equal(win->signal_value(5) + win->signal_value(6), std::uint64_t{0}, "signals that came twice");
  }
  win->unlock_all();
  win.free();
}

// Goal: signals count: many raised by many ranks are taken away in any portions.
void counts_add_up(context& ctx) {
  const auto ranks = static_cast<std::size_t>(ctx.size());
  constexpr std::size_t each = 100;
  test_window<std::uint64_t> win(ctx, ranks * each);
  const auto first = each * static_cast<std::size_t>(ctx.rank());
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  for (std::size_t i = 0; i < each; ++i) {
    const std::uint64_t value = tagged<std::uint64_t>(ctx.rank(), i);
    win->put_signal(words(&value, 1), 0, win.at(0, first + i), 15);
    win->flush_local(0);
  }
  if (ctx.rank() == 0) {
    win->wait_signal(15, each);
    std::size_t taken = each;
    while (taken + 7 <= ranks * each) {
      ctx.wait_until([&] { return win->test_signal(15, 7); });
      taken += 7;
    }
    win->wait_signal(15, ranks * each - taken);
    ctx.check(!win->test_signal(15), "more signals than were raised");
    for (int r = 0; r < ctx.size(); ++r) {
      const words part = words(win.local()).subspan(each * static_cast<std::size_t>(r), each);
      ctx.equal(first_untagged(part, r), each, "data of a rank after all its signals");
    }
  }
  win->unlock_all();
  ctx.world().barrier();
  win.free();
}

// Goal: the signals of a window do not mix with each other, nor with those of another window; a hint gives more.
void many_signals(context& ctx) {
  rma::Hints hints;
  hints.signals = 200;
  test_window<std::uint64_t> a(ctx, 1, hints);
  test_window<std::uint64_t> b(ctx, 1);
  ctx.expect(a->lock_all_nothrow(), rma::status::done, "lock_all");
  ctx.expect(b->lock_all_nothrow(), rma::status::done, "lock_all");
  for (unsigned s = 0; s < 200; s += 3) {
    for (unsigned times = 0; times <= s % 4; ++times) a->put_signal({}, ctx.right(), a.at(ctx.right(), 0), s);
  }
  b->put_signal({}, ctx.right(), b.at(ctx.right(), 0), 0);
  a->flush(ctx.right());
  b->flush(ctx.right());
  for (unsigned s = 199; s-- > 0;) {
    if (s % 3 == 0) a->wait_signal(s, s % 4 + 1);
  }
  b->wait_signal(0);
  ctx.world().barrier();
  for (unsigned s = 0; s < 200; ++s) ctx.equal(a->signal_value(s), std::uint64_t{0}, "a signal that nobody raised");
  a->unlock_all();
  b->unlock_all();
  a.free();
  b.free();
}

// Goal: get_signal tells the target that its data have been read: it may overwrite them.
// Method: rank 0 publishes a new generation only after all readers' signals; each read is of one generation.
void get_tells_the_target(context& ctx) {
  constexpr std::size_t count = 3000;
  test_window<std::uint64_t> win(ctx, count);
  std::vector<std::uint64_t> to(count);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const auto readers = static_cast<std::uint64_t>(ctx.size() - 1);
  const std::size_t rounds = ctx.rounds(200);
  for (std::size_t round = 1; round <= rounds; ++round) {
    if (ctx.rank() == 0) {
      std::ranges::fill(win.local(), round);
      win->sync();
      for (int r = 1; r < ctx.size(); ++r) win->put_signal({}, r, win.at(r, 0), 1);
      win->wait_signal(2, readers);
    } else {
      win->wait_signal(1, 1, 0);
      win->get_signal(std::span(to), 0, win.at(0, 0), 2);
      win->flush(0);
      if (std::ranges::any_of(to, [&](std::uint64_t v) { return v != round; })) ctx.fail("a read mixes generations");
    }
  }
  win->unlock_all();
  win.free();
}

// Goal: the same for a get of one message, whose answer is made of what lies at the target: by then it has been made,
// whatever thread of the target made it. Method: the target waits for the signal by looking at it, and writes at once.
// Break: raise the signal before the answer is sent (serve, src/xfer/handlers.cpp; RMA_PROGRESS_THREAD=1 shows it).
void get_of_one_message(context& ctx) {
  constexpr std::size_t count = 500;
  test_window<std::uint64_t> win(ctx, count);
  std::vector<std::uint64_t> to(count);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(2000);
  for (std::size_t round = 1; round <= rounds; ++round) {
    if (ctx.rank() == 0) {
      std::ranges::fill(win.local(), round);
      win->put_signal({}, 1, win.at(1, 0), 1);
      ctx.wait_until([&] {  // mostly without going into the library, so that another thread takes the message
        for (int looks = 0; looks < 1000; ++looks) {
          if (win->signal_value(2) != 0) return true;
        }
        return false;
      });
      win->wait_signal(2, 1, 1);
      std::ranges::fill(win.local(), 0);
      win->wait_signal(3, 1, 1);
    } else if (ctx.rank() == 1) {
      win->wait_signal(1, 1, 0);
      win->get_signal(std::span(to), 0, win.at(0, 0), 2);
      win->flush(0);
      if (std::ranges::any_of(to, [&](std::uint64_t v) { return v != round; })) ctx.fail("read after it was told");
      win->put_signal({}, 0, win.at(0, 0), 3);
    }
  }
  win->unlock_all();
  win.free();
}

// Goal: after the signals of accumulate_signal the sum is complete.
void accumulate_then_signal(context& ctx) {
  constexpr std::size_t count = 700;
  test_window<std::int64_t> win(ctx, count);
  const std::vector<std::int64_t> ones(count, 1);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(100);
  for (std::size_t round = 1; round <= rounds; ++round) {
    win->accumulate_signal(std::span<const std::int64_t>(ones), 0, win.at(0, 0), rma::sum, 4);
    win->flush_local(0);
    if (ctx.rank() == 0) {
      win->wait_signal(4, static_cast<std::uint64_t>(ctx.size()));
      const std::int64_t wanted = static_cast<std::int64_t>(round) * ctx.size();
      if (std::ranges::any_of(win.local(), [&](std::int64_t v) { return v != wanted; }))
        ctx.fail("sum after the signals");
    }
    ctx.world().barrier();
  }
  win->unlock_all();
  win.free();
}

// Goal: who waits for several signals is told which has come, with its data, and takes that one alone: none is lost.
// Method: every rank raises signals of rank 0 in an order of its own, each behind a word that tells how often; rank 0
// takes them as they come, and turns the list. Break: take every signal that has come, or name the first of the list
// always (take_any, src/sync/active.cpp).
void any_of_several(context& ctx) {
  constexpr unsigned listed = 5;
  const unsigned signals[listed] = {11, 2, 7, 0, 15};
  const auto ranks = static_cast<std::size_t>(ctx.size());
  test_window<std::uint64_t> win(ctx, listed * ranks);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t each = ctx.rounds(60);
  std::vector<unsigned> order;
  for (unsigned s = 0; s < listed; ++s) order.insert(order.end(), each, s);
  std::ranges::shuffle(order, ctx.random());
  std::uint64_t sent[listed] = {};
  for (const unsigned s : order) {
    const std::uint64_t value = ++sent[s];
    const std::size_t at = s * ranks + static_cast<std::size_t>(ctx.rank());
    win->put_signal(words(&value, 1), 0, win.at(0, at), signals[s]);
    win->flush_local(0);
  }
  if (ctx.rank() == 0) {
    std::vector<unsigned> list(std::begin(signals), std::end(signals));
    std::vector<std::uint64_t> taken(listed, 0);
    for (std::size_t left = listed * each * ranks; left != 0; --left) {
      std::ranges::rotate(list, list.begin() + 1);
      std::optional<std::size_t> which;
      if (left % 3 == 0) which = win->test_any_signal(list);
      if (!which) which = win->wait_any_signal(list);
      const auto s = static_cast<std::size_t>(std::ranges::find(signals, list[*which]) - std::begin(signals));
      ++taken[s];
      std::uint64_t there = 0;
      for (std::size_t r = 0; r < ranks; ++r) there += win->get(0, win.at(0, s * ranks + r));
      if (there < taken[s]) ctx.fail("a signal came before its data");
    }
    for (const std::uint64_t n : taken) ctx.equal(n, std::uint64_t{each * ranks}, "how often a signal was taken");
    ctx.check(!win->test_any_signal(signals), "more signals than were raised");
  }
  win->unlock_all();
  ctx.world().barrier();
  win.free();
}

// Goal: of several that are there the first of the list is taken, as often as was asked for, the others stay; one that
// the window does not have is refused, and nothing is taken; of an empty list there is nothing to wait for.
// Break: look from the end of the list; take one instead of `count`; take before looking at the numbers.
void first_of_several(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1, {.name = "bells"});
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  for (const unsigned s : {3U, 4U, 4U, 4U, 5U, 5U}) win->put_signal({}, ctx.right(), win.at(ctx.right(), 0), s);
  win->flush(ctx.right());
  ctx.world().barrier();
  ctx.wait_until([&] { return win->signal_value(3) + win->signal_value(4) + win->signal_value(5) == 6; });
  const unsigned signals[] = {9, 5, 4, 3};
  ctx.equal(win->wait_any_signal(signals, 3, ctx.left()), std::size_t{2}, "the one that was raised three times");
  ctx.equal(win->wait_any_signal(signals), std::size_t{1}, "the first of several");
  ctx.check(win->test_any_signal(signals) == std::size_t{1}, "the first of several, a second time");
  ctx.check(!win->test_any_signal(signals, 2), "a signal that was raised once was taken twice");
  std::size_t which = 0;
  ctx.expect(win->wait_any_signal_nothrow(signals, which, 1, ctx.left()), rma::status::done, "wait_any_signal_nothrow");
  ctx.equal(which, std::size_t{3}, "the last one that is left");
  ctx.expect(win->try_test_any_signal(signals, which), rma::status::not_yet, "try_test_any_signal");
  win->put_signal({}, ctx.rank(), win.at(ctx.rank(), 0), 3);
  win->flush(ctx.rank());
  const unsigned unknown[] = {3, 16, 3};
  ctx.throws(rma::status::bad_argument, {"wait", "signal", "bells", "16"}, [&] { win->wait_any_signal(unknown); });
  ctx.throws(rma::status::bad_argument, {"test", "signal", "bells", "16"},
             [&] { (void)win->test_any_signal(unknown); });
  ctx.expect(win->wait_any_signal_nothrow(unknown, which), rma::status::bad_argument, "an unknown signal");
  ctx.equal(which, std::size_t{1}, "the place of an unknown signal");
  ctx.expect(win->wait_any_signal_nothrow(signals, which, 1, ctx.size()), rma::status::bad_rank, "from nobody");
  ctx.equal(win->wait_any_signal({}), std::size_t{0}, "wait_any_signal of nothing");
  ctx.check(!win->test_any_signal({}), "test_any_signal of nothing");
  ctx.check(win->test_signal(3), "a signal was taken by a call that was refused");
  win->unlock_all();
  win.free();
}

// Goal: signals of one origin come in the order of its calls where a flush of the target stands between them, whatever
// ways the data before and behind it go. Method: long data, contiguous and with a layout, of user memory, too; then a
// signal without data, which has the shortest way. Break: leave the flush away.
void ordered_by_flush(context& ctx) {
  constexpr std::size_t count = 20000;
  const int to = ctx.right();
  test_window<std::uint64_t> win(ctx, count);
  std::vector<std::uint64_t> data(count);
  const rma::Layout every_second = rma::Layout::vector<std::uint64_t>(count / 2, 1, 2);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  for (std::uint64_t round = 1; round <= ctx.rounds(20); ++round) {
    std::ranges::fill(data, round);
    if (round % 2 == 0) {
      win->put_signal(words(data), to, win.at(to, 0), 0);
    } else {
      win->put_signal(data.data(), every_second, to, win.at(to, 0), every_second, 0);
    }
    win->flush(to);
    win->put_signal({}, to, win.at(to, 0), 1);
    win->wait_signal(1, 1, ctx.left());
    ctx.check(win->test_signal(0), "a signal came before the one that was raised first");
    const std::size_t step = round % 2 == 0 ? 1 : 2;
    for (std::size_t i = 0; i < count; i += step) {
      if (win.local()[i] != round) {
        ctx.fail("data are missing behind a later signal");
        break;
      }
    }
    ctx.world().barrier();
  }
  win->unlock_all();
  win.free();
}

// Goal: a rank may signal itself.
void to_self(context& ctx) {
  test_window<std::uint64_t> win(ctx, 4);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::vector<std::uint64_t> data = {1, 2, 3, 4};
  for (int i = 0; i < 100; ++i) {
    win->put_signal(words(data), ctx.rank(), win.at(ctx.rank(), 0), 0);
    win->wait_signal(0, 1, ctx.rank());
  }
  ctx.check(std::ranges::equal(win.local(), data), "a put to self with a signal");
  ctx.check(!win->test_signal(0), "a signal to self too many");
  win->unlock_all();
  win.free();
}

// Goal: notified puts work in fence and start epochs, too.
void in_other_epochs(context& ctx) {
  test_window<std::uint64_t> win(ctx, 2);
  const std::uint64_t value = 41;
  win->fence();
  win->put_signal(words(&value, 1), ctx.right(), win.at(ctx.right(), 0), 0);
  win->wait_signal(0, 1, ctx.left());
  ctx.equal(win.local()[0], value, "a notified put between fences");
  win->fence(rma::no_succeed);
  const int left[] = {ctx.left()};
  const int right[] = {ctx.right()};
  win->post(left);
  win->start(right);
  win->put_signal(words(&value, 1), ctx.right(), win.at(ctx.right(), 1), 1);
  win->wait_signal(1, 1, ctx.left());
  ctx.equal(win.local()[1], value, "a notified put between start and complete");
  win->complete();
  win->wait();
  win.free();
}

// Goal: a signal that the window does not have is refused by name, with data and without, whatever its number.
// Method: none of them leaves a trace. Break: look for an empty range before the signal (check, src/xfer/issue.cpp), or
// cast the number to int (signal_number).
void unknown_signals(context& ctx) {
  test_window<std::uint64_t> win(ctx, 2, {.name = "bell"});
  const std::uint64_t value = 1;
  win->fence();
  ctx.throws(rma::status::bad_argument, {"put", "bell", "16"},
             [&] { win->put_signal(words(&value, 1), ctx.right(), win.at(ctx.right(), 0), 16); });
  for (const unsigned signal : {16U, 17U, 1000U, 0x7fffffffU, 0x80000000U, 0xfffffffeU, 0xffffffffU}) {
    ctx.throws(rma::status::bad_argument, {"put", "bell"},
               [&] { win->put_signal({}, ctx.right(), win.at(ctx.right(), 0), signal); });
    ctx.expect(win->try_get_signal(win.local(), ctx.right(), win.at(ctx.right(), 0), signal), rma::status::bad_argument,
               "get_signal");
    ctx.throws(rma::status::bad_argument, {"accumulate", "bell"}, [&] {
      win->accumulate_signal(words(&value, 1), ctx.right(), win.at(ctx.right(), 0), rma::sum, signal);
    });
  }
  ctx.throws(rma::status::bad_argument, {"wait_signal", "bell", "16"}, [&] { win->wait_signal(16); });
  ctx.throws(rma::status::bad_argument, {"test_signal", "bell", "99"}, [&] { (void)win->test_signal(99); });
  ctx.expect(win->wait_signal_nothrow(0, 1, ctx.size()), rma::status::bad_rank, "wait_signal from nobody");
  win->fence(rma::no_succeed);
  ctx.equal(win.local()[0], std::uint64_t{0}, "what a refused accumulate added");
  win.free();
}

// Goal: put_signal of one value takes it before it returns, and brings it before the signal. Break: in try_put_signal
// of a value, leave the signal out.
void one_value(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  for (std::uint64_t round = 1; round <= ctx.rounds(200); ++round) {
    std::uint64_t value = round;
    win->put_signal(value, ctx.right(), win.at(ctx.right(), 0), 1);
    value = ~round;
    win->wait_signal(1, 1, ctx.left());
    ctx.equal(win.local()[0], round, "the value behind the signal");
    win->put_signal({}, ctx.left(), 0, 2);
    win->wait_signal(2, 1, ctx.right());
  }
  win->unlock_all();
  win.free();
}

// Goal: set_signal replaces what was raised and returns it; wait_signal_until compares, sees the data behind the
// signals, and takes nothing away; what is raised behind a set is added to it. Break: take the count in
// wait_signal_until (src/sync/active.cpp), or load and do not exchange in set_signal.
void set_and_compare(context& ctx) {
  constexpr std::uint64_t raised = 5;
  test_window<std::uint64_t> win(ctx, raised);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  for (std::uint64_t round = 1; round <= ctx.rounds(50); ++round) {
    const std::uint64_t start = round % 3 == 0 ? ~std::uint64_t{0} - raised : round * 10;
    ctx.equal(win->set_signal(3, start), round == 1 ? 0 : round - 1, "what the first set replaced");
    ctx.equal(win->signal_value(3), start, "the value that was set");
    ctx.world().barrier();
    for (std::uint64_t i = 0; i < raised; ++i) {
      const std::uint64_t value = round + i;
      win->put_signal(words(&value, 1), ctx.right(), win.at(ctx.right(), i), 3);
      win->flush_local(ctx.right());
    }
    const auto all = [&](std::uint64_t value) { return value >= start + raised; };
    ctx.equal(win->wait_signal_until(3, all, ctx.left()), start + raised, "the value that was waited for");
    for (std::uint64_t i = 0; i < raised; ++i) ctx.equal(win.local()[i], round + i, "data behind a comparison");
    ctx.equal(win->set_signal(3, round), start + raised, "what the second set replaced");
    ctx.world().barrier();
  }
  win->unlock_all();
  win.free();
}

// Goal: no signal is lost between a set and raises at the same time: each is in the count that a set returns or in what
// is left. Break: in set_signal a load and a store instead of the exchange (src/sync/active.cpp).
void sets_lose_nothing(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::uint64_t each = ctx.rounds(3000);
  if (ctx.rank() != 0) {
    for (std::uint64_t i = 0; i < each; ++i) win->put_signal({}, 0, win.at(0, 0), 2);
    win->flush(0);
  } else {
    const std::uint64_t wanted = each * static_cast<std::uint64_t>(ctx.size() - 1);
    std::uint64_t taken = 0;
    ctx.wait_until([&] {
      (void)win->test_signal(1);  // a step of progress
      taken += win->set_signal(2, 0);
      return taken >= wanted;
    });
    ctx.equal(taken, wanted, "signals that sets have replaced");
  }
  win->unlock_all();
  ctx.world().barrier();
  ctx.equal(win->signal_value(2), std::uint64_t{0}, "signals that nobody raised");
  win.free();
}

// Goal: a signal that the window does not have cannot be set or compared, nothing else changes; an exception of a
// comparison ends its wait and changes nothing. Break: leave the check of the number out of either call.
void sets_are_checked(context& ctx) {
  test_window<std::uint64_t> win(ctx, 1, {.name = "bell"});
  const auto always = [](std::uint64_t) { return true; };
  const auto raises = [](std::uint64_t) -> bool { throw std::runtime_error("enough"); };
  ctx.equal(win->set_signal(15, 4), std::uint64_t{0}, "a new signal");
  std::uint64_t found = 77;
  for (const unsigned signal : {16U, 1000U, 0x80000000U, 0xffffffffU}) {
    ctx.throws(rma::status::bad_argument, {"set_signal", "bell", std::to_string(signal)},
               [&] { win->set_signal(signal, 1); });
    ctx.throws(rma::status::bad_argument, {"wait_signal", "bell", std::to_string(signal)},
               [&] { win->wait_signal_until(signal, always); });
    ctx.expect(win->try_set_signal(signal, 1, found), rma::status::bad_argument, "try_set_signal");
    ctx.expect(win->wait_signal_until_nothrow(signal, always, found), rma::status::bad_argument, "wait_signal_until");
  }
  ctx.expect(win->wait_signal_until_nothrow(15, always, found, ctx.size()), rma::status::bad_rank, "from nobody");
  ctx.equal(found, std::uint64_t{77}, "the result of a refused call");
  bool thrown = false;
  try {
    (void)win->wait_signal_until(15, raises);
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  ctx.check(thrown, "an exception of a comparison was lost");
  ctx.expect(win->wait_signal_until_nothrow(15, always, found), rma::status::done, "wait_signal_until_nothrow");
  ctx.equal(found, std::uint64_t{4}, "the value behind refused calls");
  ctx.expect(win->try_set_signal(15, 0, found), rma::status::done, "try_set_signal");
  for (unsigned s = 0; s < 16; ++s) ctx.equal(win->signal_value(s), std::uint64_t{0}, "a signal that nobody set");
  win.free();
}

constexpr test_case signal_table[] = {
    {"signal.put_ring", put_ring, each_kind},
    {"signal.in_parts", in_parts, each_kind},
    {"signal.counts_add_up", counts_add_up, each_kind},
    {"signal.many_signals", many_signals, each_kind},
    {"signal.get_tells_the_target", get_tells_the_target, each_kind, 2},
    {"signal.get_of_one_message", get_of_one_message, each_kind, 2},
    {"signal.accumulate_then_signal", accumulate_then_signal, each_kind},
    {"signal.any_of_several", any_of_several, each_kind},
    {"signal.first_of_several", first_of_several, each_kind},
    {"signal.one_value", one_value, each_kind},
    {"signal.ordered_by_flush", ordered_by_flush, each_kind},
    {"signal.to_self", to_self, each_kind},
    {"signal.in_other_epochs", in_other_epochs, each_kind},
    {"signal.unknown_signals", unknown_signals, each_kind},
    {"signal.set_and_compare", set_and_compare, each_kind},
    {"signal.sets_lose_nothing", sets_lose_nothing, each_kind, 2},
    {"signal.sets_are_checked", sets_are_checked, each_kind},
};

}  // namespace

std::span<const test_case> signal_cases() noexcept { return signal_table; }

}  // namespace conformance
