// SPDX-License-Identifier: Apache-2.0
// Forms that return a status where others throw: each does what the throwing form does, and says the same of misuse.
#include <array>
#include <cstdint>
#include <numeric>
#include <string>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::status;
using window = rma::Window<std::uint64_t>;
using words = std::span<const std::uint64_t>;

// Goal: windows are made by the forms that do not throw; where one cannot be made it stays what it was.
void windows(context& ctx) {
  window made;
  std::vector<std::uint64_t> memory(4, 7);
  ctx.expect(window::try_allocate(ctx.world(), 4, made, {.name = "made"}), status::done, "try_allocate");
  made.fence();
  made.put(std::uint64_t{3}, ctx.right(), 1);
  made.fence(rma::no_succeed);
  ctx.equal(made[1], std::uint64_t{3}, "put into a window of try_allocate");
  const std::size_t far_too_much = std::size_t{1} << 50;
  ctx.expect(window::try_allocate(ctx.world(), far_too_much, made), status::out_of_memory, "try_allocate of too much");
  ctx.expect(window::try_allocate(ctx.world(), ~std::size_t{0} / 4, made), status::bad_size, "try_allocate of 2^62");
  ctx.equal(made.name(), std::string_view("made"), "the window after one that could not be made");
  made.free();
  ctx.expect(window::try_create(ctx.world(), memory, made), status::done, "try_create");
  ctx.check(made.data() == memory.data(), "memory of try_create");
  made.free();
  window shared;
  const auto node_only = ctx.world().one_node() ? status::done : status::unreachable;
  ctx.expect(window::try_allocate_shared(ctx.world(), 4, shared), node_only, "try_allocate_shared");
  ctx.expect(window::try_create_dynamic(ctx.world(), made, {.displacement_unit = 8}), status::bad_argument,
             "try_create_dynamic with a unit");
  ctx.expect(window::try_create_dynamic(ctx.world(), made), status::done, "try_create_dynamic");
  std::uint64_t at = 0;
  ctx.expect(made.try_attach(memory, at), status::done, "try_attach");
  ctx.equal(at, reinterpret_cast<std::uint64_t>(memory.data()), "displacement: the address");
  ctx.expect(made.try_detach(std::span(memory).subspan(1)), status::bad_argument, "try_detach in the middle");
  ctx.expect(made.try_detach(memory), status::done, "try_detach");
  ctx.expect(made.try_detach(memory), status::bad_argument, "try_detach of what is not attached");
  ctx.expect(shared.try_detach(memory), node_only == status::done ? status::not_supported : status::window_freed,
             "try_detach of no dynamic window");
  made.free();
}

