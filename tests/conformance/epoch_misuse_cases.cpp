// SPDX-License-Identifier: Apache-2.0
// Epochs opened, closed and used in the wrong order: each call is refused by name and changes nothing.
#include <cstdint>
#include <string>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::status;
using words = std::span<const std::uint64_t>;

/// Every kind of operation must give `wanted`.
void all_operations(context& ctx, test_window<std::uint64_t>& win, int to, status wanted, const std::string& when) {
  std::uint64_t value = 3;
  std::vector<std::uint64_t> two(2, 3);
  const words out(two);
  const auto layout = rma::Layout::contiguous<std::uint64_t>(2);
  const std::uint64_t at = win.at(to, 0);
  rma::Request request;
  ctx.expect(win->try_put(value, to, at), wanted, "put " + when);
  ctx.expect(win->try_get(value, to, at), wanted, "get " + when);
  ctx.expect(win->try_put(out, to, at), wanted, "range put " + when);
  ctx.expect(win->try_get(std::span(two), to, at), wanted, "range get " + when);
  ctx.expect(win->try_put(two.data(), layout, to, at, layout), wanted, "layout put " + when);
  ctx.expect(win->try_get(two.data(), layout, to, at, layout), wanted, "layout get " + when);
  ctx.expect(win->try_rput(out, to, at, request), wanted, "rput " + when);
  ctx.expect(win->try_rget(std::span(two), to, at, request), wanted, "rget " + when);
  ctx.expect(win->try_accumulate(value, to, at, rma::sum), wanted, "accumulate " + when);
  ctx.expect(win->try_accumulate(out, to, at, rma::sum), wanted, "range accumulate " + when);
  ctx.expect(win->try_get_accumulate(out, std::span(two), to, at, rma::sum), wanted, "get_accumulate " + when);
  ctx.expect(win->try_fetch_and_op(value, value, to, at, rma::sum), wanted, "fetch_and_op " + when);
  ctx.expect(win->try_compare_and_swap(value, value, value, to, at), wanted, "compare_and_swap " + when);
}

// Goal: a fresh window has no epoch: nothing is allowed; the message says what opens one.
void without_epoch(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8, {.name = "asleep"});
  all_operations(ctx, win, ctx.right(), status::wrong_epoch, "without an epoch");
  ctx.throws(status::wrong_epoch, {"put", "asleep", "no epoch is open", "call lock("},
             [&] { win->put(std::uint64_t{1}, ctx.right(), win.at(ctx.right(), 0)); });
  ctx.expect(win->try_flush(ctx.right()), status::wrong_epoch, "flush without an epoch");
  ctx.expect(win->try_flush_all(), status::wrong_epoch, "flush_all without an epoch");
  ctx.expect(win->try_flush_local(ctx.right()), status::wrong_epoch, "flush_local without an epoch");
  ctx.expect(win->try_flush_local_all(), status::wrong_epoch, "flush_local_all without an epoch");
  ctx.expect(win->try_complete(), status::wrong_epoch, "complete without start");
  ctx.expect(win->wait_nothrow(), status::wrong_epoch, "wait without post");
  ctx.expect(win->try_unlock(ctx.right()), status::not_locked, "unlock without lock");
  ctx.expect(win->try_unlock_all(), status::not_locked, "unlock_all without lock_all");
  ctx.throws(status::not_locked, {"unlock", "asleep", "rank " + std::to_string(ctx.right())},
             [&] { win->unlock(ctx.right()); });
  ctx.throws(status::wrong_epoch, {"complete", "asleep", "start"}, [&] { win->complete(); });
  ctx.throws(status::wrong_epoch, {"wait", "asleep", "post"}, [&] { win->wait(); });
  ctx.world().barrier();
  for (const std::uint64_t v : win.local()) ctx.equal(v, std::uint64_t{0}, "a refused operation wrote");
  win.free();
}

