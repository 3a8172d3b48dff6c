// SPDX-License-Identifier: Apache-2.0
// Requests: the end of single operations.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using words = std::span<const std::uint64_t>;

// Goal: each request form does what its plain form does; after wait the origin's buffers are free and results there.
void each_form(context& ctx) {
  constexpr std::size_t count = 3000;
  test_window<std::uint64_t> win(ctx, count);
  const int to = ctx.right();
  std::vector<std::uint64_t> buffer(count);
  std::vector<std::uint64_t> result(count);
  const auto here = rma::Layout::contiguous<std::uint64_t>(count);
  {
    const auto hold = win->lock(rma::exclusive, to);
    fill_tagged(std::span(buffer), ctx.rank());
    win->rput(words(buffer), to, win.at(to, 0)).wait();
    std::ranges::fill(buffer, 1);
    win->flush(to);
    win->rget(std::span(result), to, win.at(to, 0)).wait();
    ctx.equal(first_untagged(words(result), ctx.rank()), count, "rput and rget");
    win->raccumulate(words(buffer), to, win.at(to, 0), rma::sum).wait();
    std::ranges::fill(buffer, 5);
    win->rget_accumulate(words(buffer), std::span(result), to, win.at(to, 0), rma::replace).wait();
    bool added = true;
    for (std::size_t i = 0; i < count; ++i) added = added && result[i] == tagged<std::uint64_t>(ctx.rank(), i) + 1;
    ctx.check(added, "raccumulate and rget_accumulate");
    std::uint64_t old = 0;
    win->rfetch_and_op(std::uint64_t{2}, old, to, win.at(to, 9), rma::sum).wait();
    ctx.equal(old, std::uint64_t{5}, "old value of rfetch_and_op");
    win->flush(to);
    win->rget(result.data(), here, to, win.at(to, 0), here).wait();
    ctx.equal(result[9], std::uint64_t{7}, "result of rfetch_and_op");
    win->rput(buffer.data(), here, to, win.at(to, 0), here).wait();
    win->flush(to);  // a put and an update have no order of their own
    std::ranges::fill(buffer, 3);
    const auto odd = rma::Layout::vector<std::uint64_t>(count / 2, 1, 2);
    win->raccumulate(buffer.data(), odd, to, win.at(to, 1), odd, rma::sum).wait();
    std::ranges::fill(buffer, 9);
    win->flush(to);
    win->rget(std::span(result), to, win.at(to, 0)).wait();
    ctx.check(result[0] == 5 && result[1] == 8 && result[2] == 5 && result[count - 1] == 8, "raccumulate by layouts");
  }
  ctx.world().barrier();
  win.free();
}

// Goal: test turns true and stays true; a finished, an empty and a moved-from request are done.
void test_until_done(context& ctx) {
  constexpr std::size_t count = 100000;
  test_window<std::uint64_t> win(ctx, count);
  fill_tagged(win.local(), ctx.rank());
  ctx.world().barrier();
  const int to = ctx.right();
  std::vector<std::uint64_t> result(count);
  {
    const auto hold = win->lock(rma::shared, to);
    rma::Request request = win->rget(std::span(result), to, win.at(to, 0));
    ctx.wait_until([&] { return request.test(); });
    ctx.check(request.test() && !request.pending(), "a finished request is not done");
    ctx.equal(first_untagged(words(result), to), count, "first wrong element of rget");
    request.wait();
    rma::Request empty;
    ctx.check(empty.test() && !empty.pending(), "an empty request is not done");
    rma::Request first = win->rget(std::span(result), to, win.at(to, 0));
    rma::Request second = std::move(first);
    ctx.check(first.test(), "a moved-from request is not done");  // NOLINT: that is what is tested
    second.wait();
    ctx.expect(second.wait_nothrow(), rma::status::done, "wait_nothrow of a finished request");
    ctx.expect(second.try_test(), rma::status::done, "try_test of a finished request");
  }
  ctx.world().barrier();
  win.free();
}

