// SPDX-License-Identifier: Apache-2.0
// Dynamic windows: memory attached and detached by its owner alone.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <string>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using dynamic_window = rma::Window<std::uint64_t>;
using words = std::span<const std::uint64_t>;

// Goal: 150 attached regions per rank are all reachable, each by its own displacement.
// Method: regions of different sizes; every rank puts into each region of its right neighbor.
void many_regions(context& ctx) {
  constexpr std::size_t regions = 150;
  auto win = dynamic_window::create_dynamic(ctx.world());
  std::vector<std::vector<std::uint64_t>> memory(regions);
  std::array<std::uint64_t, regions> starts{};
  for (std::size_t i = 0; i < regions; ++i) {
    memory[i].resize(1 + i * 3);
    starts[i] = win.attach(std::span(memory[i]));
  }
  const auto all = ctx.world().allgather(starts);
  const auto& theirs = all[static_cast<std::size_t>(ctx.right())];
  win.fence();
  for (std::size_t i = 0; i < regions; ++i) {
    const std::size_t last = i * 3;
    win.put(tagged<std::uint64_t>(ctx.rank(), i), ctx.right(), theirs[i] + last * sizeof(std::uint64_t));
  }
  win.fence();
  for (std::size_t i = 0; i < regions; ++i) {
    ctx.equal(memory[i].back(), tagged<std::uint64_t>(ctx.left(), i), "last element of an attached region");
  }
  for (std::size_t i = 0; i < regions; ++i) win.detach(std::span(memory[i]));
  win.free();
}

// Goal: an attach for which there is no room changes nothing: it can be made again.
// Method: the rank's segment is full, then it is not. Break: leave take_out in attach (src/api/window.cpp) out.
void attach_without_room(context& ctx) {
  rma::Runtime alone(rma::Config{.environment = false, .settings = {{"RMA_SEGMENT_BYTES", "4M"}}});
  auto win = dynamic_window::create_dynamic(alone.world());
  std::vector<rma::Window<std::byte>> others;
  for (std::size_t bytes = std::size_t{1} << 20; bytes >= 1;) {
    try {
      others.push_back(rma::Window<std::byte>::allocate(alone.world(), bytes));
    } catch (const rma::Error& e) {
      ctx.expect(e.code(), rma::status::out_of_memory, "allocate until the segment is full");
      bytes /= 2;
    }
  }
  std::vector<std::uint64_t> memory(8, 7);
  for (int i = 0; i < 2; ++i) {
    ctx.throws(rma::status::out_of_memory, {"attach"}, [&] { (void)win.attach(std::span(memory)); });
  }
  for (auto& other : others) other.free();
  const std::uint64_t at = win.attach(std::span(memory));
  {
    const auto hold = win.lock(rma::shared, 0);
    ctx.equal(win.get(0, at), std::uint64_t{7}, "attached when there was room");
  }
  win.detach(std::span(memory));
  win.free();
}

// Goal: what is detached cannot be reached any more, its neighbors can; what is attached again can.
void detach_in_the_middle(context& ctx) {
  auto win = dynamic_window::create_dynamic(ctx.world());
  std::vector<std::uint64_t> memory(300, 5);
  const std::span whole(memory);
  std::array<std::uint64_t, 3> starts{};
  for (std::size_t i = 0; i < 3; ++i) starts[i] = win.attach(whole.subspan(i * 100, 100));
  const auto theirs = ctx.world().allgather(starts)[static_cast<std::size_t>(ctx.right())];
  win.detach(whole.subspan(100, 100));
  ctx.world().barrier();
  std::uint64_t value = 0;
  {
    const auto hold = win.lock(rma::shared, ctx.right());
    ctx.expect(win.try_get(value, ctx.right(), theirs[1]), rma::status::out_of_window, "get from detached memory");
    ctx.expect(win.try_put(value, ctx.right(), theirs[1] + 99 * 8), rma::status::out_of_window,
               "put to detached memory");
    ctx.equal(win.get(ctx.right(), theirs[0]), std::uint64_t{5}, "region before the detached one");
    ctx.equal(win.get(ctx.right(), theirs[2] + 99 * 8), std::uint64_t{5}, "region behind the detached one");
  }
  ctx.world().barrier();
  const std::uint64_t again = win.attach(whole.subspan(100, 100));
  const std::uint64_t there = ctx.world().allgather(again)[static_cast<std::size_t>(ctx.right())];
  {
    const auto hold = win.lock(rma::shared, ctx.right());
    ctx.equal(win.get(ctx.right(), there + 50 * 8), std::uint64_t{5}, "region attached again");
  }
  ctx.world().barrier();
  for (std::size_t i = 0; i < 3; ++i) win.detach(whole.subspan(i * 100, 100));
  win.free();
}

