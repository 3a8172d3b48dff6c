// SPDX-License-Identifier: Apache-2.0
// How windows come and go, and what they say about themselves.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

// Goal: fresh library memory is zero, has the size asked for (each rank its own, also none), and is writable.
// Everybody knows everybody's size.
// Method: rank r asks for r * 1000 elements; every rank reads the last element of every other.
// Break: in part_bytes, tell this rank's own.
void sizes_differ_by_rank(context& ctx) {
  const std::size_t mine = static_cast<std::size_t>(ctx.rank()) * 1000;
  test_window<std::uint64_t> win(ctx, mine);
  ctx.equal(win.local().size(), mine, "size of the local part");
  for (int r = 0; r < ctx.size(); ++r) {
    const std::size_t theirs = ctx.kind() == window_kind::dynamic ? 0 : static_cast<std::size_t>(r) * 1000;
    ctx.equal(win->size(r), theirs, "size of the part of rank " + std::to_string(r));
  }
  ctx.check(std::ranges::all_of(win.local(), [](std::uint64_t v) { return v == 0; }), "fresh memory is not zero");
  fill_tagged(win.local(), ctx.rank());
  win->fence();
  for (int r = 1; r < ctx.size(); ++r) {
    const std::size_t last = static_cast<std::size_t>(r) * 1000 - 1;
    ctx.equal(win->get(r, win.at(r, last)), tagged<std::uint64_t>(r, last), "last element of a part");
  }
  std::uint64_t value = 1;
  if (ctx.kind() != window_kind::dynamic) {
    for (int r = 0; r < ctx.size(); ++r) {
      const std::size_t end = static_cast<std::size_t>(r) * 1000;
      ctx.expect(win->try_get(value, r, end), rma::status::out_of_window, "get one beyond the end");
    }
  }
  win->fence();
  win.free();
}

// Goal: memory that was used and given back is zero again for the next window.
void reused_memory_is_zero(context& ctx) {
  for (int i = 0; i < 5; ++i) {
    auto win = rma::Window<std::uint32_t>::allocate(ctx.world(), 20000);
    const auto part = win.local();
    ctx.check(std::ranges::all_of(part, [](std::uint32_t v) { return v == 0; }), "reused memory is not zero");
    std::ranges::fill(part, 0xffffffffU);
    win.free();
  }
}

// Goal: allocate_shared gives pointers into every other part; stores through them are seen at once after a barrier.
void shared_pointers(context& ctx) {
  bool all = true;
  for (int r = 0; r < ctx.size(); ++r) all = all && ctx.world().shares_memory(r);
  if (!all) {
    ctx.throws(rma::status::unreachable, {"allocate_shared"},
               [&] { (void)rma::Window<int>::allocate_shared(ctx.world(), 4); });
    return;
  }
  auto win = rma::Window<int>::allocate_shared(ctx.world(), static_cast<std::size_t>(ctx.size()) + 4);
  for (int r = 0; r < ctx.size(); ++r) {
    int* const part = win.pointer_to(r);
    ctx.check(part != nullptr, "no pointer to a part on this node");
    if (part != nullptr) part[ctx.rank()] = 100 * r + ctx.rank();
  }
  ctx.check(win.pointer_to(ctx.rank()) == win.data(), "the pointer to this rank's part is not data()");
  ctx.check(win.pointer_to(ctx.size()) == nullptr && win.pointer_to(-1) == nullptr, "a pointer to nobody");
  ctx.world().barrier();
  for (int r = 0; r < ctx.size(); ++r) {
    ctx.equal(win[static_cast<std::size_t>(r)], 100 * ctx.rank() + r, "store of a neighbor");
  }
  win.free();
}

