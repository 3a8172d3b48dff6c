// SPDX-License-Identifier: Apache-2.0
// put, get and accumulate with layouts on both sides, against an oracle that lists every byte.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "cases.hpp"
#include "layout_shapes.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using byte_type = std::uint8_t;
constexpr std::size_t part_bytes = std::size_t{1} << 18;
constexpr byte_type untouched = 0x5a;

/// Puts with `here` and `there` into the right neighbor and looks at every byte of this rank's part.
void check_put(context& ctx, test_window<byte_type>& win, const shape& here, const shape& there,
               const std::string& name) {
  const std::size_t base_here = base_of(here);
  const std::size_t base_there = base_of(there);
  std::vector<byte_type> from(room_for(here));
  fill_tagged(std::span(from), ctx.rank());
  const std::size_t used = room_for(there);
  const auto part = win.local().first(used);
  std::ranges::fill(part, untouched);
  win->fence();
  win->put(from.data() + base_here, here.layout, ctx.right(), win.at(ctx.right(), base_there), there.layout);
  win->fence();
  std::vector<byte_type> wanted(used, untouched);
  for (std::size_t k = 0; k < there.bytes.size(); ++k) {
    wanted[place(base_there, there.bytes[k])] = tagged<byte_type>(ctx.left(), place(base_here, here.bytes[k]));
  }
  const auto wrong = std::ranges::mismatch(part, wanted).in1 - part.begin();
  if (wrong != static_cast<std::ptrdiff_t>(used)) ctx.fail("put " + name + ": byte " + std::to_string(wrong));
}

/// Gets with `there` from the right neighbor into `here` and looks at every byte of the buffer.
void check_get(context& ctx, test_window<byte_type>& win, const shape& here, const shape& there,
               const std::string& name) {
  const std::size_t base_here = base_of(here);
  const std::size_t base_there = base_of(there);
  const std::size_t used = room_for(there);
  fill_tagged(win.local().first(used), ctx.rank());
  std::vector<byte_type> to(room_for(here), untouched);
  std::vector<byte_type> wanted = to;
  for (std::size_t k = 0; k < here.bytes.size(); ++k) {
    wanted[place(base_here, here.bytes[k])] = tagged<byte_type>(ctx.right(), place(base_there, there.bytes[k]));
  }
  win->fence();
  win->get(to.data() + base_here, here.layout, ctx.right(), win.at(ctx.right(), base_there), there.layout);
  win->fence();
  const auto wrong = std::ranges::mismatch(to, wanted).in1 - to.begin();
  if (wrong != static_cast<std::ptrdiff_t>(to.size())) ctx.fail("get " + name + ": byte " + std::to_string(wrong));
}

struct named_shape {
  const char* name;
  shape what;
};

std::vector<named_shape> all_kinds() {
  const shape word = row(4, 1);
  const shape pair = row(8, 2);
  return {
      {"contiguous", row(4, 10)},
      {"vector", strided(5, 2, 7, word)},
      {"vector backwards", strided(4, 3, -5, word)},
      {"indexed", listed({1, 4, 2}, {9, 0, 5}, word)},
      {"indexed with equal blocks", listed(2, {12, 2, -3, 8}, word)},
      {"subarray of 2", box({6, 9}, {3, 4}, {2, 1}, word)},
      {"subarray of 3", box({4, 5, 6}, {2, 2, 3}, {1, 3, 0}, row(1, 3))},
      {"nested vectors", strided(3, 2, 3, strided(2, 1, 3, pair))},
      {"resized", repeated(5, resized(strided(2, 1, 2, word), -4, 40))},
      {"shifted", moved(listed(1, {3, 1}, pair), -16)},
      {"structure", structure({{strided(3, 1, 4, word), 8}, {pair, 64}, {strided(2, 1, 3, word), 96}})},
      {"single byte", row(1, 1)},
  };
}