// Goal: teams are made, and collectives done, by the forms that do not throw.
void collectives(context& ctx) {
  rma::Team& world = ctx.world();
  rma::Team made = world;
  ctx.expect(world.try_split(ctx.rank() % 2, -ctx.rank(), made), status::done, "try_split");
  ctx.equal(made.size(), (ctx.size() + 1 - ctx.rank() % 2) / 2, "size of a split team");
  ctx.expect(world.try_node(made), status::done, "try_node");
  ctx.equal(made.size(), world.node().size(), "size of a node's team");
  ctx.expect(world.try_shrink(made), status::done, "try_shrink");
  ctx.equal(made.size(), ctx.size(), "the living");

  const auto n = static_cast<std::size_t>(ctx.size());
  int number = ctx.rank();
  ctx.expect(world.try_broadcast(std::span(&number, 1), ctx.size() - 1), status::done, "try_broadcast");
  ctx.equal(number, ctx.size() - 1, "what was broadcast");
  ctx.expect(world.try_broadcast(std::span(&number, 1), ctx.size()), status::bad_rank, "try_broadcast of no rank");
  std::array<int, 2> pair{1, ctx.rank()};
  ctx.expect(world.try_allreduce(std::span(pair), rma::sum), status::done, "try_allreduce");
  ctx.equal(pair[0], ctx.size(), "sum of ones");
  ctx.expect(world.try_allreduce(std::span(pair), static_cast<rma::operation>(77)), status::bad_type,
             "try_allreduce by no operator");
  std::vector<int> all(n);
  ctx.expect(world.try_allgather(ctx.rank(), std::span(all)), status::done, "try_allgather");
  for (std::size_t r = 0; r < n; ++r) ctx.equal(all[r], static_cast<int>(r), "gathered");
  std::vector<std::vector<int>> parts;
  const std::vector<int> mine(static_cast<std::size_t>(ctx.rank()), ctx.rank());
  ctx.expect(world.try_allgatherv(std::span(mine), parts), status::done, "try_allgatherv");
  for (std::size_t r = 0; r < n; ++r)
    ctx.check(parts[r] == std::vector<int>(r, static_cast<int>(r)), "gathered ranges");
  std::vector<int> each(n), got(n);
  std::iota(each.begin(), each.end(), 10 * ctx.rank());
  ctx.expect(world.try_alltoall(std::span(each), std::span(got)), status::done, "try_alltoall");
  for (std::size_t r = 0; r < n; ++r) ctx.equal(got[r], static_cast<int>(10 * r) + ctx.rank(), "from each to each");
  int one = 1;
  ctx.expect(world.try_scan(std::span(&one, 1), rma::sum), status::done, "try_scan");
  ctx.equal(one, ctx.rank() + 1, "scan of ones");
  one = 1;
  ctx.expect(world.try_exscan(std::span(&one, 1), rma::sum, -5), status::done, "try_exscan");
  ctx.equal(one, ctx.rank() == 0 ? -5 : ctx.rank(), "exscan of ones");
  // Room that does not fit one member's result is everybody's bad_size: nobody waits.
  std::vector<int> room(n + (ctx.rank() == 0 ? 1 : 0));
  ctx.expect(world.try_allgather(1, std::span(room)), status::bad_size, "try_allgather into too much");
  ctx.expect(world.try_alltoall(std::span(each), std::span(room)), status::bad_size, "try_alltoall into too much");
  ctx.expect(world.try_barrier(), status::done, "try_barrier");
}

// Goal: request forms that do not throw, with layouts and operators, and waits for one of several.
void requests(context& ctx) {
  test_window<std::uint64_t> win(ctx, 16, {.name = "asked"});
  const int to = ctx.right();
  std::vector<std::uint64_t> from(4, 3), got(4);
  const auto rows = rma::Layout::vector<std::uint64_t>(4, 1, 2);
  const auto here = rma::Layout::contiguous<std::uint64_t>(4);
  std::array<rma::Request, 3> several;
  rma::Request& request = several[1];
  {
    const auto hold = win->lock(rma::exclusive, to);
    ctx.check(rma::ok(win->try_rput(from.data(), here, to, win.at(to, 0), rows, request)), "try_rput of a layout");
    ctx.expect(request.wait_nothrow(), status::done, "its wait");
    win->flush(to);
    ctx.check(rma::ok(win->try_raccumulate(words(from), to, win.at(to, 0), rma::sum, request)), "try_raccumulate");
    ctx.expect(request.wait_nothrow(), status::done, "its wait");
    ctx.check(rma::ok(win->try_raccumulate(from.data(), here, to, win.at(to, 0), rows, rma::sum, request)),
              "try_raccumulate of a layout");
    ctx.expect(request.wait_nothrow(), status::done, "its wait");
    ctx.check(rma::ok(win->try_rget_accumulate(words(from), std::span(got), to, win.at(to, 0), rma::sum, request)),
              "try_rget_accumulate");
    std::size_t which = 7;
    ctx.expect(rma::wait_any_nothrow(several, which), status::done, "wait_any_nothrow");
    ctx.equal(which, std::size_t{1}, "the one that has ended");
    ctx.check(got == std::vector<std::uint64_t>{9, 3, 9, 3}, "old values");
    ctx.expect(rma::wait_any_nothrow(several, which), status::done, "wait_any_nothrow of none");
    ctx.equal(which, several.size(), "nothing more to tell");
    win->flush(to);
    ctx.check(rma::ok(win->try_rget(got.data(), here, to, win.at(to, 0), rows, request)), "try_rget of a layout");
    status s = status::not_yet;
    ctx.wait_until([&] { return (s = rma::try_test_any(several, which)) != status::not_yet; });
    ctx.expect(s, status::done, "try_test_any");
    ctx.check(which == 1 && got == std::vector<std::uint64_t>{12, 12, 6, 6}, "values");
    ctx.expect(rma::try_test_any(several, which), status::not_yet, "try_test_any of none");
    ctx.expect(win->try_rget_accumulate(words(from).first(3), std::span(got), to, win.at(to, 0), rma::sum, request),
               status::bad_size, "try_rget_accumulate of unequal ranges");
    ctx.expect(win->try_raccumulate(words(from), ctx.size(), 0, rma::sum, request), status::bad_rank,
               "try_raccumulate to no rank");
    ctx.check(!request.pending(), "a request of a refused call");
  }
  ctx.expect(win->try_rput(from.data(), here, to, win.at(to, 0), rows, request), status::wrong_epoch,
             "try_rput without an epoch");
  ctx.expect(win->try_rget(got.data(), here, to, win.at(to, 0), rows, request), status::wrong_epoch,
             "try_rget without an epoch");
  ctx.world().barrier();
  win.free();
}