// Goal: with Hints::contiguous the parts of a shared window are one array, in the order of the ranks: also empty ones,
// and in a team of other order. Operations reach each part, and not the one behind it. Break: let part_in_piece leave
// out what is before a part.
void shared_in_one_piece(context& ctx) {
  for (int r = 0; r < ctx.size(); ++r)
    if (!ctx.world().shares_memory(r)) return;
  rma::Team team = ctx.world().split(0, -ctx.rank());
  const auto part_of = [](int rank) { return static_cast<std::size_t>(rank % 3 == 1 ? 0 : 5 + 2 * rank); };
  auto win = rma::Window<int>::allocate_shared(team, part_of(team.rank()), {.contiguous = true});
  int* const all = win.pointer_to(0);
  std::size_t total = 0;
  for (int r = 0; r < team.size(); ++r) {
    ctx.check(win.pointer_to(r) == all + total, "a part that does not follow the one before");
    ctx.equal(win.size(r), part_of(r), "size of a part");
    total += part_of(r);
  }
  ctx.check(win.data() == win.pointer_to(team.rank()), "data() is not this rank's part");
  ctx.check(std::all_of(all, all + total, [](int v) { return v == 0; }), "fresh memory is not zero");
  team.barrier();
  if (team.rank() == team.size() - 1) std::iota(all, all + total, 0);
  team.barrier();
  ctx.check(win.local().empty() || win.local()[0] == static_cast<int>(win.data() - all), "stores of another rank");
  win.fence();
  const std::vector<int> hundreds(3, 100);
  for (int r = 0; r < team.size(); ++r) {
    int past = 0;
    ctx.expect(win.try_get(past, r, part_of(r)), rma::status::out_of_window, "what is behind a part");
    if (part_of(r) == 0) continue;
    win.accumulate(1000, r, part_of(r) - 1, rma::sum);
    win.accumulate(std::span<const int>(hundreds), r, 0, rma::sum);
    ctx.equal(win.get(r, 3), static_cast<int>(win.pointer_to(r) - all) + 3, "get from a part");
  }
  win.fence(rma::no_succeed);
  if (!win.local().empty()) {
    const int before = static_cast<int>(win.data() - all);
    ctx.equal(win.local()[0], before + 100 * team.size(), "sum at the begin of a part");
    ctx.equal(win.local().back(), before + static_cast<int>(win.size()) - 1 + 1000 * team.size(), "sum at its end");
  }
  win.free();
  if (ctx.size() > 1) {
    ctx.throws(rma::status::bad_setting, {"in different ways"},
               [&] { (void)rma::Window<int>::allocate_shared(ctx.world(), 4, {.contiguous = ctx.rank() == 0}); });
  }
}

// Goal: an allocated window on one node shares memory with the ranks that the team says it does.
void pointers_match_the_team(context& ctx) {
  auto win = rma::Window<int>::allocate(ctx.world(), 8);
  for (int r = 0; r < ctx.size(); ++r) {
    if (r == ctx.rank()) continue;
    ctx.check((win.pointer_to(r) != nullptr) == ctx.world().shares_memory(r), "pointer_to and shares_memory differ");
  }
  win.free();
}

// Goal: displacements count displacement_unit bytes; here one byte and half an element.
void displacement_units(context& ctx) {
  for (const std::size_t unit : {std::size_t{1}, std::size_t{4}, std::size_t{8}, std::size_t{16}}) {
    rma::Hints hints;
    hints.displacement_unit = unit;
    test_window<std::uint64_t> win(ctx, 32, hints);
    fill_tagged(win.local(), ctx.rank());
    win->fence();
    for (const std::size_t i : {0U, 2U, 30U}) {
      ctx.equal(win->get(ctx.right(), win.at(ctx.right(), i)), tagged<std::uint64_t>(ctx.right(), i),
                "element by unit");
    }
    std::vector<std::uint64_t> part(4);
    win->get(std::span(part), ctx.right(), win.at(ctx.right(), 10));
    win->fence();
    ctx.equal(first_untagged(std::span<const std::uint64_t>(part), ctx.right(), 0, 10), part.size(), "range by unit");
    const std::uint64_t ones = 1;
    win->accumulate(ones, ctx.right(), win.at(ctx.right(), 6), rma::sum);
    win->fence();
    ctx.equal(win.local()[6], tagged<std::uint64_t>(ctx.rank(), 6) + 1, "accumulate by unit");
    if (unit <= 8) {
      std::uint64_t value = 0;
      ctx.expect(win->try_get(value, ctx.right(), 32 * 8 / unit), rma::status::out_of_window,
                 "end of the window in units");
      if (unit < 8) {
        ctx.expect(win->try_get(value, ctx.right(), 32 * 8 / unit - 1), rma::status::out_of_window,
                   "last unit in part");
      }
    }
    win->fence();
    win.free();
  }
}