// Goal: every kind of layout works on either side with every other.
// Method: all pairs; both sides repeated until they have equally many bytes. Break: swap the two layouts of a get.
void every_pair_of_kinds(context& ctx) {
  test_window<byte_type> win(ctx, part_bytes);
  const auto kinds = all_kinds();
  const bool all = ctx.processor_for_each() && !thread_sanitizer;
  for (std::size_t a = 0; a < kinds.size(); ++a) {
    for (std::size_t b = 0; b < kinds.size(); ++b) {
      if (!all && (a + 2 * b) % 3 != 0) continue;
      if (!ctx.sampled()) continue;
      const auto [here, there] = balanced(kinds[a].what, kinds[b].what);
      const std::string name = std::string("from ") + kinds[a].name + " to " + kinds[b].name;
      check_put(ctx, win, here, there, name);
      check_get(ctx, win, here, there, name);
    }
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: for_each_block tells the blocks of a layout, as its documentation has it: their bytes in order are the data,
// and there are blocks() of them. Break: let walk begin behind the first block.
void blocks_are_told(context& ctx) {
  for (const auto& [name, what] : all_kinds()) {
    std::vector<std::ptrdiff_t> told;
    std::size_t blocks = 0;
    what.layout.for_each_block([&](std::ptrdiff_t offset, std::size_t bytes) {
      ++blocks;
      for (std::size_t i = 0; i < bytes; ++i) told.push_back(offset + static_cast<std::ptrdiff_t>(i));
    });
    ctx.check(told == what.bytes, std::string("the blocks of ") + name);
    ctx.equal(blocks, what.layout.blocks(), std::string("the number of blocks of ") + name);
  }
  struct enough {};
  std::size_t seen = 0;
  try {
    rma::Layout::vector<int>(5, 1, 2).for_each_block([&](std::ptrdiff_t, std::size_t) {
      if (++seen == 2) throw enough();
    });
    ctx.fail("an exception did not leave the walk");
  } catch (const enough&) {
    ctx.equal(seen, std::size_t{2}, "blocks before the exception");
  }
}

// Goal: random nested layouts move the right bytes, and say their own size and bounds rightly.
// Method: the same random shapes on all ranks, from the case's seed.
void random_nests(context& ctx) {
  test_window<byte_type> win(ctx, part_bytes);
  constexpr std::size_t granules[] = {1, 2, 4, 8};
  const std::size_t rounds = ctx.rounds(150, 10);
  for (std::size_t i = 0; i < rounds; ++i) {
    random_shapes random(ctx.common_random(), granules[ctx.common_random()() % 4]);
    const shape a = random.make(1 + static_cast<int>(ctx.common_random()() % 4));
    const shape b = random.make(1 + static_cast<int>(ctx.common_random()() % 4));
    const auto [here, there] = balanced(a, b);
    if (room_for(here) > part_bytes || room_for(there) > part_bytes) continue;
    const std::string name = "random layout " + std::to_string(i);
    for (const shape* s : {&here, &there}) {
      ctx.equal(s->layout.bytes(), s->bytes.size(), name + ": bytes()");
      ctx.equal(s->layout.extent(), s->extent, name + ": extent()");
      ctx.equal(s->layout.lower(), s->first(), name + ": lower()");
      ctx.equal(s->layout.upper(), s->end(), name + ": upper()");
    }
    check_put(ctx, win, here, there, name);
    check_get(ctx, win, here, there, name);
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: layouts of many blocks and of large blocks work: more than any gather list, buffer or pipeline stage.
void many_and_large_blocks(context& ctx) {
  test_window<byte_type> win(ctx, std::size_t{1} << 20);
  const shape flat = row(8, 1);
  const std::size_t many = std::min<std::size_t>(20000, ctx.rounds(20000, 20000));  // as many as the window holds
  const std::vector<std::pair<std::string, shape>> cases = {
      {std::to_string(many) + " blocks of 8", strided(many, 1, 3, flat)},
      {std::to_string(many / 20) + " blocks of 256", strided(many / 20, 32, 40, flat)},
      {"3 blocks of 64 KiB", strided(3, 8192, 9000, flat)},
      {"64 blocks of 8 ints", strided(64, 8, 16, row(4, 1))},
  };
  for (const auto& [name, s] : cases) {
    const shape packed = row(8, s.bytes.size() / 8);
    check_put(ctx, win, packed, s, name + " at the target");
    check_put(ctx, win, s, packed, name + " at the origin");
    check_get(ctx, win, packed, s, name + " at the target");
    check_get(ctx, win, s, packed, name + " at the origin");
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: a rank may put and get with layouts to itself.
void to_self(context& ctx) {
  auto win = rma::Window<std::int32_t>::allocate(ctx.world(), 100);
  std::iota(win.local().begin(), win.local().end(), 0);
  std::vector<std::int32_t> to(20, -1);
  const auto column = rma::Layout::vector<std::int32_t>(10, 1, 10);
  win.fence();
  win.get(to.data(), rma::Layout::contiguous<std::int32_t>(10), ctx.rank(), 3, column);
  win.fence();
  for (int i = 0; i < 10; ++i) ctx.equal(to[static_cast<std::size_t>(i)], 10 * i + 3, "column of a matrix");
  win.put(to.data(), rma::Layout::contiguous<std::int32_t>(10), ctx.rank(), 7, column);
  win.fence(rma::no_succeed);
  for (std::size_t i = 0; i < 10; ++i) ctx.equal(win[10 * i + 7], static_cast<std::int32_t>(10 * i + 3), "column put");
  win.free();
}

// Goal: accumulate and get_accumulate follow layouts on all three sides, element by element.
// Method: random layouts of whole words; all ranks add at once, so the totals are known; then one fetches with no_op.
void random_accumulates(context& ctx) {
  constexpr std::size_t words = part_bytes / 4;
  test_window<std::uint32_t> win(ctx, words);
  const std::size_t rounds = ctx.rounds(60, 5);
  for (std::size_t i = 0; i < rounds; ++i) {
    random_shapes random(ctx.common_random(), 4);
    const auto [here, there] = balanced(random.make(2), random.make(3));
    if (room_for(here) > part_bytes || room_for(there) > part_bytes) continue;
    const std::size_t base_here = base_of(here, 0) / 4;
    const std::size_t base_there = base_of(there, 0) / 4;
    std::vector<std::uint32_t> from(base_here + static_cast<std::size_t>(std::max<std::ptrdiff_t>(4, here.end())) / 4);
    fill_tagged(std::span(from), 0, i);
    std::ranges::fill(win.local(), 1U);
    win->fence();
    const auto ranks = static_cast<std::uint32_t>(ctx.size());
    for (int to = 0; to < ctx.size(); ++to) {
      win->accumulate(from.data() + base_here, here.layout, to, win.at(to, base_there), there.layout, rma::sum);
    }
    win->fence();
    std::vector<std::uint32_t> wanted(words, 1U);
    std::vector<std::uint32_t> back(from.size(), 0);
    std::vector<std::uint32_t> wanted_back(from.size(), 0);
    for (std::size_t k = 0; k < there.bytes.size(); k += 4) {
      const std::size_t source = place(base_here, here.bytes[k] / 4);
      const std::size_t target = place(base_there, there.bytes[k] / 4);
      wanted[target] += ranks * from[source];
      wanted_back[source] = wanted[target];
    }
    if (!std::ranges::equal(win.local(), wanted)) ctx.fail("sums with random layouts, round " + std::to_string(i));
    win->fence();
    ctx.check(rma::ok(win->get_accumulate_as(rma::element::u32, rma::no_op, from.data() + base_here, here.layout,
                                             back.data() + base_here, here.layout, ctx.right(),
                                             win.at(ctx.right(), base_there), there.layout)),
              "get_accumulate_as with layouts");
    win->fence();
    if (back != wanted_back) ctx.fail("fetched with random layouts, round " + std::to_string(i));
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: the untyped window takes bytes, run-time types and any layout.
void untyped_windows(context& ctx) {
  auto win = rma::Window<std::byte>::allocate(ctx.world(), 256);
  win.fence();
  const std::int16_t values[] = {1, 2, 3, 4};
  const auto here = rma::Layout::contiguous<std::int16_t>(4);
  const auto there = rma::Layout::vector<std::int16_t>(4, 1, 2);
  const int to = ctx.right();
  win.put(reinterpret_cast<const std::byte*>(values), here, to, 10, there);
  win.fence();
  ctx.check(rma::ok(win.accumulate_as(rma::element::i16, rma::prod, values, here, to, 10, there)), "accumulate_as");
  win.fence();
  std::int16_t squares[4] = {};
  win.get(reinterpret_cast<std::byte*>(squares), here, to, 10, there);
  win.fence();
  for (int i = 0; i < 4; ++i)
    ctx.equal(squares[i], static_cast<std::int16_t>((i + 1) * (i + 1)), "square by accumulate_as");
  win.fence(rma::no_succeed);
  win.free();
}

// Goal: layouts that do not fit are refused by name: unequal sizes, ranges that leave the window on either end.
void refused(context& ctx) {
  auto win = rma::Window<std::uint32_t>::allocate(ctx.world(), 100, {.name = "grid"});
  std::vector<std::uint32_t> data(400);
  const auto ten = rma::Layout::contiguous<std::uint32_t>(10);
  const auto nine = rma::Layout::contiguous<std::uint32_t>(9);
  const auto backwards = rma::Layout::vector<std::uint32_t>(10, 1, -2);
  const auto wide = rma::Layout::vector<std::uint32_t>(10, 1, 12);
  const int to = ctx.right();
  win.fence();
  ctx.expect(win.try_put(data.data(), ten, to, 0, nine), rma::status::bad_size, "put of unequal layouts");
  ctx.expect(win.try_get(data.data(), nine, to, 0, ten), rma::status::bad_size, "get of unequal layouts");
  ctx.expect(win.try_put(data.data(), ten, to, 17, backwards), rma::status::out_of_window, "put before the start");
  ctx.check(rma::ok(win.try_put(data.data(), ten, to, 18, backwards)), "put down to the start");
  ctx.expect(win.try_get(data.data(), ten, to, 0, wide), rma::status::out_of_window, "get behind the end");
  ctx.throws(rma::status::out_of_window, {"put", "grid"}, [&] { win.put(data.data(), ten, to, 95, ten); });
  ctx.throws(rma::status::bad_size, {"get", "grid"}, [&] { win.get(data.data(), ten, to, 0, nine); });
  const auto empty = rma::Layout();
  ctx.check(rma::ok(win.try_put(data.data(), empty, to, 0, empty)), "put of nothing");
  win.fence(rma::no_succeed);
  ctx.throws(rma::status::bad_size, {}, [] { (void)rma::Layout::contiguous<double>(static_cast<std::size_t>(-1)); });
  ctx.throws(rma::status::bad_size, {}, [] { (void)rma::Layout::vector<int>(4, 1, PTRDIFF_MAX / 2); });
  const std::size_t sizes[] = {4};
  const std::size_t parts[] = {3};
  const std::size_t starts[] = {2};
  ctx.throws(rma::status::bad_size, {}, [&] { (void)rma::Layout::subarray<int>(sizes, parts, starts); });
  win.free();
}

// Goal: layouts of an accumulate that cut elements, or put them where no atomic may be, are refused, and nothing is
// changed; elements that lie right by the sum of displacement and layout are taken. Method: by every target, oneself
// among them. Break: leave check_layouts (src/xfer/issue.cpp) out.
void cut_elements(context& ctx) {
  auto win = rma::Window<float>::allocate(ctx.world(), 64);
  const std::vector<float> from(8, 1);
  const auto one = rma::Layout::contiguous<double>(1);
  const std::ptrdiff_t places[] = {3, 9, 13};
  const auto spread = rma::Layout::indexed(1, places, rma::Layout::resized(one, 0, 4));
  const auto three = rma::Layout::contiguous<double>(3);
  const auto add = [&](const rma::Layout& here, int to, std::size_t at, const rma::Layout& there) {
    return win.accumulate_as(rma::element::f64, rma::sum, from.data(), here, to, at, there);
  };
  win.fence();
  for (int to = 0; to < ctx.size(); ++to) {
    ctx.expect(add(one, to, 0, rma::Layout::vector<float>(2, 1, 2)), rma::status::bad_type, "target cut in halves");
    ctx.expect(add(rma::Layout::vector<float>(2, 1, 2), to, 0, one), rma::status::bad_type, "origin cut in halves");
    ctx.expect(add(one, to, 0, rma::Layout::shifted(one, 4)), rma::status::misaligned, "shifted by half an element");
    ctx.expect(add(three, to, 0, spread), rma::status::misaligned, "spread from an odd place on");
    ctx.expect(add(three, to, 0, rma::Layout::vector(3, 1, 1, rma::Layout::resized(one, 0, 12))),
               rma::status::misaligned, "one and a half apart");
  }
  win.fence();
  ctx.check(std::ranges::all_of(win.local(), [](float v) { return v == 0; }), "a refused accumulate left something");
  win.fence();
  ctx.check(rma::ok(add(three, ctx.right(), 1, spread)), "spread from an odd place on, from an odd displacement");
  win.fence(rma::no_succeed);
  for (std::size_t at = 0; at < 64; at += 2) {
    const bool there = at == 4 || at == 10 || at == 14;
    ctx.check((win.local()[at + 1] != 0) == there, "the element at " + std::to_string(at));
  }
  win.free();
}

constexpr test_case layout_table[] = {
    {"layout.every_pair_of_kinds", every_pair_of_kinds, each_kind},
    {"layout.blocks_are_told", blocks_are_told},
    {"layout.random_nests", random_nests, each_kind},
    {"layout.many_and_large_blocks", many_and_large_blocks, each_kind},
    {"layout.to_self", to_self},
    {"layout.random_accumulates", random_accumulates, each_kind},
    {"layout.untyped_windows", untyped_windows},
    {"layout.refused", refused},
    {"layout.cut_elements", cut_elements},
};

}  // namespace

std::span<const test_case> layout_cases() noexcept { return layout_table; }

}  // namespace conformance