// Goal: wait_any and test_any name each request once, also those that had ended at once, but not those that were waited
// for; then there is none left and all results are in place. Break: let a request that had ended at once be no news.
void wait_any_names_each_once(context& ctx) {
  constexpr std::size_t count = 40;
  constexpr std::size_t each = 700;
  test_window<std::uint64_t> win(ctx, count * each);
  fill_tagged(win.local(), ctx.rank());
  ctx.world().barrier();
  std::vector<std::uint64_t> result(count * each);
  std::vector<rma::Request> requests(count);
  std::vector<int> named(count, 0);
  {
    const auto hold = win->lock_all();
    for (std::size_t i = 0; i < count; ++i) {
      requests[i] = win->rget(std::span(result).subspan(i * each, each), ctx.right(), win.at(ctx.right(), i * each));
    }
    requests[3].wait();
    named[3] += 1;
    for (std::size_t i = rma::wait_any(requests); i < count; i = rma::wait_any(requests)) {
      if (++named[i] > 1) break;
      if (const auto other = rma::test_any(requests)) named[*other] += 1;
    }
    ctx.check(!rma::test_any(requests), "test_any names one that was named");
  }
  ctx.check(std::ranges::all_of(named, [](int n) { return n == 1; }), "wait_any did not name each request once");
  ctx.equal(rma::wait_any(std::span(requests).first(0)), std::size_t{0}, "wait_any of nothing");
  ctx.check(std::ranges::none_of(requests, [](const rma::Request& r) { return r.pending(); }), "a request is pending");
  ctx.equal(first_untagged(words(result), ctx.right()), result.size(), "first wrong element");
  ctx.world().barrier();
  win.free();
}

// Goal: wait_all and test_all end all; a mixture with empty ones is fine.
void wait_all_and_test_all(context& ctx) {
  constexpr std::size_t count = 200;
  test_window<std::uint64_t> win(ctx, count * static_cast<std::size_t>(ctx.size()));
  const std::size_t first = count * static_cast<std::size_t>(ctx.rank());
  std::vector<std::uint64_t> values(count);
  std::vector<rma::Request> requests(2 * count);
  {
    const auto hold = win->lock_all();
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = tagged<std::uint64_t>(ctx.rank(), i);
      requests[2 * i] = win->rput(words(values).subspan(i, 1), 0, win.at(0, first + i));
    }
    rma::wait_all(requests);
    std::ranges::fill(values, 0);
    for (std::size_t i = 0; i < count; ++i) {
      requests[2 * i] = win->rput(words(values).subspan(i, 1), ctx.right(), win.at(ctx.right(), first + i));
    }
    ctx.wait_until([&] { return rma::test_all(requests); });
    ctx.expect(rma::wait_all_nothrow(requests), rma::status::done, "wait_all_nothrow of finished requests");
    rma::wait_all(std::span<rma::Request>());
    ctx.check(rma::test_all(std::span<rma::Request>()), "test_all of none");
  }
  ctx.world().barrier();
  if (ctx.rank() == 0 && ctx.size() > 1) {
    for (int r = 0; r < ctx.size(); ++r) {
      if (r == ctx.left()) continue;  // it wrote zeros here later
      const words part = words(win.local()).subspan(count * static_cast<std::size_t>(r), count);
      ctx.equal(first_untagged(part, r), count, "values of a rank");
    }
  }
  ctx.world().barrier();
  win.free();
}

// Goal: a request that is dropped does not stop its operation: flush completes it.
void dropped_requests(context& ctx) {
  constexpr std::size_t count = 500;
  test_window<std::uint64_t> win(ctx, count);
  std::vector<std::uint64_t> values(count);
  fill_tagged(std::span(values), ctx.rank());
  {
    const auto hold = win->lock(rma::shared, ctx.right());
    for (std::size_t i = 0; i < count; ++i) {
      (void)win->rput(words(values).subspan(i, 1), ctx.right(), win.at(ctx.right(), i));
    }
    win->flush(ctx.right());
  }
  ctx.world().barrier();
  ctx.equal(first_untagged(words(win.local()), ctx.left()), count, "puts whose requests were dropped");
  win.free();
}