// Goal: synchronizations by request that do not throw.
void synchronization(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8);
  const int to = ctx.right();
  rma::Request request;
  const auto ends = [&](status s, const std::string& what) {
    ctx.check(rma::ok(s), what);
    ctx.expect(request.wait_nothrow(), status::done, "wait of " + what);
  };
  ends(win->try_ifence(request), "try_ifence");
  win->put(std::uint64_t{4}, to, win.at(to, 0));
  ends(win->try_ifence(request, rma::no_succeed), "try_ifence at the end");
  ctx.equal(win.local()[0], std::uint64_t{4}, "a put between two of them");
  ends(win->try_ilock(rma::exclusive, to, request), "try_ilock");
  ctx.expect(win->try_ilock(rma::shared, to, request), status::wrong_epoch, "try_ilock of a locked target");
  ctx.expect(win->try_ilock(static_cast<rma::lock_kind>(9), to, request), status::bad_argument, "try_ilock of no kind");
  win->put(std::uint64_t{5}, to, win.at(to, 1));
  ends(win->try_iflush(to, request), "try_iflush");
  ends(win->try_iflush_all(request), "try_iflush_all");
  ctx.expect(win->try_iflush(-1, request), status::bad_rank, "try_iflush of -1");
  ends(win->try_iunlock(to, request), "try_iunlock");
  ctx.expect(win->try_iunlock(to, request), status::not_locked, "a second try_iunlock");
  ctx.expect(win->try_icomplete(request), status::wrong_epoch, "try_icomplete without start");
  ctx.world().barrier();
  const int left[] = {ctx.left()};
  const int right[] = {to};
  ctx.expect(win->try_post(left), status::done, "try_post");
  ctx.expect(win->try_start(right), status::done, "try_start");
  ends(win->try_icomplete(request), "try_icomplete");
  ctx.expect(win->wait_nothrow(), status::done, "wait_nothrow");
  ctx.expect(win->try_neighbors(right, left), status::done, "try_neighbors");
  ctx.expect(win->try_neighbors(right, left), status::bad_argument, "a second try_neighbors");
  const auto is_five = [](std::uint64_t value) { return value == 5; };
  ctx.expect(win->try_test_until(win.at(ctx.rank(), 1), is_five), status::done, "try_test_until");
  ctx.expect(win->try_test_until(win.at(ctx.rank(), 2), is_five), status::not_yet, "try_test_until of another");
  win.free();
}

constexpr test_case try_table[] = {
    {"try.windows", windows},
    {"try.collectives", collectives},
    {"try.requests", requests, each_kind},
    {"try.synchronization", synchronization, each_kind},
};

}  // namespace

std::span<const test_case> try_cases() noexcept { return try_table; }

}  // namespace conformance
