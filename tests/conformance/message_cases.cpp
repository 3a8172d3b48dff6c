// SPDX-License-Identifier: Apache-2.0
// The caller's numbers in messages: each in its own unit, under the name of the call that was made.
#include <array>
#include <cstdint>
#include <string>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::status;
using words = std::span<const std::uint64_t>;
constexpr std::size_t part_size = 100;
constexpr auto beyond = status::out_of_window;

/// "rank 3"
std::string named_rank(int number) { return "rank " + std::to_string(number); }

// Goal: elements are called elements, bytes bytes, and a layout is told by its bytes and by what it reaches.
// Break: pass the bytes of a layout as a count of elements.
void units(context& ctx) {
  test_window<std::uint64_t> win(ctx, part_size);
  const int to = ctx.right();
  std::array<std::uint64_t, 8> some{};
  const auto row = rma::Layout::contiguous<std::uint64_t>(4);
  const auto column = rma::Layout::vector<std::uint64_t>(4, 1, 2);
  const std::string part = named_rank(to) + " has 100 elements";
  win->fence();
  ctx.throws(beyond, {"put", " 4 elements at displacement 97 (unit 8 bytes); ", part},
             [&] { win->put(words(some).first(4), to, 97); });
  ctx.throws(beyond, {"put", " 1 element at", part}, [&] { win->put(std::uint64_t{1}, to, 100); });
  ctx.throws(beyond, {"put", "layout of 32 bytes, over bytes 0 to 32 at displacement 97", part},
             [&] { win->put(some.data(), row, to, 97, row); });
  ctx.throws(beyond, {"put", "layout of 32 bytes, over bytes 0 to 56 at displacement 95", part},
             [&] { (void)win->rput(some.data(), row, to, 95, column); });
  ctx.throws(beyond, {"get", "layout of 32 bytes, over bytes 0 to 56"},
             [&] { win->get(some.data(), row, to, 95, column); });
  ctx.throws(beyond, {"get", "layout of 32 bytes, over bytes 0 to 56"},
             [&] { (void)win->rget(some.data(), row, to, 95, column); });
  ctx.throws(beyond, {"accumulate", "layout of 32 bytes, over bytes 0 to 56"},
             [&] { win->accumulate(some.data(), row, to, 95, column, rma::sum); });
  ctx.throws(beyond, {"accumulate", "layout of 32 bytes, over bytes 0 to 56"},
             [&] { (void)win->raccumulate(some.data(), row, to, 95, column, rma::sum); });
  ctx.throws(status::bad_size, {"put", "layout of 32 bytes", "the other side has another size"},
             [&] { win->put(some.data(), rma::Layout::contiguous<std::uint64_t>(3), to, 0, row); });
  ctx.throws(beyond, {"wait_until", " 8 bytes at displacement 100", named_rank(ctx.rank()) + " has 100 elements"},
             [&] { (void)win->wait_until(part_size, [](std::uint64_t) { return true; }); });
  win->fence(rma::no_succeed);
  const std::string in_bytes = named_rank(to) + " has 800 bytes";
  ctx.throws(beyond, {"lock_range to " + named_rank(to), " 32 bytes from byte 784 on", in_bytes},
             [&] { win->lock_range(rma::shared, to, 784, 32); });
  ctx.throws(status::not_locked, {"unlock_range to " + named_rank(to), " 32 bytes from byte 16 on", "none"},
             [&] { win->unlock_range(to, 16, 32); });
  win.free();
}

// Goal: where an element is one byte, or displacements count something else than elements, sizes are told in bytes.
void units_of_bytes(context& ctx) {
  test_window<std::byte> raw(ctx, part_size);
  test_window<std::uint64_t> by_byte(ctx, part_size, {.displacement_unit = 1});
  const int to = ctx.right();
  std::array<std::byte, 32> bytes{};
  std::array<std::uint64_t, 4> four{};
  raw->fence();
  by_byte->fence();
  ctx.throws(beyond, {"put", " 32 bytes at displacement 80 (unit 1 byte); " + named_rank(to) + " has 100 bytes"},
             [&] { raw->put(std::span<const std::byte>(bytes), to, 80); });
  ctx.throws(beyond, {"get", " 4 elements at displacement 790 (unit 1 byte); " + named_rank(to) + " has 800 bytes"},
             [&] { by_byte->get(std::span(four), to, 790); });
  raw->fence(rma::no_succeed);
  by_byte->fence(rma::no_succeed);
  raw.free();
  by_byte.free();
}