// Goal: a range that begins in one region and ends behind it is refused, and nothing is written.
void ranges_across_the_end(context& ctx) {
  auto win = dynamic_window::create_dynamic(ctx.world());
  std::vector<std::uint64_t> memory(100, 1);
  const std::uint64_t there =
      ctx.world().allgather(win.attach(std::span(memory).first(50)))[static_cast<std::size_t>(ctx.right())];
  win.fence();
  const std::vector<std::uint64_t> data(20, 9);
  const std::span<const std::uint64_t> out(data);
  ctx.expect(win.try_put(out, ctx.right(), there + 40 * 8), rma::status::out_of_window, "put across the end");
  ctx.expect(win.try_put(out, ctx.right(), there - 8), rma::status::out_of_window, "put across the start");
  const std::string whose = "rank " + std::to_string(ctx.right()) + " has attached ";
  ctx.throws(rma::status::out_of_window,
             {"put", "of the 160 bytes from ", whose + "400 bytes from ", "of which 80 are behind", "attach()"},
             [&] { win.put(out, ctx.right(), there + 40 * 8); });
  ctx.throws(rma::status::out_of_window, {"get", "of the 8 bytes from ", whose + "nothing there", "attach()"},
             [&] { (void)win.get(ctx.right(), there - 8); });
  const auto column = rma::Layout::vector<std::uint64_t>(20, 1, 3);
  ctx.throws(rma::status::out_of_window, {"put", "of the 464 bytes from ", whose + "400 bytes"},
             [&] { win.put(data.data(), rma::Layout::contiguous<std::uint64_t>(20), ctx.right(), there, column); });
  ctx.check(rma::ok(win.try_put(out, ctx.right(), there + 30 * 8)), "put up to the end");
  win.fence();
  ctx.equal(std::accumulate(memory.begin(), memory.end(), std::uint64_t{0}), std::uint64_t{80 + 20 * 9},
            "sum of the memory");
  win.detach(std::span(memory).first(50));
  win.free();
}

