// SPDX-License-Identifier: Apache-2.0
// Notified operations with layouts on both sides: one signal, when all that the layouts select is there.
#include <algorithm>
#include <cstdint>
#include <string>

#include "cases.hpp"
#include "layout_shapes.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using octet = std::uint8_t;
constexpr std::size_t octets_max = std::size_t{1} << 19;
constexpr octet blank = 0x5a;

constexpr unsigned data_signal = 3;
constexpr unsigned room_signal = 7;

/// Both sides of an operation: few rows, more than go into one message or one call of a fabric, large ones, any.
std::vector<std::pair<shape, shape>> all_sides(context& ctx) {
  const shape word = row(8, 1);
  const std::size_t many = std::min<std::size_t>(12000, ctx.rounds(12000, 1200));  // as many as a part holds
  std::vector<std::pair<shape, shape>> sides = {
      {row(4, 1), row(4, 1)},
      {row(4, 30), strided(15, 2, 5, row(4, 1))},
      {strided(4, 3, -5, row(4, 1)), listed({1, 4, 2, 5}, {9, 0, 5, 20}, row(4, 1))},
      {strided(200, 1, 3, word), row(8, 200)},
      {row(8, many), strided(many, 1, 3, word)},
      {strided(700, 5, 9, word), strided(350, 10, 11, word)},
      {strided(3, 8192, 9000, word), strided(2, 12288, 12300, word)},
  };
  for (std::size_t drawn = ctx.rounds(40, 4); drawn != 0; --drawn) {
    random_shapes random(ctx.common_random(), std::size_t{1} << ctx.common_random()() % 4);
    const shape a = random.make(1 + static_cast<int>(ctx.common_random()() % 2));
    const shape b = random.make(2);
    auto both = balanced(a, b);
    if (std::max(room_for(both.first), room_for(both.second)) <= octets_max) sides.push_back(std::move(both));
  }
  return sides;
}

/// The wanted content of a buffer of blanks, which holds `to` with its margins, when all of rank `from`'s data in shape
/// `of` are in it.
std::vector<octet> filled(const shape& to, const shape& of, int from, std::uint64_t salt) {
  std::vector<octet> wanted(room_for(to), blank);
  const std::size_t base_to = base_of(to);
  const std::size_t base_from = base_of(of);
  for (std::size_t k = 0; k < to.bytes.size(); ++k) {
    wanted[place(base_to, to.bytes[k])] = tagged<octet>(from, place(base_from, of.bytes[k]), salt);
  }
  return wanted;
}

// Goal: after wait_signal plain loads see every byte of a put with layouts and no other one changed; the signal comes
// once. Method: a ring with a signal back, "there is room"; the target needs no epoch. Break: raise the signal with
// each message (message_maker::make), before the copy (issue_any), or not at all where rows are copied at once
// (run_plain_layouts).
void put_shapes_ring(context& ctx) {
  test_window<octet> win(ctx, octets_max);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  std::uint64_t round = 0;
  for (const auto& [here, there] : all_sides(ctx)) {
    ++round;
    const auto part = win.local().first(room_for(there));
    std::ranges::fill(part, blank);
    win->put_signal({}, ctx.left(), win.at(ctx.left(), 0), room_signal);
    std::vector<octet> from(room_for(here));
    fill_tagged(std::span(from), ctx.rank(), round);
    win->wait_signal(room_signal, 1, ctx.right());
    win->put_signal(from.data() + base_of(here), here.layout, ctx.right(), win.at(ctx.right(), base_of(there)),
                    there.layout, data_signal);
    win->wait_signal(data_signal, 1, ctx.left());
    const auto wanted = filled(there, here, ctx.left(), round);
    const auto wrong = std::ranges::mismatch(part, wanted).in1 - part.begin();
    if (static_cast<std::size_t>(wrong) != part.size())
      ctx.fail("put " + std::to_string(round) + ": byte " + std::to_string(wrong));
    win->flush_local(ctx.right());
  }
  ctx.world().barrier();
  ctx.equal(win->signal_value(data_signal), std::uint64_t{0}, "signals that came twice");
  win->unlock_all();
  win.free();
}