// Goal: under a lock only the locked target may be used, and no other epoch may be opened.
void under_a_lock(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8, {.name = "locked"});
  const int to = ctx.right();
  ctx.expect(win->lock_nothrow(rma::shared, to), status::done, "lock");
  if (ctx.size() > 1) all_operations(ctx, win, ctx.rank(), status::wrong_epoch, "to a target that is not locked");
  ctx.expect(win->lock_nothrow(rma::shared, to), status::wrong_epoch, "lock of a locked target");
  ctx.expect(win->lock_nothrow(rma::exclusive, to), status::wrong_epoch, "exclusive lock of a locked target");
  ctx.throws(status::wrong_epoch, {"lock", "locked", "rank " + std::to_string(to)},
             [&] { (void)win->lock(rma::shared, to); });
  ctx.expect(win->lock_all_nothrow(), status::wrong_epoch, "lock_all under a lock");
  ctx.expect(win->try_unlock_all(), status::not_locked, "unlock_all under a lock");
  ctx.expect(win->try_fence(), status::wrong_epoch, "fence under a lock");
  ctx.throws(status::wrong_epoch, {"fence", "locked", "unlock"}, [&] { win->fence(); });
  const int group[] = {to};
  ctx.expect(win->try_start(group), status::wrong_epoch, "start under a lock");
  ctx.throws(status::wrong_epoch, {"start", "locked"}, [&] { win->start(group); });
  ctx.check(win->has_open_epoch(), "an epoch is open under a lock");
  ctx.expect(win->try_free(), status::wrong_epoch, "free under a lock");
  if (ctx.size() > 1)
    ctx.expect(win->try_flush(ctx.rank()), status::wrong_epoch, "flush of a target that is not locked");
  win->put(std::uint64_t{9}, to, win.at(to, 1));
  ctx.expect(win->try_unlock(to), status::done, "unlock after misuse");
  ctx.expect(win->try_unlock(to), status::not_locked, "second unlock");
  ctx.world().barrier();
  ctx.equal(win.local()[1], std::uint64_t{9}, "put after misuse");
  win.free();
}

// Goal: under lock_all no other epoch may be opened, and unlock of one target is not its end.
void under_lock_all(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8);
  ctx.expect(win->lock_all_nothrow(), status::done, "lock_all");
  ctx.expect(win->lock_all_nothrow(), status::wrong_epoch, "second lock_all");
  ctx.expect(win->lock_nothrow(rma::shared, 0), status::wrong_epoch, "lock under lock_all");
  ctx.expect(win->try_unlock(0), status::not_locked, "unlock under lock_all");
  ctx.expect(win->try_fence(), status::wrong_epoch, "fence under lock_all");
  const int group[] = {ctx.right()};
  ctx.expect(win->try_start(group), status::wrong_epoch, "start under lock_all");
  ctx.check(win->has_open_epoch(), "an epoch is open under lock_all");
  ctx.expect(win->try_free(), status::wrong_epoch, "free under lock_all");
  win->put(std::uint64_t{4}, ctx.right(), win.at(ctx.right(), 3));
  ctx.expect(win->try_unlock_all(), status::done, "unlock_all after misuse");
  ctx.expect(win->try_unlock_all(), status::not_locked, "second unlock_all");
  ctx.world().barrier();
  ctx.equal(win.local()[3], std::uint64_t{4}, "put after misuse");
  win.free();
}

// Goal: between start and complete only the group may be used, and no other epoch of an origin may be opened.
void under_start(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8, {.name = "started"});
  const int left[] = {ctx.left()};
  const int right[] = {ctx.right()};
  win->post(left);
  win->start(right);
  for (int r = 0; r < ctx.size(); ++r) {
    if (r != ctx.right()) all_operations(ctx, win, r, status::wrong_epoch, "to a rank outside the group");
  }
  ctx.expect(win->try_start(right), status::wrong_epoch, "second start");
  ctx.expect(win->try_post(left), status::wrong_epoch, "second post");
  ctx.expect(win->try_fence(), status::wrong_epoch, "fence under start");
  ctx.expect(win->lock_nothrow(rma::shared, ctx.right()), status::wrong_epoch, "lock under start");
  ctx.expect(win->lock_all_nothrow(), status::wrong_epoch, "lock_all under start");
  ctx.check(win->has_open_epoch(), "an epoch is open under start");
  ctx.expect(win->try_free(), status::wrong_epoch, "free under start");
  ctx.throws(status::wrong_epoch, {"fence", "started", "complete"}, [&] { win->fence(); });
  win->put(std::uint64_t{6}, ctx.right(), win.at(ctx.right(), 2));
  win->complete();
  ctx.expect(win->try_complete(), status::wrong_epoch, "second complete");
  all_operations(ctx, win, ctx.right(), status::wrong_epoch, "after complete");
  win->wait();
  ctx.expect(win->wait_nothrow(), status::wrong_epoch, "second wait");
  ctx.equal(win.local()[2], std::uint64_t{6}, "put after misuse");
  win.free();
}