// Goal: one operation may cover ranges that lie one behind the other without a gap, in whatever order they were
// attached; not across a gap, and not any more when one of them is detached. Method: ten ranges of ten elements, of
// which the last stands apart. Break: take only one range in find_range.
void ranges_without_a_gap(context& ctx) {
  auto win = dynamic_window::create_dynamic(ctx.world());
  std::vector<std::uint64_t> memory(120, 0);
  const auto range = [&](std::size_t i) { return std::span(memory).subspan(i == 9 ? 110 : 10 * i, 10); };
  for (const std::size_t i : {4U, 0U, 9U, 1U, 3U, 2U, 8U, 5U, 7U, 6U}) (void)win.attach(range(i));
  const int to = ctx.right();
  const std::uint64_t there =
      ctx.world().allgather(reinterpret_cast<std::uint64_t>(memory.data()))[static_cast<std::size_t>(to)];
  const auto at = [there](std::size_t i) { return there + i * sizeof(std::uint64_t); };
  std::vector<std::uint64_t> data(90), got(90);
  fill_tagged(std::span(data), ctx.rank());
  const words all(data);
  const auto rows = rma::Layout::vector<std::uint64_t>(30, 1, 3);
  const auto here = rma::Layout::contiguous<std::uint64_t>(30);
  {
    const auto hold = win.lock(rma::exclusive, to);
    ctx.check(rma::ok(win.try_put(all, to, at(0))), "put across nine ranges");
    win.flush(to);
    ctx.check(rma::ok(win.try_get(std::span(got).first(60), to, at(15))), "get across seven");
    win.flush(to);
    ctx.equal(first_untagged(words(got).first(60), ctx.rank(), 0, 15), std::size_t{60}, "first wrong element of it");
    ctx.check(rma::ok(win.try_get(got.data(), here, to, at(1), rows)), "get of a layout across them");
    win.flush(to);
    ctx.check(got[0] == data[1] && got[29] == data[88], "elements of the layout");
    ctx.check(rma::ok(win.try_accumulate(words(got).subspan(0, 20), to, at(35), rma::replace)), "accumulate");
    win.flush(to);
    ctx.equal(win.get(to, at(54)), got[19], "last element of the accumulate");
    ctx.check(rma::ok(win.try_put(all.subspan(35, 20), to, at(35))), "put across three");
    ctx.expect(win.try_put(all.first(10), to, at(85)), rma::status::out_of_window, "put into a gap");
    ctx.expect(win.try_put(all.first(30), to, at(85)), rma::status::out_of_window, "put across a gap");
    ctx.expect(win.try_get(std::span(got).first(1), to, at(100)), rma::status::out_of_window, "get from a gap");
    ctx.check(rma::ok(win.try_put(all.first(10), to, at(110))), "put into the range that stands apart");
  }
  ctx.world().barrier();
  ctx.equal(first_untagged(words(memory).first(90), ctx.left()), std::size_t{90}, "first wrong element");
  ctx.check(memory[90] == 0 && memory[109] == 0, "something was written into a gap");
  win.detach(range(4));
  ctx.world().barrier();
  {
    const auto hold = win.lock(rma::shared, to);
    ctx.expect(win.try_put(all.first(20), to, at(35)), rma::status::out_of_window, "put across a detached range");
    ctx.check(rma::ok(win.try_put(all.first(20), to, at(15))), "put before it");
  }
  ctx.world().barrier();
  for (std::size_t i = 0; i < 10; ++i) {
    if (i != 4) win.detach(range(i));
  }
  win.free();
}

// Goal: attach and detach are local: a rank may do them while others work on its other regions.
// Method: rank r attaches and detaches scratch regions all the time; all add to a counter region of rank 0.
void attach_while_others_work(context& ctx) {
  auto win = dynamic_window::create_dynamic(ctx.world());
  std::vector<std::uint64_t> counter(1, 0);
  const std::uint64_t start = win.attach(std::span(counter));
  const std::uint64_t there = ctx.world().allgather(start).front();
  const std::size_t rounds = ctx.rounds(500);
  {
    const auto hold = win.lock_all();
    for (std::size_t i = 0; i < rounds; ++i) {
      std::vector<std::uint64_t> scratch(16 + i % 50);
      (void)win.attach(std::span(scratch));
      win.accumulate(std::uint64_t{1}, 0, there, rma::sum);
      win.detach(std::span(scratch));
    }
  }
  ctx.world().barrier();
  if (ctx.rank() == 0) {
    ctx.equal(counter[0], static_cast<std::uint64_t>(ctx.size()) * rounds, "counter in an attached region");
  }
  win.detach(std::span(counter));
  win.free();
}

/// Operations that handlers have done for this rank.
std::uint64_t handled(context& ctx) {
  for (const rma::Counter& c : ctx.runtime().counters()) {
    if (c.name == "operations_handler") return c.value;
  }
  return ctx.check(false, "there is no counter operations_handler"), 0;
}

