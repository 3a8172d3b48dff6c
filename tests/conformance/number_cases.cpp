// SPDX-License-Identifier: Apache-2.0
// Numbers that are no operator, element type, kind, assertion or rank, as a translation layer may pass them: each call
// refuses them with a status, wherever its target is, and does nothing else.
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::status;

/// Numbers of no operator. All but the first are also those of no element type.
constexpr std::array<int, 5> no_operations{rma::operation_count, rma::element_count, 77, 128, 255};
constexpr int some_operation = 3;
constexpr int some_element = 7;

/// Each run-time typed call with these two numbers must give bad_type, with data and without.
void typed_calls_refuse(context& ctx, test_window<std::byte>& win, int to, int op_number, int element_number) {
  const auto op = static_cast<rma::operation>(op_number);
  const auto type = static_cast<rma::element>(element_number);
  const std::string text =
      " of operator " + std::to_string(op_number) + " and element " + std::to_string(element_number);
  std::array<std::uint64_t, 4> value{}, old{};
  const std::uint64_t at = win.at(to, 16);
  rma::Request request;
  for (const std::size_t count : {2U, 0U}) {
    const auto some = rma::Layout::contiguous<std::uint64_t>(count);
    ctx.expect(win->accumulate_as(type, op, value.data(), some, to, at, some), status::bad_type, "accumulate" + text);
    ctx.expect(win->raccumulate_as(type, op, value.data(), some, to, at, some, request), status::bad_type,
               "raccumulate" + text);
    ctx.expect(win->get_accumulate_as(type, op, value.data(), some, old.data(), some, to, at, some), status::bad_type,
               "get_accumulate" + text);
    ctx.expect(win->rget_accumulate_as(type, op, value.data(), some, old.data(), some, to, at, some, request),
               status::bad_type, "rget_accumulate" + text);
    ctx.expect(win->accumulate_signal_as(type, op, value.data(), some, to, at, some, 0), status::bad_type,
               "accumulate_signal" + text);
  }
  ctx.expect(win->fetch_and_op_as(type, op, value.data(), old.data(), to, at), status::bad_type, "fetch_and_op" + text);
  ctx.expect(win->rfetch_and_op_as(type, op, value.data(), old.data(), to, at, request), status::bad_type,
             "rfetch_and_op" + text);
  if (element_number == some_element) return;
  ctx.expect(win->compare_and_swap_as(type, value.data(), value.data(), old.data(), to, at), status::bad_type,
             "compare_and_swap" + text);
  ctx.expect(win->rcompare_and_swap_as(type, value.data(), value.data(), old.data(), to, at, request), status::bad_type,
             "rcompare_and_swap" + text);
}

// Goal: operations refuse operators and element types that there are not, towards every rank, in each kind of epoch,
// also after right ones. Break: let defined_for say yes to operators that it does not know.
void operators_and_elements(context& ctx) {
  test_window<std::byte> win(ctx, 256, {.name = "numbers"});
  for (int to = 0; to < ctx.size(); ++to) {
    auto hold = win->lock(rma::shared, to);
    for (const int number : no_operations) {
      std::uint64_t one = 1, old = 0;
      ctx.check(rma::ok(win->fetch_and_op_as(rma::element::u64, rma::sum, &one, &old, to, win.at(to, 0))),
                "a right operation");
      typed_calls_refuse(ctx, win, to, number, some_element);
      if (number < static_cast<int>(rma::element_count)) continue;
      typed_calls_refuse(ctx, win, to, some_operation, number);
      typed_calls_refuse(ctx, win, to, number, number);
    }
    hold.unlock();
  }
  win->fence();
  typed_calls_refuse(ctx, win, ctx.right(), 77, some_element);
  typed_calls_refuse(ctx, win, ctx.right(), some_operation, rma::element_count);
  win->fence(rma::no_succeed);
  std::uint64_t added = 0;
  std::memcpy(&added, win.local().data(), sizeof added);
  ctx.equal(added, static_cast<std::uint64_t>(ctx.size()) * no_operations.size(), "right operations");
  for (std::size_t i = 8; i < 256; ++i) ctx.check(win.local()[i] == std::byte{}, "a refused operation wrote");
  ctx.check(win->wait_any_signal({}) == 0 && win->signal_value(0) == 0, "a refused operation raised a signal");
  win.free();
}

