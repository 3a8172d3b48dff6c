// SPDX-License-Identifier: Apache-2.0
// Wrong arguments: each is refused with its code by the try_ form and with a message that names call, window, rank and
// value by the other; nothing is written and the window works on.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::status;
using words = std::span<const std::uint64_t>;
constexpr std::size_t hundred = 100;
constexpr std::size_t far_away = std::numeric_limits<std::size_t>::max();

// Goal: every operation refuses a range that is not inside the target's part, and touches nothing.
void out_of_range(context& ctx) {
  test_window<std::uint64_t> win(ctx, hundred, {.name = "halo"});
  const int to = ctx.right();
  std::uint64_t value = 7;
  std::vector<std::uint64_t> ten(10, 7);
  const words out(ten);
  const std::span in(ten);
  win->fence();
  for (const std::size_t at : {hundred, hundred + 1, far_away, far_away - 8, far_away / 8, far_away / 8 + 1}) {
    const std::string text = " at " + std::to_string(at);
    ctx.expect(win->try_put(value, to, at), status::out_of_window, "put of a value" + text);
    ctx.expect(win->try_get(value, to, at), status::out_of_window, "get of a value" + text);
    ctx.expect(win->try_accumulate(value, to, at, rma::sum), status::out_of_window, "accumulate" + text);
    ctx.expect(win->try_fetch_and_op(value, value, to, at, rma::sum), status::out_of_window, "fetch_and_op" + text);
    ctx.expect(win->try_compare_and_swap(value, value, value, to, at), status::out_of_window,
               "compare_and_swap" + text);
  }
  for (const std::size_t at : {hundred - 9, hundred, far_away, far_away - 3, far_away / 8 - 2}) {
    const std::string text = " at " + std::to_string(at);
    ctx.expect(win->try_put(out, to, at), status::out_of_window, "put of a range" + text);
    ctx.expect(win->try_get(in, to, at), status::out_of_window, "get of a range" + text);
    ctx.expect(win->try_accumulate(out, to, at, rma::sum), status::out_of_window, "accumulate of a range" + text);
    ctx.expect(win->try_get_accumulate(out, in, to, at, rma::sum), status::out_of_window, "get_accumulate" + text);
    rma::Request request;
    ctx.expect(win->try_rput(out, to, at, request), status::out_of_window, "rput" + text);
    ctx.expect(win->try_rget(in, to, at, request), status::out_of_window, "rget" + text);
  }
  win->fence();
  ctx.check(std::ranges::all_of(win.local(), [](std::uint64_t v) { return v == 0; }), "a refused operation wrote");
  win->fence();
  win->put(value, to, win.at(to, hundred - 1));
  win->fence(rma::no_succeed);
  ctx.equal(win.local()[hundred - 1], value, "the last element after refused operations");
  win.free();
}

// Goal: a window's name cannot break a message's line, or color a terminal.
void messages_are_one_line(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8, {.name = "a\nb\x1b[31m\x7f"});
  win->fence();
  try {
    win->put(1, ctx.right(), 8);
    ctx.check(false, "a put behind the end");
  } catch (const rma::Error& e) {
    const std::string what = e.what();
    ctx.check(what.find("'a\\x0ab\\x1b[31m\\x7f'") != std::string::npos, what);
    ctx.check(std::none_of(what.begin(), what.end(), [](char c) { return c >= 0 && c < ' '; }), what);
  }
  win->fence();
}