// Goal: a range that is not held is told beside those that are; one whose epoch unlock() has ended is given back.
// Break: flush in unlock_range whether or not the target is still locked.
void ranges_not_held(context& ctx) {
  test_window<std::uint64_t> win(ctx, part_size);
  const int to = ctx.right();
  if (ctx.rank() == 0) {
    win->lock_range(rma::exclusive, to, 64, 16);
    ctx.throws(status::not_locked, {"unlock_range", " 8 bytes from byte 64 on", "16 bytes from byte 64 on"},
               [&] { win->unlock_range(to, 64, 8); });
    ctx.throws(status::wrong_epoch,
               {"lock_range", "the range of 16 bytes from byte 64 on", "is locked; call unlock_range()"},
               [&] { win->lock_range(rma::shared, to, 72, 8); });
    win->unlock_range(to, 64, 16);
    ctx.throws(status::not_locked, {"unlock_range", "none"}, [&] { win->unlock_range(to, 64, 16); });
    ctx.throws(status::not_locked, {"unlock to", "not locked"}, [&] { win->unlock(to); });
    win->lock_range(rma::exclusive, to, 64, 16);
    win->unlock(to);
    ctx.throws(status::not_locked, {"unlock_range", "unlock(" + std::to_string(to) + ")", "none"},
               [&] { win->unlock_range(to, 64, 16); });
    win->lock_range(rma::exclusive, to, 0, 800);  // nothing is held any more
    win->unlock_range(to, 0, 800);
  }
  ctx.world().barrier();
  win.free();
}

// Goal: a call is told by its own name, and a rank in a list by its number. Break: raise put_signal as put, or pass -1.
void names_and_numbers(context& ctx) {
  test_window<std::uint64_t> win(ctx, part_size, {.signals = 3});
  const int to = ctx.right();
  const int n = ctx.size();
  const std::array<std::uint64_t, 4> four{};
  std::array<std::uint64_t, 4> into{};
  const auto no_rank = [](context& c, std::string_view call, int number, const std::function<void()>& made) {
    c.throws(status::bad_rank,
             {std::string(call) + " (window", "rank " + std::to_string(number) + " is not in the team"}, made);
    try {
      made();
    } catch (const rma::Error& e) {
      c.equal(e.rank(), number, "rank of the error");
    }
  };
  for (const int bad : {n, -7}) {
    const std::array<int, 2> list{0, bad};
    no_rank(ctx, "post", bad, [&] { win->post(list); });
    no_rank(ctx, "start", bad, [&] { win->start(list); });
    no_rank(ctx, "neighbors", bad, [&] { win->neighbors(list, {}); });
    no_rank(ctx, "neighbors", bad, [&] { win->neighbors({}, list); });
  }
  const std::array<int, 2> twice{to, to};
  const std::string there = named_rank(to) + " is in the list twice";
  ctx.throws(status::bad_argument, {"post (window", there}, [&] { win->post(twice); });
  ctx.throws(status::bad_argument, {"start (window", there}, [&] { win->start(twice); });
  ctx.throws(status::bad_argument, {"neighbors (window", there}, [&] { win->neighbors(twice, {}); });
  ctx.throws(status::bad_argument, {"fence_neighbors (window", "needs neighbors()"}, [&] { win->fence_neighbors(); });
  win->neighbors({}, {});
  ctx.throws(status::bad_argument, {"neighbors (window", "once"}, [&] { win->neighbors(twice, {}); });
  const std::string target = "to " + named_rank(to);
  ctx.throws(status::wrong_epoch, {"put_signal " + target, "no epoch is open"},
             [&] { win->put_signal(four, to, win.at(to, 0), 0); });
  win->fence();
  ctx.throws(status::bad_argument, {"put_signal " + target, "signal 3 is none", "has 3"},
             [&] { win->put_signal(four, to, win.at(to, 0), 3); });
  ctx.throws(status::bad_rank, {"put_signal", named_rank(n)}, [&] { win->put_signal(four, n, 0, 0); });
  ctx.throws(status::bad_argument, {"get_signal " + target, "signal 4 is none"},
             [&] { win->get_signal(into, to, win.at(to, 0), 4); });
  ctx.throws(beyond, {"accumulate_signal " + target},
             [&] { win->accumulate_signal(four, to, win.at(to, part_size + 1), rma::sum, 1); });
  win->fence(rma::no_succeed);
  win.free();
  auto mute = rma::Window<std::uint64_t>::allocate(ctx.world(), 1, {.signals = 0});
  mute.fence();
  ctx.throws(status::bad_argument, {"put_signal", "signal 0 is none", "has 0"}, [&] { mute.put_signal({}, to, 0, 0); });
  mute.fence(rma::no_succeed);
  mute.free();
}

// Goal: where an epoch is open, but not towards the target, the message does not say that it is.
// Break: tell the kind of the epoch that is open as if it were the target's.
void epochs_of_others(context& ctx) {
  test_window<std::uint64_t> win(ctx, part_size);
  const int other = ctx.right();
  if (ctx.size() > 1) {
    const auto hold = win->lock(rma::shared, other);
    ctx.throws(status::wrong_epoch,
               {"put to " + named_rank(ctx.rank()), "no epoch is open to " + named_rank(ctx.rank())},
               [&] { win->put(std::uint64_t{1}, ctx.rank(), win.at(ctx.rank(), 0)); });
  }
  ctx.world().barrier();
  win.free();
}

constexpr kind_set counted_kinds = each_kind & ~only(window_kind::dynamic);

constexpr test_case message_table[] = {
    {"message.units", units, counted_kinds},
    {"message.units_of_bytes", units_of_bytes, counted_kinds},
    {"message.ranges_not_held", ranges_not_held, counted_kinds},
    {"message.names_and_numbers", names_and_numbers, each_kind},
    {"message.epochs_of_others", epochs_of_others, each_kind},
};

}  // namespace

std::span<const test_case> message_cases() noexcept { return message_table; }

}  // namespace conformance