// Goal: typed windows' calls with an operator chosen at run time do so, too.
void operators_of_typed_windows(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8, {.name = "typed"});
  const int to = ctx.right();
  std::vector<std::uint64_t> two(2, 1), old(2);
  const std::span<const std::uint64_t> from(two);
  const auto both = rma::Layout::contiguous<std::uint64_t>(2);
  win->fence();
  for (const int number : no_operations) {
    const auto op = static_cast<rma::operation>(number);
    const std::uint64_t at = win.at(to, 0);
    rma::Request request;
    ctx.expect(win->try_accumulate(from, to, at, op), status::bad_type, "accumulate");
    ctx.expect(win->try_accumulate(from.first(0), to, at, op), status::bad_type, "accumulate of nothing");
    ctx.expect(win->try_accumulate(two.data(), both, to, at, both, op), status::bad_type, "accumulate of a layout");
    ctx.expect(win->try_get_accumulate(from, std::span(old), to, at, op), status::bad_type, "get_accumulate");
    ctx.expect(win->try_rfetch_and_op(two[0], old[0], to, at, op, request), status::bad_type, "rfetch_and_op");
    ctx.expect(win->try_accumulate_signal(from, to, at, op, 0), status::bad_type, "accumulate_signal");
    ctx.throws(status::bad_type, {"accumulate", "typed", "unknown operation", "u64"},
               [&] { win->accumulate(from, to, at, op); });
    ctx.throws(status::bad_type, {"get_accumulate"},
               [&] { (void)win->rget_accumulate(from, std::span(old), to, at, op); });
  }
  win->fence(rma::no_succeed);
  for (const std::uint64_t v : win.local()) ctx.equal(v, std::uint64_t{0}, "a refused operation wrote");
  win.free();
}

// Goal: collectives of teams refuse them at every member; where only one member passes such a number the others are
// refused, too, if they need something of it, and nobody waits for ever. Break: return before the member has taken
// part.
void operators_of_collectives(context& ctx) {
  rma::Team& world = ctx.world();
  for (const int number : no_operations) {
    const auto op = static_cast<rma::operation>(number);
    std::vector<int> data(5, 1);
    ctx.throws(status::bad_type, {"allreduce", "operator"}, [&] { world.allreduce(std::span(data), op); });
    ctx.throws(status::bad_type, {"allreduce"}, [&] { (void)world.allreduce(1.0, op); });
    ctx.throws(status::bad_type, {"scan"}, [&] { world.scan(std::span(data), op); });
    ctx.throws(status::bad_type, {"exscan"}, [&] { (void)world.exscan(1, op); });
    ctx.check(data == std::vector<int>(5, 1), "a refused collective wrote");
  }
  const int odd_one = ctx.size() / 2;
  for (const bool scans : {false, true}) {
    if (ctx.size() == 1) break;
    const bool mine = ctx.rank() == odd_one;
    const auto op = mine ? static_cast<rma::operation>(77) : rma::operation::sum;
    const auto collective = [&] { (void)(scans ? world.scan(1, op) : world.allreduce(1, op)); };
    if (!scans || ctx.rank() >= odd_one) {
      ctx.throws(status::bad_type, {scans ? "scan" : "allreduce"}, collective);
      continue;
    }
    try {  // members before the odd one may have sent and returned
      collective();
    } catch (const rma::Error& e) {
      ctx.check(e.code() == status::bad_type, e.what());
    }
  }
  ctx.equal(world.allreduce(1, rma::sum), ctx.size(), "allreduce after refused ones");
  ctx.throws(status::bad_rank, {"broadcast"}, [&] { world.broadcast(std::span<int>(), -1); });
  ctx.throws(status::bad_rank, {"broadcast"}, [&] { world.broadcast(std::span<int>(), ctx.size()); });
}