// Goal: what a dropped request fetches is there after flush and flush_local, and after the epoch's end, whatever the
// operation. Break: forget an operation whose request is dropped, instead of letting the flush wait for it.
void dropped_fetches(context& ctx) {
  constexpr std::size_t count = 40;
  test_window<std::uint64_t> win(ctx, count);
  fill_tagged(win.local(), ctx.rank());
  ctx.world().barrier();
  const int to = ctx.right();
  std::vector<std::uint64_t> got(count), olds(count), old(count), seen(count);
  const auto drop_all = [&] {
    for (std::vector<std::uint64_t>* each : {&got, &olds, &old, &seen}) std::ranges::fill(*each, 0);
    (void)win->rget(std::span(got), to, win.at(to, 0));
    (void)win->rget_accumulate({}, std::span(olds), to, win.at(to, 0), rma::no_op);
    for (std::size_t i = 0; i < count; ++i) {
      (void)win->rfetch_and_op(0, old[i], to, win.at(to, i), rma::no_op);
      (void)win->rcompare_and_swap(0, 0, seen[i], to, win.at(to, i));
    }
  };
  const auto expect_all = [&](const std::string& after) {
    ctx.equal(first_untagged(words(got), to), count, "rget, dropped, after " + after);
    ctx.equal(first_untagged(words(olds), to), count, "rget_accumulate, dropped, after " + after);
    ctx.equal(first_untagged(words(old), to), count, "rfetch_and_op, dropped, after " + after);
    ctx.equal(first_untagged(words(seen), to), count, "rcompare_and_swap, dropped, after " + after);
  };
  for (std::size_t round = 0; round < ctx.rounds(20); ++round) {
    auto hold = win->lock(rma::shared, to);
    drop_all();
    win->flush(to);
    expect_all("flush");
    drop_all();
    win->flush_local_all();
    expect_all("flush_local_all");
    drop_all();
    hold.unlock();
    expect_all("unlock");
  }
  win->fence();
  drop_all();
  win->fence(rma::no_succeed);
  expect_all("fence");
  win.free();
}

// Goal: run-time types have request forms, too; their results are there when the requests are complete.
// Break: leave the type, the operator or a layout out of the arguments.
void of_untyped_windows(context& ctx) {
  auto win = rma::Window<std::byte>::allocate(ctx.world(), 128);
  const int to = ctx.right();
  const auto here = rma::Layout::contiguous<float>(4);
  const auto there = rma::Layout::vector<float>(4, 1, 3);
  const float ones[] = {1, 2, 3, 4};
  float old[4] = {};
  std::int32_t seen[3] = {-1, -1, -1};
  const std::int32_t five = 5, nine = 9, two = 2;
  const auto is_done = [&](rma::status s, rma::Request& request, const char* what) {
    ctx.check(rma::ok(s), what);
    request.wait();
  };
  {
    const auto hold = win.lock(rma::exclusive, to);
    rma::Request request;
    is_done(win.raccumulate_as(rma::element::f32, rma::sum, ones, here, to, 4, there, request), request, "raccumulate");
    win.flush(to);
    is_done(win.rget_accumulate_as(rma::element::f32, rma::prod, ones, here, old, here, to, 4, there, request), request,
            "rget_accumulate");
    ctx.check(std::ranges::equal(old, ones), "old values of rget_accumulate_as");
    is_done(win.rget_accumulate_as(rma::element::f32, rma::no_op, nullptr, here, old, here, to, 4, there, request),
            request, "rget_accumulate of no_op");
    for (int i = 0; i < 4; ++i) ctx.equal(old[i], ones[i] * ones[i], "a square");
    is_done(win.rfetch_and_op_as(rma::element::i32, rma::replace, &five, &seen[0], to, 96, request), request, "fetch");
    is_done(win.rcompare_and_swap_as(rma::element::i32, &nine, &two, &seen[1], to, 96, request), request, "no swap");
    is_done(win.rcompare_and_swap_as(rma::element::i32, &five, &nine, &seen[2], to, 96, request), request, "a swap");
    ctx.check(seen[0] == 0 && seen[1] == 5 && seen[2] == 5, "old values of single elements");
    std::int32_t last = 0;
    win.get(std::as_writable_bytes(std::span(&last, 1)), to, 96);
    win.flush(to);
    ctx.equal(last, nine, "the element after all");
    ctx.expect(win.rcompare_and_swap_as(rma::element::f32, &five, &nine, &last, to, 96, request), rma::status::bad_type,
               "a swap of floating point numbers");
    ctx.expect(win.rfetch_and_op_as(rma::element::i32, rma::sum, &five, &last, to, 98, request),
               rma::status::misaligned, "fetch at half an element");
    ctx.check(!request.pending(), "the request of a refused operation is pending");
  }
  win.free();
}