// Goal: the message says which call, which window, which rank, where, and how large the target's part is.
void messages_name_everything(context& ctx) {
  test_window<std::uint64_t> win(ctx, hundred, {.name = "halo"});
  const int to = ctx.right();
  const std::string rank = "rank " + std::to_string(to);
  std::uint64_t value = 7;
  std::vector<std::uint64_t> ten(10);
  win->fence();
  const auto bad = status::out_of_window;
  ctx.throws(bad, {"put", "halo", rank, "4711", "100"}, [&] { win->put(value, to, 4711); });
  ctx.throws(bad, {"put", "halo", rank, "95", "10", "100"}, [&] { win->put(words(ten), to, 95); });
  ctx.throws(bad, {"get", "halo", rank, "100"}, [&] { (void)win->get(to, hundred); });
  ctx.throws(bad, {"get", "halo", rank, "95"}, [&] { win->get(std::span(ten), to, 95); });
  ctx.throws(bad, {"accumulate", "halo", rank}, [&] { win->accumulate(value, to, 101, rma::sum); });
  ctx.throws(bad, {"fetch_and_op", "halo", rank}, [&] { (void)win->fetch_and_op(value, to, 101, rma::sum); });
  ctx.throws(bad, {"compare_and_swap", "halo", rank}, [&] { (void)win->compare_and_swap(value, value, to, 101); });
  ctx.throws(bad, {"get_accumulate", "halo", rank},
             [&] { win->get_accumulate(words(ten), std::span(ten), to, 91, rma::sum); });
  ctx.throws(status::bad_rank, {"put", "halo", std::to_string(ctx.size())}, [&] { win->put(value, ctx.size(), 0); });
  try {
    win->put(value, to, 4711);
  } catch (const rma::Error& e) {
    ctx.equal(e.rank(), to, "rank of the error");
    ctx.check(std::string(e.where().file_name()).ends_with("misuse_cases.cpp"), "the error does not say where");
    const std::string place = "misuse_cases.cpp:" + std::to_string(e.where().line()) + ": out_of_window: ";
    ctx.check(std::string(e.what()).find(place) != std::string::npos, e.what());
    const std::string head =
        "[rank " + std::to_string(ctx.rank()) + "] put to rank " + std::to_string(to) + " (window 'halo') at ";
    ctx.check(std::string_view(e.what()).starts_with(head), e.what());
    ctx.check(std::string(e.what()).find('\n') == std::string::npos, "the message has several lines");
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: whatever call is refused, the message has its place in this file.
// Break: throw with the default for `where` in make_window, or Team::split.
void messages_name_the_place(context& ctx) {
  using window = rma::Window<std::uint64_t>;
  auto win = window::allocate(ctx.world(), 8, {.name = "placed"});
  const auto placed = [&](status code, const auto& call) {
    try {
      call();
      ctx.fail("nothing was thrown");
    } catch (const rma::Error& e) {
      ctx.expect(e.code(), code, e.what());
      const std::string line = "misuse_cases.cpp:" + std::to_string(e.where().line());
      const std::string_view what = e.what();
      ctx.check(what.find(line + ": ") != std::string_view::npos || what.ends_with(line + ")"), what);
    }
  };
  rma::Team& world = ctx.world();
  const rma::Hints impossible{.accumulate = static_cast<rma::accumulate_mode>(77)};
  std::vector<std::uint64_t> memory(8);
  const auto bad = status::bad_argument;
  placed(bad, [&] { (void)window::allocate(world, 8, impossible); });
  placed(bad, [&] { (void)window::create(world, memory, impossible); });
  placed(bad, [&] { (void)window::create_dynamic(world, {.displacement_unit = 3}); });
  placed(status::bad_rank, [&] { (void)world.world_rank(-1); });
  placed(status::bad_rank, [&] { (void)world.shares_memory(ctx.size()); });
  placed(status::bad_rank, [&] { world.broadcast(std::span(memory), -1); });
  placed(status::bad_type, [&] { (void)world.allreduce(1.0, rma::bor); });
  placed(bad, [&] { (void)ctx.runtime().team_of("nobody"); });
  placed(status::wrong_epoch, [&] { win.put(1, 0, 0); });
  placed(status::wrong_epoch, [&] { (void)win.get(0, 0); });
  placed(status::wrong_epoch, [&] { (void)win.rput(words(memory), 0, 0); });
  placed(status::wrong_epoch, [&] { win.put_signal(words(memory), 0, 0, 1); });
  placed(status::wrong_epoch, [&] { win.complete(); });
  placed(status::not_locked, [&] { win.unlock(0); });
  placed(status::bad_rank, [&] { (void)win.lock(rma::shared, -1); });
  placed(status::not_locked, [&] { (void)win.iunlock(0); });
  placed(bad, [&] { win.wait_signal(99); });
  placed(status::out_of_window, [&] { (void)win.wait_until(99, [](std::uint64_t) { return true; }); });
  win.free();
  placed(status::window_freed, [&] { (void)win.team(); });
  placed(status::window_freed, [&] { win.fence(); });
}

// Goal: ranks outside the team are refused by everything that takes one.
void bad_ranks(context& ctx) {
  test_window<std::uint64_t> win(ctx, hundred);
  std::uint64_t value = 0;
  std::vector<std::uint64_t> ten(10);
  for (const int to : {-1, rma::no_rank - 1, ctx.size(), ctx.size() + 1, std::numeric_limits<int>::max(),
                       std::numeric_limits<int>::min()}) {
    win->fence();
    const std::string text = " to rank " + std::to_string(to);
    ctx.expect(win->try_put(value, to, 0), status::bad_rank, "put" + text);
    ctx.expect(win->try_get(value, to, 0), status::bad_rank, "get" + text);
    ctx.expect(win->try_put(words(ten), to, 0), status::bad_rank, "range put" + text);
    ctx.expect(win->try_get(std::span(ten), to, 0), status::bad_rank, "range get" + text);
    ctx.expect(win->try_accumulate(value, to, 0, rma::sum), status::bad_rank, "accumulate" + text);
    ctx.expect(win->try_fetch_and_op(value, value, to, 0, rma::sum), status::bad_rank, "fetch_and_op" + text);
    ctx.expect(win->try_compare_and_swap(value, value, value, to, 0), status::bad_rank, "compare_and_swap" + text);
    win->fence(rma::no_succeed);
    ctx.expect(win->lock_nothrow(rma::shared, to), status::bad_rank, "lock" + text);
    const int group[] = {to};
    ctx.expect(win->try_post(group), status::bad_rank, "post" + text);
    ctx.expect(win->try_start(group), status::bad_rank, "start" + text);
    ctx.check(win->pointer_to(to) == nullptr, "pointer_to" + text);
    std::size_t bytes = 0;
    ctx.expect(win->try_part_bytes(to, bytes), status::bad_rank, "part_bytes" + text);
  }
  const int twice[] = {0, 0};
  ctx.expect(win->try_post(twice), status::bad_argument, "post to a rank twice");
  ctx.expect(win->try_start(twice), status::bad_argument, "start to a rank twice");
  ctx.throws(status::bad_rank, {}, [&] { (void)ctx.world().world_rank(ctx.size()); });
  win.free();
}

// Goal: a kind of lock that there is not is refused, whatever way a lock goes, and nothing is locked.
// Break: leave is_kind out of fast_lock: it is taken as exclusive.
void unknown_locks(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8, {.name = "kinds"});
  const int to = ctx.right();
  for (const int number : {0, 3, 7, 255}) {
    const auto kind = static_cast<rma::lock_kind>(number);
    const std::string text = " of kind " + std::to_string(number);
    ctx.expect(win->lock_nothrow(kind, to), status::bad_argument, "lock" + text);
    ctx.throws(status::bad_argument, {"lock to", "kinds", "rma::shared", "rma::exclusive"},
               [&] { (void)win->lock(kind, to); });
    ctx.throws(status::bad_argument, {"lock to", "rma::exclusive"}, [&] { (void)win->ilock(kind, to); });
    ctx.throws(status::bad_argument, {"lock_range to", "rma::exclusive"},
               [&] { win->lock_range(kind, to, win.at(to, 0), 8); });
    ctx.expect(win->try_unlock(to), status::not_locked, "unlock after a lock" + text);
  }
  ctx.expect(win->lock_nothrow(rma::exclusive, to), status::done, "lock after misuse");
  ctx.expect(win->try_unlock(to), status::done, "unlock after misuse");
  win.free();
}

// Goal: sizes that do not belong together, or that overflow, are refused.
void bad_sizes(context& ctx) {
  test_window<std::uint64_t> win(ctx, hundred, {.name = "sizes"});
  const int to = ctx.right();
  std::vector<std::uint64_t> ten(10);
  std::vector<std::uint64_t> nine(9);
  win->fence();
  ctx.expect(win->try_get_accumulate(words(ten), std::span(nine), to, win.at(to, 0), rma::sum), status::bad_size,
             "get_accumulate of unequal ranges");
  ctx.throws(status::bad_size, {"get_accumulate", "sizes"},
             [&] { (void)win->rget_accumulate(words(nine), std::span(ten), to, win.at(to, 0), rma::sum); });
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: a collective to which ranks give different sizes is refused, nobody waits for ever, and the next one works.
// Break: let a rank whose size is not its parent's return before it has told those behind it.
void unequal_collectives(context& ctx) {
  if (ctx.size() == 1) return;
  rma::Team& world = ctx.world();
  const bool odd_one = ctx.rank() == ctx.size() / 2;  // in the middle of the trees
  const auto may_throw = [&](const auto& call) {
    try {
      call();
    } catch (const rma::Error& e) {
      ctx.check(e.code() == status::bad_size, e.what());
    }
  };
  for (int root : {0, ctx.size() - 1}) {
    std::vector<std::uint32_t> data(odd_one ? 3 : 1000, 7);
    const auto broadcast = [&] { world.broadcast(std::span(data), root); };
    if (odd_one && ctx.rank() != root) {
      ctx.throws(status::bad_size, {"broadcast (team of ", "bad_size: member "}, broadcast);
    } else {
      may_throw(broadcast);  // members behind it get to know, the others do not
    }
  }
  std::vector<double> sums(odd_one ? 2 : 1, 1);
  ctx.throws(status::bad_size, {"allreduce (team of ", "bad_size: member "},
             [&] { world.allreduce(std::span(sums), rma::sum); });
  ctx.throws(status::bad_size, {"allgather"}, [&] {
    if (odd_one) {
      (void)world.allgather(std::uint16_t{1});
    } else {
      (void)world.allgather(std::uint64_t{1});
    }
  });
  const std::vector<std::uint64_t> for_each(static_cast<std::size_t>(ctx.size()) + (odd_one ? 1 : 0));
  const std::vector<std::uint16_t> shorter(for_each.size());
  ctx.throws(status::bad_size, {"alltoall"}, [&] { (void)world.alltoall(std::span(for_each)); });
  for (const bool ranges : {false, true}) {
    ctx.throws(status::bad_size, {ranges ? "allgatherv" : "alltoall"}, [&] {
      const auto wide = std::span(for_each).first(static_cast<std::size_t>(ctx.size()));
      const auto narrow = std::span(shorter).first(static_cast<std::size_t>(ctx.size()));
      if (odd_one) {
        (void)(ranges ? world.allgatherv(narrow).size() : world.alltoall(narrow).size());
      } else {
        (void)(ranges ? world.allgatherv(wide).size() : world.alltoall(wide).size());
      }
    });
  }
  const auto exscan = [&] { world.exscan(std::span(sums), rma::sum); };
  if (ctx.rank() < ctx.size() / 2) {
    may_throw(exscan);  // a chain: members before the odd one may have sent and returned
  } else {
    ctx.throws(status::bad_size, {"exscan"}, exscan);
  }
  ctx.throws(status::bad_type, {"scan"}, [&] { world.scan(std::span(sums), rma::bor); });
  ctx.equal(world.allreduce(1, rma::sum), ctx.size(), "allreduce after unequal ones");
  int number = ctx.rank();
  world.broadcast(std::span(&number, 1), ctx.size() - 1);
  ctx.equal(number, ctx.size() - 1, "broadcast after unequal ones");
}

/// Whether a network with atomics of its own is there.
bool has_device(context& ctx) {
  const auto lines = ctx.runtime().fabrics();
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return !line.starts_with("shm:") && line.find("atomics true") != std::string::npos;
  });
}