// Goal: a get with layouts brings the right bytes, and its signal tells the target once, when all of it has been read:
// what the target writes then is not read any more. Method: as put_ring, the other way; the target overwrites its part
// at once. Break: raise the signal with each message, or, in run_fabric, without waiting for the reads.
void get_shapes_ring(context& ctx) {
  test_window<octet> win(ctx, octets_max);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  std::uint64_t round = 0;
  for (const auto& [here, there] : all_sides(ctx)) {
    ++round;
    const auto part = win.local().first(room_for(there));
    fill_tagged(part, ctx.rank(), round);
    win->put_signal({}, ctx.left(), win.at(ctx.left(), 0), data_signal);
    std::vector<octet> to(room_for(here), blank);
    win->wait_signal(data_signal, 1, ctx.right());
    win->get_signal(to.data() + base_of(here), here.layout, ctx.right(), win.at(ctx.right(), base_of(there)),
                    there.layout, room_signal);
    win->wait_signal(room_signal, 1, ctx.left());
    std::ranges::fill(part, blank);
    win->flush(ctx.right());
    const auto wanted = filled(here, there, ctx.right(), round);
    const auto wrong = std::ranges::mismatch(to, wanted).in1 - to.begin();
    if (static_cast<std::size_t>(wrong) != to.size())
      ctx.fail("get " + std::to_string(round) + ": byte " + std::to_string(wrong));
  }
  ctx.world().barrier();
  ctx.equal(win->signal_value(room_signal), std::uint64_t{0}, "signals that came twice");
  win->unlock_all();
  win.free();
}

// Goal: when all ranks' signals are there, so are all their updates, of those elements alone.
// Method: everybody adds to rank 0, to itself, too; rows too many for a message. Break: raise the signal with each
// message (RMA_ACCUMULATE=handler shows it).
void accumulate_shapes_from_all(context& ctx) {
  constexpr std::size_t count = 1500;
  test_window<std::uint64_t> win(ctx, 2 * count);
  const std::vector<std::uint64_t> ones(3 * count, 1);
  const auto every_third = rma::Layout::vector<std::uint64_t>(count, 1, 3);
  const auto every_other = rma::Layout::vector<std::uint64_t>(count, 1, 2);
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(40);
  for (std::size_t round = 1; round <= rounds; ++round) {
    win->accumulate_signal(ones.data(), every_third, 0, win.at(0, 1), every_other, rma::sum, data_signal);
    win->flush_local(0);
    if (ctx.rank() == 0) {
      win->wait_signal(data_signal, static_cast<std::uint64_t>(ctx.size()));
      const std::uint64_t wanted = round * static_cast<std::uint64_t>(ctx.size());
      for (std::size_t i = 0; i < 2 * count; ++i) {
        if (win.local()[i] != (i % 2 == 0 ? 0 : wanted)) return ctx.fail("element " + std::to_string(i));
      }
    }
    ctx.world().barrier();
  }
  ctx.equal(win->signal_value(data_signal), std::uint64_t{0}, "signals that came twice");
  win->unlock_all();
  win.free();
}

// Goal: the untyped window takes bytes, run-time types and any layout, with a signal.
void untyped_with_signals(context& ctx) {
  auto win = rma::Window<std::byte>::allocate(ctx.world(), 64);
  const std::int16_t values[] = {1, -2, 3, -4};
  const auto here = rma::Layout::contiguous<std::int16_t>(4);
  const auto there = rma::Layout::vector<std::int16_t>(4, 1, 2);
  ctx.expect(win.lock_all_nothrow(), rma::status::done, "lock_all");
  win.put_signal(reinterpret_cast<const std::byte*>(values), here, ctx.right(), 10, there, 0);
  win.wait_signal(0, 1, ctx.left());
  win.put_signal({}, ctx.left(), 0, 1);
  win.wait_signal(1, 1, ctx.right());
  ctx.check(rma::ok(win.accumulate_signal_as(rma::element::i16, rma::prod, values, here, ctx.right(), 10, there, 2)),
            "accumulate_signal_as");
  win.wait_signal(2, 1, ctx.left());
  const auto* const part = reinterpret_cast<const std::int16_t*>(win.data() + 10);
  for (int i = 0; i < 4; ++i) ctx.equal(part[2 * i], static_cast<std::int16_t>((i + 1) * (i + 1)), "a square");
  win.unlock_all();
  win.free();
}