// Goal: between post and wait the window may not be fenced or freed.
void under_post(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8);
  const int left[] = {ctx.left()};
  const int right[] = {ctx.right()};
  win->post(left);
  ctx.expect(win->try_fence(), status::wrong_epoch, "fence under post");
  ctx.check(win->has_open_epoch(), "an epoch is open under post");
  ctx.expect(win->try_free(), status::wrong_epoch, "free under post");
  all_operations(ctx, win, ctx.right(), status::wrong_epoch, "under post alone");
  win->start(right);
  win->complete();
  win->wait();
  win.free();
}

// Goal: in fence epochs the calls of passive epochs are refused.
void between_fences(context& ctx) {
  test_window<std::uint64_t> win(ctx, 8);
  win->fence();
  ctx.expect(win->try_flush(ctx.right()), status::wrong_epoch, "flush between fences");
  ctx.expect(win->try_flush_all(), status::wrong_epoch, "flush_all between fences");
  ctx.expect(win->try_unlock(ctx.right()), status::not_locked, "unlock between fences");
  ctx.expect(win->try_complete(), status::wrong_epoch, "complete between fences");
  win->put(std::uint64_t{2}, ctx.right(), win.at(ctx.right(), 0));
  win->fence(rma::no_succeed);
  ctx.equal(win.local()[0], std::uint64_t{2}, "put after misuse");
  win.free();
}

/// Whether what operations in mapped memory leave behind is looked at.
bool checks(context& ctx) {
  for (const rma::Setting& s : ctx.runtime().settings()) {
    if (s.name == "RMA_CHECK") return s.value == "1";
  }
  return false;
}

// Goal: a fence epoch that was used is ended by fences alone: lock, lock_all, ilock, start, post and fences among
// neighbors say so, and a fence that was promised none of it. One that was not used ends where another epoch begins.
// Break: do not count operations among `fence_used`.
void used_fence_epochs(context& ctx) {
  if (!checks(ctx)) context::skip("RMA_CHECK=0: inlined operations leave no trace");
  test_window<std::uint64_t> win(ctx, 8, {.name = "used"});
  const int to = ctx.right();
  const int left[] = {ctx.left()};
  const int right[] = {to};
  win->neighbors(right, left);
  std::uint64_t value = 1;
  const auto in_epoch = [&](const std::string& after, const auto& operation) {
    win->fence();
    operation();
    ctx.expect(win->lock_nothrow(rma::shared, to), status::wrong_epoch, "lock after " + after);
    ctx.expect(win->lock_all_nothrow(), status::wrong_epoch, "lock_all after " + after);
    ctx.throws(status::wrong_epoch,
               {"lock", "used", "a fence epoch with operations is open; call fence(rma::no_succeed) first"},
               [&] { (void)win->ilock(rma::exclusive, to); });
    ctx.expect(win->try_post(left), status::wrong_epoch, "post after " + after);
    ctx.expect(win->try_start(right), status::wrong_epoch, "start after " + after);
    ctx.expect(win->try_fence_neighbors(), status::wrong_epoch, "fence_neighbors after " + after);
    ctx.throws(status::wrong_epoch, {"the epoch that this call has ended had operations; leave out rma::no_precede"},
               [&] { win->fence(rma::no_precede); });
    ctx.expect(win->try_fence(rma::no_precede), status::done, "fence(no_precede) after nothing");
    win->fence(rma::no_succeed);
  };
  in_epoch("a put", [&] { win->put(value, to, win.at(to, 1)); });
  in_epoch("a get", [&] { value = win->get(to, win.at(to, 1)); });
  in_epoch("a put of a range", [&] { win->put(words(&value, 1), to, win.at(to, 1)); });
  in_epoch("an accumulate", [&] { win->accumulate(value, to, win.at(to, 2), rma::sum); });
  in_epoch("a fetch_and_op", [&] { value = win->fetch_and_op(value, to, win.at(to, 2), rma::no_op); });
  win->fence();
  ctx.expect(win->lock_nothrow(rma::shared, to), status::done, "lock in a fence epoch that was not used");
  win->put(value, to, win.at(to, 3));
  win->unlock(to);
  ctx.world().barrier();
  win->fence(rma::no_precede);
  win->fence(rma::no_succeed);
  win.free();
}