// Goal: windows that cannot be are refused on every rank alike, with what was asked, and the next one works.
void impossible_windows(context& ctx) {
  using window = rma::Window<std::uint64_t>;
  ctx.throws(status::bad_size, {"allocate"}, [&] { (void)window::allocate(ctx.world(), far_away / 4); });
  ctx.throws(status::out_of_memory, {"allocate"}, [&] { (void)window::allocate(ctx.world(), std::size_t{1} << 50); });
  const std::size_t mine = ctx.rank() == ctx.size() - 1 ? std::size_t{1} << 50 : 10;
  ctx.throws(status::out_of_memory, {"allocate"}, [&] { (void)window::allocate(ctx.world(), mine); });
  rma::Hints hints;
  hints.accumulate = rma::accumulate_mode::direct;
  if (!has_device(ctx))
    ctx.throws(status::not_supported, {"direct"}, [&] { (void)window::allocate(ctx.world(), 10, hints); });
  auto win = window::allocate(ctx.world(), 10);
  win.fence();
  win.put(std::uint64_t{3}, ctx.right(), 9);
  win.fence();
  ctx.equal(win[9], std::uint64_t{3}, "put into a window after impossible ones");
  win.free();
}

// Goal: operators that the element type does not have are refused at run time where the compiler could not.
void operators_without_meaning(context& ctx) {
  test_window<double> win(ctx, hundred, {.name = "real"});
  const int to = ctx.right();
  const std::vector<double> ten(10, 1.0);
  std::vector<double> old(10);
  win->fence();
  for (const rma::operation op : {rma::operation::land, rma::operation::lor, rma::operation::lxor, rma::operation::band,
                                  rma::operation::bor, rma::operation::bxor}) {
    const std::string text = " " + std::string(rma::name_of(op)) + " of double";
    ctx.expect(win->try_accumulate(std::span<const double>(ten), to, win.at(to, 0), op), status::bad_type,
               "accumulate" + text);
    ctx.expect(win->try_get_accumulate(std::span<const double>(ten), std::span(old), to, win.at(to, 0), op),
               status::bad_type, "get_accumulate" + text);
  }
  ctx.throws(status::bad_type, {"accumulate", "real", "bxor", "f64"},
             [&] { win->accumulate(std::span<const double>(ten), to, win.at(to, 0), rma::bxor); });
  win->fence();
  ctx.check(std::ranges::all_of(win.local(), [](double v) { return v == 0; }), "a refused operator wrote");
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: untyped windows refuse what is not aligned, not whole, or has no meaning for the type.
void untyped_misuse(context& ctx) {
  test_window<std::byte> win(ctx, 256, {.name = "raw"});
  const int to = ctx.right();
  std::uint64_t value = 1;
  std::uint64_t old = 0;
  const double real = 1;
  double real_old = 0;
  const auto one = rma::Layout::contiguous<std::uint64_t>(1);
  const auto part = rma::Layout::contiguous<std::uint8_t>(12);
  win->fence();
  for (const std::size_t off : {1U, 2U, 4U, 7U, 33U}) {
    const std::uint64_t at = win.at(to, off);
    const std::string text = " of 8 bytes at " + std::to_string(off);
    ctx.expect(win->fetch_and_op_as(rma::element::u64, rma::sum, &value, &old, to, at), status::misaligned,
               "fetch_and_op" + text);
    ctx.expect(win->compare_and_swap_as(rma::element::u64, &value, &value, &old, to, at), status::misaligned,
               "compare_and_swap" + text);
    ctx.expect(win->accumulate_as(rma::element::u64, rma::sum, &value, one, to, at, one), status::misaligned,
               "accumulate" + text);
  }
  const std::uint64_t at = win.at(to, 0);
  ctx.expect(win->fetch_and_op_as(rma::element::f64, rma::band, &real, &real_old, to, at), status::bad_type,
             "band of a double");
  ctx.expect(win->fetch_and_op_as(rma::element::c64, rma::max, &real, &real_old, to, at), status::bad_type,
             "max of a complex");
  ctx.expect(win->accumulate_as(rma::element::u64, static_cast<rma::operation>(99), &value, one, to, at, one),
             status::bad_type, "an operator that does not exist");
  ctx.expect(win->accumulate_as(static_cast<rma::element>(99), rma::sum, &value, one, to, at, one), status::bad_type,
             "a type that does not exist");
  ctx.expect(win->compare_and_swap_as(rma::element::f64, &real, &real, &real_old, to, at), status::bad_type,
             "compare_and_swap of doubles");
  ctx.check(!rma::ok(win->accumulate_as(rma::element::u64, rma::sum, &value, part, to, at, part)),
            "accumulate of one and a half elements was taken");
  ctx.check(rma::ok(win->fetch_and_op_as(rma::element::u64, rma::sum, &value, &old, to, win.at(to, 8))),
            "an aligned one");
  win->fence(rma::no_succeed);
  ctx.equal(old, std::uint64_t{0}, "old value of the aligned one");
  win.free();
}

// Goal: what is wrong is refused after any number of operations that were right, by whatever short way those went.
// Method: half of the ranks wait in the library, the others alternate. Break: leave a check out of run_plain_promised.
void wrong_after_right(context& ctx) {
  test_window<std::byte> win(ctx, 256);
  const int to = ctx.right();
  std::uint64_t value = 0;
  const double real = 1;
  double real_old = 0;
  for (std::size_t i = 0; ctx.rank() % 2 == 0 && i < ctx.rounds(100); ++i) {
    const auto at = [&](std::size_t offset) { return win.at(to, offset); };
    {
      auto hold = win->lock(rma::shared, to);
      ctx.expect(win->try_put(std::byte{}, to, at(8)), status::done, "a right put");
      ctx.check(rma::ok(win->fetch_and_op_as(rma::element::u64, rma::no_op, &value, &value, to, at(0))), "a right one");
      ctx.expect(win->fetch_and_op_as(rma::element::u64, rma::no_op, &value, &value, to, at(4)), status::misaligned,
                 "fetch_and_op");
      ctx.expect(win->fetch_and_op_as(rma::element::f64, rma::band, &real, &real_old, to, at(0)), status::bad_type,
                 "band of a double");
      ctx.expect(win->fetch_and_op_as(rma::element::u64, rma::no_op, &value, &value, to, at(0) + 256),
                 status::out_of_window, "fetch_and_op behind the end");
      hold.flush();
    }
    std::byte one{};
    ctx.expect(win->try_put(one, to, at(0)), status::wrong_epoch, "put without an epoch");
    ctx.expect(win->try_get(one, to, at(0)), status::wrong_epoch, "get without an epoch");
  }
  ctx.world().barrier();
  win.free();
}

// Goal: a displacement whose place in bytes does not fit 64 bits is outside, also after operations that were right.
// Method: a unit of 2^44 bytes, of which 2^20 come to 0. Break: multiply without a look (lies_within).
void huge_units(context& ctx) {
  constexpr std::size_t unit = std::size_t{1} << 44;
  constexpr std::size_t wraps = std::size_t{1} << 20;
  test_window<std::byte> win(ctx, wraps + 8, {.displacement_unit = unit});
  const int to = ctx.right();
  std::byte value{};
  if (ctx.rank() % 2 == 0) {
    auto hold = win->lock(rma::shared, to);
    for (std::size_t i = 0; i < ctx.rounds(100); ++i) {
      ctx.expect(win->try_put(value, to, 0), status::done, "put at 0");
      ctx.expect(win->try_get(value, to, wraps), status::out_of_window, "get at 2^64");
      ctx.expect(win->try_put(value, to, 1), status::out_of_window, "put at 2^44");
    }
  }
  ctx.world().barrier();
  win.free();
}

// Goal: settings that do not exist, and values that a setting does not have, are refused with the valid ones.
// Method: a second runtime, a job of this rank alone, with a Config.
void unknown_settings(context& ctx) {
  const auto with = [](const char* name, const char* value) {
    rma::Config config;
    config.environment = false;
    config.settings[name] = value;
    const rma::Runtime runtime(config);
  };
  ctx.throws(status::bad_setting, {"RMA_NO_SUCH_THING", "RMA_PROGRESS_THREAD"},
             [&] { with("RMA_NO_SUCH_THING", "1"); });
  ctx.throws(status::bad_setting, {"RMA_ACCUMULATE", "sideways", "element", "striped", "handler"},
             [&] { with("RMA_ACCUMULATE", "sideways"); });
  ctx.throws(status::bad_setting, {"RMA_PROGRESS_THREAD", "perhaps"}, [&] { with("RMA_PROGRESS_THREAD", "perhaps"); });
  ctx.throws(status::bad_setting, {"RMA_SPIN_US", "-3"}, [&] { with("RMA_SPIN_US", "-3"); });
  ctx.throws(status::bad_setting, {"RMA_SEGMENT_BYTES", "12Q"}, [&] { with("RMA_SEGMENT_BYTES", "12Q"); });
}

// Goal: a launcher's parameters that make no sense are refused, not waited for.
void senseless_boot(context& ctx) {
  const auto with = [](const rma::Config& config) { const rma::Runtime runtime(config); };
  ctx.throws(status::bad_boot, {"carrier-pigeon"}, [&] {
    with({.environment = false, .boot = "carrier-pigeon://roof", .rank = 0, .size = 2, .key = "0123456789abcdef0123"});
  });
  ctx.throws(status::bad_boot, {"4"}, [&] {
    with({.environment = false, .boot = "local://nobody-there", .rank = 4, .size = 4, .key = "0123456789abcdef0123"});
  });
  ctx.throws(status::bad_boot, {}, [&] { with({.environment = false, .rank = 0, .size = 2}); });
}

// Goal: windows that the ranks want in different ways are made nowhere, and each rank reads what differs and what it
// asked for itself. Break: leave one of them out of wishes_of.
void different_windows(context& ctx) {
  const bool odd = ctx.rank() != 0;
  const auto refused = [&](std::initializer_list<std::string_view> said, const auto& make) {
    if (ctx.size() > 1) ctx.throws(status::bad_setting, said, make);
  };
  const auto with = [&](const rma::Hints& mine, const rma::Hints& theirs) {
    return
        [&ctx, odd, mine, theirs] { (void)rma::Window<std::uint64_t>::allocate(ctx.world(), 8, odd ? theirs : mine); };
  };
  refused({"odd", "signals", odd ? "65536" : "1 "},
          with({.name = "odd", .signals = 1}, {.name = "odd", .signals = 65536}));
  refused({"accumulate", odd ? "element" : "handler"},
          with({.accumulate = rma::accumulate_mode::handler}, {.accumulate = rma::accumulate_mode::element}));
  refused({"granularities", odd ? "64 bytes" : "0 bytes"}, with({}, {.accumulate_granularity = 64}));
  refused({"lock", odd ? "cpu" : "two-sided"},
          with({.lock = rma::lock_protocol::two_sided}, {.lock = rma::lock_protocol::cpu}));
  refused({"units", odd ? "8 bytes" : "1 bytes"}, with({.displacement_unit = 1}, {}));
  refused({"fence", odd ? "def" : "imm-opt"},
          with({.fence = rma::fence_kind::imm_opt}, {.fence = rma::fence_kind::def}));
  std::vector<std::uint64_t> memory(8);
  refused({odd ? "allocate" : "create"}, [&] {
    (void)(odd ? rma::Window<std::uint64_t>::allocate(ctx.world(), 8)
               : rma::Window<std::uint64_t>::create(ctx.world(), memory));
  });
  refused({"units"}, [&] {
    if (odd) {
      (void)rma::Window<std::int32_t>::allocate(ctx.world(), 8);
    } else {
      (void)rma::Window<std::int64_t>::allocate(ctx.world(), 8);
    }
  });
  auto bytes = [&] {  // one way to count, whatever the type
    if (odd) return rma::Window<std::byte>::allocate(ctx.world(), 64, {.displacement_unit = 8});
    return rma::Window<std::byte>::allocate(ctx.world(), 64, {.displacement_unit = 8, .signals = 16});
  }();
  bytes.free();
}

constexpr kind_set displaced_kinds = each_kind & ~only(window_kind::dynamic);

constexpr test_case misuse_table[] = {
    {"misuse.out_of_range", out_of_range, displaced_kinds},
    {"misuse.messages_are_one_line", messages_are_one_line, displaced_kinds},
    {"misuse.messages_name_everything", messages_name_everything, displaced_kinds},
    {"misuse.messages_name_the_place", messages_name_the_place},
    {"misuse.bad_ranks", bad_ranks, each_kind},
    {"misuse.unknown_locks", unknown_locks, each_kind},
    {"misuse.bad_sizes", bad_sizes, each_kind},
    {"misuse.unequal_collectives", unequal_collectives},
    {"misuse.impossible_windows", impossible_windows},
    {"misuse.different_windows", different_windows},
    {"misuse.operators_without_meaning", operators_without_meaning, each_kind},
    {"misuse.untyped_misuse", untyped_misuse, each_kind},
    {"misuse.wrong_after_right", wrong_after_right, each_kind},
    {"misuse.huge_units", huge_units, displaced_kinds},
    {"misuse.unknown_settings", unknown_settings},
    {"misuse.senseless_boot", senseless_boot},
};

}  // namespace

std::span<const test_case> misuse_cases() noexcept { return misuse_table; }

}  // namespace conformance