// Goal: with layouts, too, notified operations work in fence and start epochs, behind what waits for the fence there,
// and layouts of no bytes are the signal alone.
void shapes_in_other_epochs(context& ctx) {
  constexpr std::size_t count = 300;
  test_window<std::uint64_t> win(ctx, 2 * count);
  std::vector<std::uint64_t> from(count);
  fill_tagged(std::span(from), ctx.rank());
  const auto here = rma::Layout::contiguous<std::uint64_t>(count);
  const auto there = rma::Layout::vector<std::uint64_t>(count, 1, 2);
  const auto put = [&](unsigned signal) {
    win->put_signal(from.data(), here, ctx.right(), win.at(ctx.right(), 0), there, signal);
    win->wait_signal(signal, 1, ctx.left());
    for (std::size_t i = 0; i < count; ++i) {
      if (win.local()[2 * i] != tagged<std::uint64_t>(ctx.left(), i)) return ctx.fail("row " + std::to_string(i));
    }
  };
  win->fence();
  win->put(std::uint64_t{1}, ctx.right(), win.at(ctx.right(), 1));
  put(0);
  win->fence(rma::no_succeed);
  std::ranges::fill(win.local(), 0);
  const int left[] = {ctx.left()};
  const int right[] = {ctx.right()};
  win->post(left);
  win->start(right);
  put(1);
  win->put_signal(from.data(), rma::Layout(), ctx.right(), win.at(ctx.right(), 0), rma::Layout(), 2);
  win->wait_signal(2, 1, ctx.left());
  win->complete();
  win->wait();
  win.free();
}

// Goal: what does not fit is refused by name, and raises nothing: unequal layouts, a layout that leaves the part, one
// that cuts elements, a signal that the window does not have.
void refused_shapes(context& ctx) {
  auto win = rma::Window<std::uint32_t>::allocate(ctx.world(), 100, {.name = "bell"});
  std::vector<std::uint32_t> data(100);
  const auto ten = rma::Layout::contiguous<std::uint32_t>(10);
  const auto nine = rma::Layout::contiguous<std::uint32_t>(9);
  const auto halves = rma::Layout::vector<std::uint16_t>(20, 1, 2);
  const int to = ctx.right();
  win.fence();
  ctx.throws(rma::status::bad_size, {"put", "bell"}, [&] { win.put_signal(data.data(), ten, to, 0, nine, 0); });
  ctx.throws(rma::status::bad_size, {"get", "bell"}, [&] { win.get_signal(data.data(), nine, to, 0, ten, 0); });
  ctx.throws(rma::status::out_of_window, {"put", "bell"}, [&] { win.put_signal(data.data(), ten, to, 91, ten, 0); });
  ctx.throws(rma::status::bad_type, {"accumulate", "bell"},
             [&] { win.accumulate_signal(data.data(), ten, to, 0, halves, rma::sum, 0); });
  ctx.throws(rma::status::bad_argument, {"put", "bell"}, [&] { win.put_signal(data.data(), ten, to, 0, ten, 16); });
  ctx.expect(win.try_get_signal(data.data(), ten, to, 0, ten, 0x80000000U), rma::status::bad_argument, "get_signal");
  ctx.throws(rma::status::bad_argument, {"accumulate", "bell"},
             [&] { win.accumulate_signal(data.data(), ten, to, 0, ten, rma::sum, 16); });
  win.fence(rma::no_succeed);
  ctx.equal(win.signal_value(0), std::uint64_t{0}, "signals of what was refused");
  ctx.check(std::ranges::all_of(win.local(), [](auto v) { return v == 0; }), "a refused operation left something");
  win.free();
}

constexpr test_case signal_layout_table[] = {
    {"signal_layout.put_ring", put_shapes_ring, each_kind},
    {"signal_layout.get_ring", get_shapes_ring, each_kind},
    {"signal_layout.accumulate_from_all", accumulate_shapes_from_all, each_kind},
    {"signal_layout.untyped_windows", untyped_with_signals},
    {"signal_layout.in_other_epochs", shapes_in_other_epochs, each_kind},
    {"signal_layout.refused", refused_shapes},
};

}  // namespace

std::span<const test_case> signal_layout_cases() noexcept { return signal_layout_table; }

}  // namespace conformance