// Goal: a window says what it is: name (each rank its own), team, accumulate mode.
void descriptions(context& ctx) {
  rma::Hints hints;
  hints.name = "window of rank " + std::to_string(ctx.rank());
  test_window<int> win(ctx, 4, hints);
  ctx.equal(win->name(), std::string_view(hints.name), "name");
  ctx.equal(win->team().size(), ctx.size(), "size of the team");
  ctx.equal(win->team().rank(), ctx.rank(), "rank in the team");
  ctx.check(win->atomicity() != rma::accumulate_mode::automatic, "the accumulate mode is not decided");
  for (const auto mode : ctx.world().allgather(win->atomicity())) {
    ctx.check(mode == win->atomicity(), "ranks differ in their accumulate mode");
  }
  if (ctx.kind() == window_kind::promoted) {
    ctx.check(win->promoted() == win->not_promoted_because().empty(), "a promotion with a reason against it");
  }
  win.free();
}

// Goal: a hint for an accumulate mode is obeyed or refused, never ignored.
void mode_hints(context& ctx) {
  for (const auto mode :
       {rma::accumulate_mode::element, rma::accumulate_mode::striped, rma::accumulate_mode::handler}) {
    rma::Hints hints;
    hints.accumulate = mode;
    try {
      test_window<std::uint64_t> win(ctx, 4, hints);
      ctx.check(win->atomicity() == mode, "another accumulate mode than the hint's");
      win.free();
    } catch (const rma::Error& e) {
      ctx.check(e.code() == rma::status::not_supported, e.what());
      ctx.check(mode != rma::accumulate_mode::handler, "the handler mode is refused, but every window can have it");
    }
  }
}

// Goal: operations on two windows do not mix, also with overlapping epochs.
void two_windows(context& ctx) {
  test_window<std::uint32_t> a(ctx, 64);
  test_window<std::uint64_t> b(ctx, 64);
  a->fence();
  {
    const auto hold = b->lock(rma::shared, ctx.right());
    for (std::size_t i = 0; i < 64; ++i) {
      a->put(tagged<std::uint32_t>(ctx.rank(), i), ctx.right(), a.at(ctx.right(), i));
      b->put(tagged<std::uint64_t>(ctx.rank(), i, 9), ctx.right(), b.at(ctx.right(), i));
    }
  }
  a->fence();
  ctx.equal(first_untagged(std::span<const std::uint32_t>(a.local()), ctx.left()), std::size_t{64}, "first window");
  ctx.equal(first_untagged(std::span<const std::uint64_t>(b.local()), ctx.left(), 9), std::size_t{64}, "second window");
  b.free();
  a->put(7U, ctx.right(), a.at(ctx.right(), 0));
  a->fence();
  ctx.equal(a.local()[0], 7U, "the first window after the second was freed");
  a.free();
}

struct footprint {
  std::size_t maps = 0;
  std::size_t files = 0;
  std::size_t resident_kib = 0;
};

footprint measure() {
  footprint now;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++now.maps;
  std::error_code error;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator("/proc/self/fd", error)) ++now.files;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) now.resident_kib = std::stoul(line.substr(6));
  }
  return now;
}

void make_and_free_windows(context& ctx, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    test_window<std::uint64_t> win(ctx, 512 + (i % 7) * 1024);
    win->fence();
    win->put(i, ctx.right(), win.at(ctx.right(), i % 512));
    win->fence();
    if (win.local()[i % 512] != i) ctx.fail("put into a window created again");
    win.free();
  }
  ctx.world().barrier();
}