// Goal: a bit that is no assertion is refused by each call that takes assertions, before it has done anything.
void assertions(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8, {.name = "promises"});
  const auto unknown = static_cast<rma::assertion>(0x80);
  const auto both = unknown | rma::no_put;
  const int group[] = {ctx.right()};
  for (const rma::assertion a : {unknown, both}) {
    ctx.expect(win->try_fence(a), status::bad_argument, "fence");
    ctx.expect(win->lock_nothrow(rma::shared, ctx.right(), a), status::bad_argument, "lock");
    ctx.expect(win->lock_all_nothrow(a), status::bad_argument, "lock_all");
    ctx.expect(win->try_post(group, a), status::bad_argument, "post");
    ctx.expect(win->try_start(group, a), status::bad_argument, "start");
    ctx.throws(status::bad_argument, {"fence", "promises", "assertion"}, [&] { (void)win->ifence(a); });
    ctx.throws(status::bad_argument, {"lock", "promises", "assertion"},
               [&] { (void)win->lock(rma::exclusive, ctx.right(), a); });
    ctx.throws(status::bad_argument, {"lock_all", "assertion"}, [&] { (void)win->lock_all(a); });
    ctx.throws(status::bad_argument, {"post", "assertion"}, [&] { win->post(group, a); });
    ctx.throws(status::bad_argument, {"start", "assertion"}, [&] { win->start(group, a); });
  }
  win->neighbors(group, std::array{ctx.left()});
  ctx.expect(win->try_fence_neighbors(unknown), status::bad_argument, "fence_neighbors");
  ctx.expect(win->try_unlock(ctx.right()), status::not_locked, "unlock after refused locks");
  win->fence(rma::no_store | rma::no_put | rma::no_precede);
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: waits refuse a rank to wait for that is none; -1 alone means any. Break: take every negative number for any.
void ranks_to_wait_for(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8, {.name = "mailbox"});
  const std::array<unsigned, 1> signals{0};
  const auto any = [](std::uint64_t) { return true; };
  for (const int from : {-2, -77, ctx.size(), std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    std::uint64_t value = 0;
    std::size_t which = 0;
    ctx.expect(win->wait_signal_nothrow(0, 0, from), status::bad_rank, "wait_signal");
    ctx.expect(win->wait_any_signal_nothrow(signals, which, 0, from), status::bad_rank, "wait_any_signal");
    ctx.expect(win->wait_until_nothrow(win.at(ctx.rank(), 0), any, value, from), status::bad_rank, "wait_until");
    ctx.throws(status::bad_rank, {"wait_until", "mailbox", "rank " + std::to_string(from) + " is not in the team"},
               [&] { (void)win->wait_until(win.at(ctx.rank(), 0), any, from); });
    ctx.throws(status::bad_rank, {"wait_signal", "mailbox"}, [&] { win->wait_signal(0, 0, from); });
    ctx.expect(win->try_flush(from), status::bad_rank, "flush");
    ctx.expect(win->try_flush_local(from), status::bad_rank, "flush_local");
    ctx.expect(win->try_unlock(from), status::bad_rank, "unlock");
    ctx.throws(status::bad_rank, {"flush"}, [&] { (void)win->iflush(from); });
    ctx.throws(status::bad_rank, {"unlock"}, [&] { (void)win->iunlock(from); });
    ctx.throws(status::bad_rank, {"lock"}, [&] { (void)win->ilock(rma::shared, from); });
    ctx.expect(win->lock_range_nothrow(rma::shared, from, 0, 8), status::bad_rank, "lock_range");
    ctx.expect(win->try_unlock_range(from, 0, 8), status::not_locked, "unlock_range");
    ctx.check(!win->one_sided(rma::call::put, from), "one_sided");
    ctx.check(win->locking(from) == rma::lock_protocol::automatic, "locking");
    ctx.throws(status::bad_rank, {"neighbors"}, [&] { win->neighbors(std::array{from}, {}); });
    ctx.throws(status::bad_rank, {"shares_memory"}, [&] { (void)ctx.world().shares_memory(from); });
    ctx.equal(ctx.runtime().route(from), std::string("no such rank"), "route");
  }
  win->wait_signal(0, 0, -1);
  win.free();
}

// Goal: hints that are none of their enumeration make no window, on any rank.
void hints(context& ctx) {
  const auto refused = [&](const rma::Hints& of) {
    ctx.throws(status::bad_argument, {"allocate", "hint"},
               [&] { (void)rma::Window<std::uint64_t>::allocate(ctx.world(), 8, of); });
  };
  refused({.accumulate = static_cast<rma::accumulate_mode>(77)});
  refused({.lock = static_cast<rma::lock_protocol>(77)});
  rma::LockChoice scheme, home, policy;
  scheme.scheme = static_cast<rma::lock_scheme>(77);
  home.home = static_cast<rma::lock_home>(77);
  policy.policy = static_cast<rma::lock_policy>(77);
  for (const rma::LockChoice& each : {scheme, home, policy}) refused({.lock = each});
  ctx.throws(status::bad_argument, {"Hints::lock", "'hybrid:thresh' is no lock", "threshold:K"},
             [] { (void)rma::Hints{.lock = "hybrid:thresh"}; });
  refused({.fence = static_cast<rma::fence_kind>(77)});
}

constexpr test_case number_table[] = {
    {"number.operators_and_elements", operators_and_elements, each_kind},
    {"number.operators_of_typed_windows", operators_of_typed_windows, each_kind},
    {"number.operators_of_collectives", operators_of_collectives},
    {"number.assertions", assertions, each_kind},
    {"number.ranks_to_wait_for", ranks_to_wait_for, each_kind},
    {"number.hints", hints},
};

}  // namespace

std::span<const test_case> number_cases() noexcept { return number_table; }

}  // namespace conformance