// Goal: where one_sided() says so, attached memory of another node is written and read without its processor.
// Method: puts and gets of what is attached now; no handler may be asked, and the data have to be there.
void one_sided_where_it_says_so(context& ctx) {
  constexpr std::size_t count = 64;
  auto win = dynamic_window::create_dynamic(ctx.world());
  std::vector<std::uint64_t> memory(count, 1);
  const auto starts = ctx.world().allgather(win.attach(std::span(memory)));
  const int target = ctx.right();
  const bool alone = win.one_sided(rma::detail::call::put, target) && !ctx.world().shares_memory(target);
  if (alone) {
    const std::uint64_t theirs = starts[static_cast<std::size_t>(target)];
    const std::uint64_t before = handled(ctx);
    auto hold = win.lock(rma::exclusive, target);
    std::vector<std::uint64_t> data(count, 7);
    win.put(std::span<const std::uint64_t>(data), target, theirs);
    hold.flush();
    win.put(8, target, theirs + (count - 1) * sizeof(std::uint64_t));
    hold.flush();
    win.get(std::span(data), target, theirs);
    hold.unlock();
    ctx.equal(data.front(), std::uint64_t{7}, "first element");
    ctx.equal(data.back(), std::uint64_t{8}, "last element");
    ctx.equal(handled(ctx), before, "operations that went to a handler");
  }
  ctx.world().barrier();
  win.detach(std::span(memory));
  win.free();
  if (ctx.world().allreduce(alone ? 1 : 0, rma::max) == 0)
    ctx.skip("the fabric's writes need the target, or it shares memory");
}

// Goal: overlapping and unknown regions are refused as the header says.
void attach_misuse(context& ctx) {
  auto win = dynamic_window::create_dynamic(ctx.world(), {.name = "moving parts"});
  std::vector<std::uint64_t> memory(64);
  (void)win.attach(std::span(memory));
  std::vector<std::uint64_t> other(8);
  std::ostringstream address;
  address << std::hex << std::showbase << reinterpret_cast<std::uint64_t>(memory.data());
  ctx.throws(rma::status::bad_argument, {"detach", "moving parts"}, [&] { win.detach(std::span(other)); });
  ctx.throws(rma::status::bad_argument, {"detach", "the 512 bytes from " + address.str() + " on are one"},
             [&] { win.detach(std::span(memory).subspan(1)); });
  ctx.throws(rma::status::bad_argument, {"attach", "64 bytes", "overlap the 512 bytes from " + address.str(), "detach"},
             [&] { (void)win.attach(std::span(memory).last(8)); });
  ctx.throws(rma::status::bad_argument, {"attach", "no memory"}, [&] { (void)win.attach({}); });
  win.detach(std::span(memory));
  ctx.throws(rma::status::bad_argument, {"detach", "moving parts"}, [&] { win.detach(std::span(memory)); });
  win.free();
}

// Goal: displacements of a dynamic window are bytes: another unit is refused on all ranks, whoever asks for it.
// Break: leave has_unit out of check_plan: what attach has returned is multiplied by the unit, and lies nowhere.
void dynamic_units(context& ctx) {
  const bool asks = ctx.rank() == ctx.size() - 1;
  ctx.throws(rma::status::bad_argument, {"create_dynamic", "displacement_unit", asks ? "8" : "another rank"},
             [&] { (void)dynamic_window::create_dynamic(ctx.world(), {.displacement_unit = asks ? 8U : 0U}); });
  auto win = dynamic_window::create_dynamic(ctx.world(), {.displacement_unit = 1});
  std::vector<std::uint64_t> memory(2, 5);
  const auto starts = ctx.world().allgather(win.attach(std::span(memory)));
  {
    const auto hold = win.lock(rma::shared, ctx.right());
    ctx.equal(win.get(ctx.right(), starts[static_cast<std::size_t>(ctx.right())] + 8), std::uint64_t{5}, "by bytes");
  }
  ctx.world().barrier();
  win.detach(std::span(memory));
  win.free();
}

constexpr test_case dynamic_table[] = {
    {"dynamic.many_regions", many_regions},
    {"dynamic.attach_without_room", attach_without_room},
    {"dynamic.detach_in_the_middle", detach_in_the_middle},
    {"dynamic.ranges_across_the_end", ranges_across_the_end},
    {"dynamic.ranges_without_a_gap", ranges_without_a_gap},
    {"dynamic.attach_while_others_work", attach_while_others_work},
    {"dynamic.one_sided_where_it_says_so", one_sided_where_it_says_so},
    {"dynamic.attach_misuse", attach_misuse},
    {"dynamic.units", dynamic_units},
};

}  // namespace

std::span<const test_case> dynamic_cases() noexcept { return dynamic_table; }

}  // namespace conformance