// Goal: windows that are freed leave nothing: no memory, no mappings, no descriptors.
// Method: 1000 windows one after the other, of varying size; footprint after the first 100 (half, where there are
// fewer than 200) against the end. Memory may grow until a network's library has used all its buffers once, so that as
// many windows are made again if it has: what is left behind by each window grows every time.
// Break: do not give segment space back in free_window.
void freed_windows_leave_nothing(context& ctx) {
  constexpr int trials = 4;
  constexpr std::size_t grown_kib_max = 4096;
  const std::size_t rounds = ctx.rounds(1000, 200);
  const std::size_t settled = std::min<std::size_t>(100, rounds / 2);
  make_and_free_windows(ctx, 0, settled);
  for (int trial = 1; trial <= trials; ++trial) {
    const footprint early = measure();
    make_and_free_windows(ctx, settled, rounds);
    const footprint late = measure();
    if (ctx.threads()) return;  // the footprint is that of all ranks and of the test's threads
    ctx.check(late.files <= early.files, "descriptors grew to " + std::to_string(late.files));
    ctx.check(late.maps <= early.maps + 8, "mappings grew to " + std::to_string(late.maps));
    const bool grew = !address_sanitizer && late.resident_kib > early.resident_kib + grown_kib_max;
    const bool any_grew = ctx.world().allreduce(grew ? 1 : 0, rma::max) != 0;
    ctx.check(!grew || trial < trials, "memory grew " + std::to_string(trials) + " times, at last from " +
                                           std::to_string(early.resident_kib) + " to " +
                                           std::to_string(late.resident_kib) + " KiB");
    if (!any_grew) return;
  }
}

// Goal: a window that is dropped without free by all ranks is given back, too, and disturbs no other.
// Method: more windows than the ranks' segments have room for.
// Break: let rank 0 give its part back before the others have looked at it.
void dropped_windows(context& ctx) {
  const std::size_t rounds = ctx.rounds(200);
  for (std::size_t i = 0; i < rounds; ++i) {
    test_window<std::uint32_t> win(ctx, 1 << 20);
    fill_tagged(win.local().first(16), ctx.rank(), i);
    win->fence();
    const std::uint32_t seen = win->get(ctx.right(), win.at(ctx.right(), 5));
    ctx.equal(seen, tagged<std::uint32_t>(ctx.right(), 5, i), "element of a window that will be dropped");
    win->fence(rma::no_succeed);
  }
}

// Goal: a window over a part of the ranks numbers its targets by that part, and the parts are independent.
void windows_of_teams(context& ctx) {
  rma::Team half = ctx.world().split(ctx.rank() % 2, -ctx.rank());
  test_window<std::uint64_t> win(half, ctx.kind(), 16);
  win->fence();
  const int next = (half.rank() + 1) % half.size();
  win->put(static_cast<std::uint64_t>(ctx.rank()), next, win.at(next, 3));
  win->fence();
  const int before = (half.rank() + half.size() - 1) % half.size();
  ctx.equal(win.local()[3], static_cast<std::uint64_t>(half.world_rank(before)), "put inside a part of the ranks");
  std::uint64_t value = 0;
  ctx.expect(win->try_put(value, half.size(), 0), rma::status::bad_rank, "put to a rank outside the part");
  win->fence();
  win.free();
}

// Goal: moving a window moves everything; the old one is as if freed.
void moved_windows(context& ctx) {
  auto first = rma::Window<int>::allocate(ctx.world(), 8);
  first.fence();
  rma::Window<int> second = std::move(first);
  second.put(ctx.rank() + 1, ctx.right(), 2);
  second.fence();
  ctx.equal(second[2], ctx.left() + 1, "put after a move inside an epoch");
  // Using a moved-from window is what is tested.
  ctx.expect(first.try_put(1, 0, 0), rma::status::window_freed, "put into a moved-from window");  // NOLINT
  auto third = rma::Window<int>::allocate(ctx.world(), 8);
  third = std::move(second);
  third.put(77, ctx.right(), 1);
  third.fence();
  ctx.equal(third[1], 77, "put after a move over another window");
  std::vector<rma::Window<int>> several;
  several.push_back(std::move(third));
  several.push_back(rma::Window<int>::allocate(ctx.world(), 2));
  several.front().free();
  several.back().free();
}

