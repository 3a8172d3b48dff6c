// SPDX-License-Identifier: Apache-2.0
// Elements of a rank's own part that it waits for.
#include <cstdint>
#include <stdexcept>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using words = std::span<const std::uint64_t>;

/// An element is written whole, but often by plain stores, and a fence stands between it and what was put before.
void skip_under_sanitizer() {
  if (thread_sanitizer) context::skip("the thread sanitizer knows neither fences nor stores that are whole");
}

// Goal: what was flushed before a flag was written is there when wait_until returns; sizes from none to large; nobody
// needs an epoch to wait. Method: a ring; the flag tells the round. Break: return at the first look.
void flag_behind_data(context& ctx) {
  skip_under_sanitizer();
  constexpr std::size_t count = 20000;
  test_window<std::uint64_t> win(ctx, count + 2);
  std::vector<std::uint64_t> from(count);
  constexpr std::size_t there = count, taken = count + 1;
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(300);
  for (std::size_t round = 1; round <= rounds; ++round) {
    const auto is_now = [round](std::uint64_t value) { return value == round; };
    const std::size_t n = round % 17 == 0 ? count : ctx.common_random()() % (round % 5 == 0 ? 3000 : 40);
    fill_tagged(std::span(from).first(n), ctx.rank(), round);
    win->put(words(from).first(n), ctx.right(), win.at(ctx.right(), 0));
    win->flush(ctx.right());
    win->put(std::uint64_t{round}, ctx.right(), win.at(ctx.right(), there));
    win->flush(ctx.right());
    ctx.equal(win->wait_until(win.at(ctx.rank(), there), is_now, ctx.left()), std::uint64_t{round}, "the flag");
    if (first_untagged(words(win.local()).first(n), ctx.left(), round) != n) {
      ctx.fail("a flag came before its " + std::to_string(n) + " words");
    }
    win->put(std::uint64_t{round}, ctx.left(), win.at(ctx.left(), taken));
    win->flush(ctx.left());
    std::uint64_t found = 0;
    ctx.expect(win->wait_until_nothrow(win.at(ctx.rank(), taken), is_now, found), rma::status::done,
               "wait_until_nothrow");
    ctx.equal(found, std::uint64_t{round}, "what wait_until found");
  }
  win->unlock_all();
  win.free();
}

// Goal: a counter that all ranks add to. Method: rank 0 looks with test_until, then waits for the last.
void a_counter(context& ctx) {
  skip_under_sanitizer();
  const auto ranks = static_cast<std::uint64_t>(ctx.size());
  constexpr std::uint64_t each = 50;
  test_window<std::uint64_t> win(ctx, 1);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  for (std::uint64_t i = 0; i < each; ++i) win->accumulate(std::uint64_t{1}, 0, win.at(0, 0), rma::sum);
  win->flush(0);
  if (ctx.rank() == 0) {
    const std::uint64_t at = win.at(0, 0);
    ctx.wait_until([&] { return win->test_until(at, [](std::uint64_t value) { return value >= each; }); });
    const std::uint64_t found = win->wait_until(at, [&](std::uint64_t value) { return value >= ranks * each; });
    ctx.equal(found, ranks * each, "the counter");
    ctx.check(!win->test_until(at, [&](std::uint64_t value) { return value > found; }), "a counter that goes on");
  }
  win->unlock_all();
  win.free();
}

template <class T>
void wait_for_one(context& ctx) {
  test_window<T> win(ctx, 3);
  constexpr auto value = static_cast<T>(77);
  {
    const auto epoch = win->lock(rma::shared, ctx.right());
    win->put(value, ctx.right(), win.at(ctx.right(), 1));
  }
  ctx.equal(win->wait_until(win.at(ctx.rank(), 1), [](T found) { return found != 0; }), value, "an element");
  win.free();
}

// Goal: elements of every size, and of an untyped window.
void each_size(context& ctx) {
  skip_under_sanitizer();
  wait_for_one<std::uint8_t>(ctx);
  wait_for_one<std::int16_t>(ctx);
  wait_for_one<float>(ctx);
  wait_for_one<double>(ctx);
  auto win = rma::Window<std::byte>::allocate(ctx.world(), 64);
  const std::uint32_t value = 0x01020304;
  {
    const auto epoch = win.lock(rma::shared, ctx.right());
    win.put(std::as_bytes(std::span(&value, 1)), ctx.right(), 8);
  }
  const auto is_all = [&](std::uint32_t found) { return found == value; };
  ctx.equal(win.wait_until<std::uint32_t>(8, is_all, ctx.left()), value, "an element of an untyped window");
  ctx.expect(win.try_put(std::as_bytes(std::span(&value, 1)), ctx.right(), 8), rma::status::wrong_epoch,
             "a put after a wait, which opens no epoch");
  win.free();
}

// Goal: what cannot be waited for is refused with its reason; what the predicate throws comes out, and harms nothing.
void not_to_be_waited_for(context& ctx) {
  auto win = rma::Window<std::uint64_t>::allocate(ctx.world(), 4, {.name = "mailbox"});
  const auto any = [](std::uint64_t) { return true; };
  const std::string part = "rank " + std::to_string(ctx.rank()) + " has 4";
  ctx.throws(rma::status::out_of_window, {"wait_until", "mailbox", "displacement 4", part.c_str()},
             [&] { (void)win.wait_until(4, any); });
  ctx.throws(rma::status::out_of_window, {"test_until", "mailbox"},
             [&] { (void)win.test_until(std::size_t{1} << 61, any); });
  ctx.throws(rma::status::bad_rank, {"wait_until", "mailbox", "not in the team"},
             [&] { (void)win.wait_until(0, any, ctx.size()); });
  bool thrown = false;
  try {
    (void)win.wait_until(0, [](std::uint64_t) -> bool { throw std::runtime_error("enough"); });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  ctx.check(thrown, "what a predicate throws is lost");
  ctx.equal(win.wait_until(3, any), std::uint64_t{0}, "a wait after one that threw");
  auto bytes = rma::Window<std::byte>::allocate(ctx.world(), 64);
  ctx.throws(rma::status::misaligned, {"wait_until", "displacement 2"},
             [&] { (void)bytes.wait_until<std::uint32_t>(2, [](std::uint32_t) { return true; }); });
  bytes.free();
  win.free();
  ctx.throws(rma::status::window_freed, {"wait_until"}, [&] { (void)win.wait_until(0, any); });
}

constexpr test_case word_table[] = {
    {"word.flag_behind_data", flag_behind_data, each_kind},
    {"word.a_counter", a_counter, each_kind},
    {"word.each_size", each_size, each_kind},
    {"word.not_to_be_waited_for", not_to_be_waited_for},
};

}  // namespace

std::span<const test_case> word_cases() noexcept { return word_table; }

}  // namespace conformance