/// Every call on a window that is no more.
void all_calls_refused(context& ctx, rma::Window<std::uint64_t>& win, const std::string& which) {
  const auto gone = status::window_freed;
  std::uint64_t value = 0;
  std::vector<std::uint64_t> two(2);
  const int group[] = {0};
  ctx.expect(win.try_put(value, 0, 0), gone, "put on " + which);
  ctx.expect(win.try_get(value, 0, 0), gone, "get on " + which);
  ctx.expect(win.try_put(words(two), 0, 0), gone, "range put on " + which);
  ctx.expect(win.try_get(std::span(two), 0, 0), gone, "range get on " + which);
  ctx.expect(win.try_accumulate(value, 0, 0, rma::sum), gone, "accumulate on " + which);
  ctx.expect(win.try_fetch_and_op(value, value, 0, 0, rma::sum), gone, "fetch_and_op on " + which);
  ctx.expect(win.try_compare_and_swap(value, value, value, 0, 0), gone, "compare_and_swap on " + which);
  ctx.expect(win.try_fence(), gone, "fence on " + which);
  ctx.expect(win.try_post(group), gone, "post on " + which);
  ctx.expect(win.try_start(group), gone, "start on " + which);
  ctx.expect(win.try_complete(), gone, "complete on " + which);
  ctx.expect(win.wait_nothrow(), gone, "wait on " + which);
  ctx.expect(win.lock_nothrow(rma::shared, 0), gone, "lock on " + which);
  ctx.expect(win.try_unlock(0), gone, "unlock on " + which);
  ctx.expect(win.lock_all_nothrow(), gone, "lock_all on " + which);
  ctx.expect(win.try_unlock_all(), gone, "unlock_all on " + which);
  ctx.expect(win.try_flush(0), gone, "flush on " + which);
  ctx.expect(win.try_flush_all(), gone, "flush_all on " + which);
  ctx.expect(win.try_sync(), gone, "sync on " + which);
  ctx.expect(win.wait_signal_nothrow(0), gone, "wait_signal on " + which);
  ctx.expect(win.try_free(), gone, "free on " + which);
  ctx.throws(gone, {"put"}, [&] { win.put(value, 0, 0); });
  ctx.throws(gone, {"fence"}, [&] { win.fence(); });
  ctx.throws(gone, {"attach"}, [&] { (void)win.attach(std::span(two)); });
  ctx.throws(gone, {"size"}, [&] { (void)win.size(0); });
  ctx.check(win.local().empty() && win.data() == nullptr && win.pointer_to(0) == nullptr, "memory of " + which);
}

// Goal: a freed, a moved-from and a never made window refuse everything and crash nothing.
void windows_that_are_no_more(context& ctx) {
  rma::Window<std::uint64_t> never;
  all_calls_refused(ctx, never, "a window that never was");
  test_window<std::uint64_t> win(ctx, 8);
  win->fence();
  win->fence(rma::no_succeed);
  win.free();
  all_calls_refused(ctx, *win, "a freed window");
  auto first = rma::Window<std::uint64_t>::allocate(ctx.world(), 4);
  const rma::Window<std::uint64_t> second = std::move(first);
  all_calls_refused(ctx, first, "a moved-from window");  // NOLINT: that is what is tested
  ctx.equal(second.size(), std::size_t{4}, "size after a move");
}

constexpr test_case epoch_misuse_table[] = {
    {"epoch_misuse.without_epoch", without_epoch, each_kind},
    {"epoch_misuse.under_a_lock", under_a_lock, each_kind},
    {"epoch_misuse.under_lock_all", under_lock_all, each_kind},
    {"epoch_misuse.under_start", under_start, each_kind},
    {"epoch_misuse.under_post", under_post, each_kind},
    {"epoch_misuse.between_fences", between_fences, each_kind},
    {"epoch_misuse.used_fence_epochs", used_fence_epochs, each_kind},
    {"epoch_misuse.windows_that_are_no_more", windows_that_are_no_more, each_kind},
};

}  // namespace

std::span<const test_case> epoch_misuse_cases() noexcept { return epoch_misuse_table; }

}  // namespace conformance