// Goal: 64 windows at once work, of all sizes.
void many_windows(context& ctx) {
  std::vector<test_window<std::uint64_t>> all;
  const std::size_t count = ctx.rounds(64, 64);
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.emplace_back(ctx, i * i + 1);
  for (auto& win : all) win->fence();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i]->put(tagged<std::uint64_t>(ctx.rank(), i), ctx.right(), all[i].at(ctx.right(), i * i));
  }
  for (auto& win : all) win->fence();
  for (std::size_t i = 0; i < all.size(); ++i) {
    ctx.equal(all[i].local()[i * i], tagged<std::uint64_t>(ctx.left(), i), "last element of one of many windows");
  }
  for (std::size_t i = all.size(); i-- > 0;) all[i].free();
}

// Goal: no atomic is called one-sided whose target must be inside the library: not over a network that is not
// one-sided, though it does the window's atomics. Break: in one_sided, say so of every window whose atomics are the
// device's.
void one_sided_atomics(context& ctx) {
  const auto fabrics = ctx.runtime().fabrics();
  const std::string& network = fabrics.back();  // but a simulated one, which may refuse memory
  if (network.starts_with("sim") || network.find("one-sided false, atomics true") == std::string::npos) return;
  rma::Hints hints;
  hints.accumulate = rma::accumulate_mode::direct;
  hints.lock = rma::lock_protocol::network;  // else its manager has a part
  auto win = rma::Window<std::uint64_t>::allocate(ctx.world(), 4, hints);
  for (int r = 0; r < ctx.size(); ++r) {
    ctx.check(win.one_sided(rma::call::fetch_and_op, r) == (r == ctx.rank()), "one_sided of rank " + std::to_string(r));
  }
  win.free();
}

// Goal: structs travel as they are.
struct particle {
  double position[3];
  std::int32_t id;
  char kind;
};

void windows_of_structs(context& ctx) {
  test_window<particle> win(ctx, 10);
  win->fence();
  const particle mine{{1.5, -2.5, ctx.rank() + 0.25}, ctx.rank(), 'p'};
  win->put(mine, ctx.right(), win.at(ctx.right(), 4));
  win->fence();
  const particle seen = win.local()[4];
  ctx.check(seen.id == ctx.left() && seen.kind == 'p' && seen.position[2] == ctx.left() + 0.25, "a struct by put");
  const particle got = win->get(ctx.right(), win.at(ctx.right(), 4));
  ctx.check(got.id == ctx.rank() && got.position[0] == 1.5, "a struct by get");
  win->fence();
  win.free();
}

// A dynamic window's displacements are addresses.
constexpr kind_set displaced_kinds = each_kind & ~only(window_kind::dynamic);

constexpr test_case window_table[] = {
    {"window.sizes_differ_by_rank", sizes_differ_by_rank, each_kind},
    {"window.reused_memory_is_zero", reused_memory_is_zero},
    {"window.shared_pointers", shared_pointers},
    {"window.shared_in_one_piece", shared_in_one_piece},
    {"window.pointers_match_the_team", pointers_match_the_team},
    {"window.displacement_units", displacement_units, displaced_kinds},
    {"window.descriptions", descriptions, each_kind},
    {"window.mode_hints", mode_hints, each_kind},
    {"window.one_sided_atomics", one_sided_atomics},
    {"window.two_windows", two_windows, each_kind},
    {"window.freed_windows_leave_nothing", freed_windows_leave_nothing, each_kind},
    {"window.dropped_windows", dropped_windows, each_kind},
    {"window.windows_of_teams", windows_of_teams, each_kind},
    {"window.moved_windows", moved_windows},
    {"window.many_windows", many_windows, each_kind},
    {"window.windows_of_structs", windows_of_structs, each_kind},
};

}  // namespace

std::span<const test_case> window_cases() noexcept { return window_table; }

}  // namespace conformance