std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  }
  return 0;
}

constexpr std::size_t million_turns = 5;

bool is_got(std::size_t i) noexcept { return i % 4 == 3; }

/// `count` updates and gets of single words, all outstanding at once.
void outstanding(context& ctx, test_window<std::uint64_t>& win, std::span<std::uint64_t> values,
                 std::vector<rma::Request>& requests) {
  const int to = ctx.size() - 1;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (is_got(i)) {
      requests[i] = win->rget(values.subspan(i, 1), to, win.at(to, i));
    } else {
      requests[i] = win->raccumulate(words(values).subspan(i, 1), to, win.at(to, i), rma::operation::replace);
    }
  }
  rma::wait_all(requests);
  win->flush(to);
}

// Goal: 10^6 outstanding requests work, and their memory is used again by the next million.
// Method: rank 0 does it five times. The updates are outstanding each time; how many of the gets are depends on how
// fast the target is, and a network's library takes its pools in large pieces. So memory may grow at times, but what is
// not used again, 84 bytes for each request, grows every time: the turn with the least growth counts.
// Break: do not put finished nodes back.
void million_outstanding(context& ctx) {
  const bool all = ctx.size() <= 2 && (ctx.kind() == window_kind::allocated || ctx.kind() == window_kind::created);
  const std::size_t count = ctx.rounds(all ? 1000000 : 200000, 10000);
  test_window<std::uint64_t> win(ctx, ctx.rank() == ctx.size() - 1 ? count : 0);
  if (ctx.rank() == ctx.size() - 1) fill_tagged(win.local(), ctx.rank());
  ctx.world().barrier();
  if (ctx.rank() == 0) {
    std::vector<std::uint64_t> values(count);
    std::vector<rma::Request> requests(count);
    std::size_t before_kib = 0;
    std::size_t least_grown_kib = std::numeric_limits<std::size_t>::max();
    const auto hold = win->lock_all();
    for (std::size_t turn = 0; turn < million_turns; ++turn) {
      for (std::size_t i = 0; i < count; ++i) values[i] = is_got(i) ? 0 : tagged<std::uint64_t>(0, i, turn);
      outstanding(ctx, win, values, requests);
      const std::size_t now_kib = resident_kib();
      if (turn != 0) least_grown_kib = std::min(least_grown_kib, now_kib - std::min(now_kib, before_kib));
      before_kib = now_kib;
      bool right = true;
      for (std::size_t i = 3; i < count; i += 4) right = right && values[i] == tagged<std::uint64_t>(ctx.size() - 1, i);
      ctx.check(right, "gets of a million");
    }
    if (!ctx.threads() && !address_sanitizer) {  // which keeps what is freed
      ctx.check(least_grown_kib <= count * 64 / 1024,
                "memory grew by " + std::to_string(least_grown_kib) + " KiB or more each time");
    }
  }
  ctx.world().barrier();
  if (ctx.rank() == ctx.size() - 1) {
    bool right = true;
    for (std::size_t i = 0; i < count; i += 2)
      right = right && win.local()[i] == tagged<std::uint64_t>(0, i, million_turns - 1);
    ctx.check(right, "updates of a million");
  }
  win.free();
}

constexpr test_case request_table[] = {
    {"request.each_form", each_form, each_kind},
    {"request.test_until_done", test_until_done, each_kind},
    {"request.wait_any_names_each_once", wait_any_names_each_once, each_kind},
    {"request.wait_all_and_test_all", wait_all_and_test_all, each_kind},
    {"request.dropped_requests", dropped_requests, each_kind},
    {"request.dropped_fetches", dropped_fetches, each_kind},
    {"request.of_untyped_windows", of_untyped_windows},
    {"request.million_outstanding", million_outstanding, each_kind},
};

}  // namespace

std::span<const test_case> request_cases() noexcept { return request_table; }

}  // namespace conformance
