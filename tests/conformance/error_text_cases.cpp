// SPDX-License-Identifier: Apache-2.0
// The line of each refusal, as it is: a table of calls, and what the Error of each says behind its code.
// tests/tools/error_texts_test.py compares the table with the texts of src/api/raise.cpp.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

using rma::status;
using window = rma::Window<std::uint64_t>;

constexpr std::size_t text_elements = 100;
constexpr const char* unknown_kind = "a kind of lock that is neither rma::shared nor rma::exclusive";
constexpr const char* unknown_assertion =
    "an assertion with a bit that none of rma::no_store, no_put, no_precede, no_succeed, no_check and deferrable has";

/// The arguments of a refused_call: R stands for the number of the rank to the right, N for that of ranks.
struct stage {
  context& ctx;
  window& win;
  int to;
};

struct refused_call {
  status code;
  std::string text;
  void (*call)(stage&);
};

std::string filled_in(std::string text, const stage& s) {
  const std::pair<char, int> names[] = {{'R', s.to}, {'N', s.ctx.size()}, {'L', s.ctx.size() - 1}};
  for (const auto& [name, value] : names) {
    const std::string mark = std::string("<") + name + ">";
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark))
      text.replace(at, mark.size(), std::to_string(value));
  }
  return text;
}

void check_call(stage& s, const refused_call& r) {
  const std::string wanted = ": " + std::string(rma::name_of(r.code)) + ": " + filled_in(r.text, s);
  try {
    r.call(s);
    s.ctx.fail("nothing was thrown, instead of" + wanted);
  } catch (const rma::Error& e) {
    s.ctx.expect(e.code(), r.code, e.what());
    s.ctx.check(std::string(e.what()).ends_with(wanted), e.what() + std::string(" does not end with") + wanted);
  }
}

void check_calls(stage s, std::initializer_list<refused_call> rows) {
  for (const refused_call& r : rows) check_call(s, r);
}

constexpr auto put_one = [](stage& s) { s.win.put(1, s.to, 0); };
constexpr auto unknown_promise = static_cast<rma::assertion>(64);

// Goal: calls outside of an epoch.
void without_an_epoch(context& ctx) {
  auto win = window::allocate(ctx.world(), text_elements, {.name = "texts"});
  check_calls(
      {ctx, win, ctx.right()},
      {{status::wrong_epoch, "no epoch is open to rank <R>; call lock(<R>) first", put_one},
       {status::wrong_epoch, "no epoch of start() is open; call start() first", [](stage& s) { s.win.complete(); }},
       {status::wrong_epoch, "this rank has not posted; call post() first", [](stage& s) { s.win.wait(); }},
       {status::wrong_epoch, "this rank has not posted; call post() first", [](stage& s) { (void)s.win.test(); }},
       {status::wrong_epoch, "rank <R> is not locked; call lock(<R>) first", [](stage& s) { s.win.flush(s.to); }},
       {status::wrong_epoch, "no rank is locked; call lock_all() first", [](stage& s) { s.win.flush_all(); }},
       {status::not_locked, "rank <R> is not locked by this rank; lock() it first, and unlock once",
        [](stage& s) { s.win.unlock(s.to); }},
       {status::not_locked, "lock_all() is not open", [](stage& s) { s.win.unlock_all(); }},
       {status::bad_rank, "rank <N> is not in the team; its ranks are 0 to <L>",
        [](stage& s) { (void)s.win.lock(rma::shared, s.ctx.size()); }},
       {status::bad_argument, unknown_kind, [](stage& s) { (void)s.win.lock(static_cast<rma::lock_kind>(7), s.to); }},
       {status::bad_argument, unknown_assertion,
        [](stage& s) { (void)s.win.lock(rma::shared, s.to, unknown_promise); }},
       {status::bad_argument, unknown_assertion, [](stage& s) { (void)s.win.lock_all(unknown_promise); }},
       {status::bad_argument, unknown_assertion, [](stage& s) { s.win.fence(unknown_promise); }},
       {status::bad_argument, "it needs neighbors(), once before", [](stage& s) { s.win.fence_neighbors(); }},
       {status::bad_argument, "rank <R> is in the list twice",
        [](stage& s) {
          s.win.post(std::array{s.to, s.to});
        }},
       {status::bad_argument, "signal 99 is none of the window's, which has 16 (Hints::signals)",
        [](stage& s) { s.win.wait_signal(99); }},
       {status::not_supported, "only windows made by create_dynamic have ranges",
        [](stage& s) { (void)s.win.attach(s.win.local()); }}});
  win.neighbors(std::array{ctx.right()}, std::array{ctx.left()});
  check_calls({ctx, win, ctx.right()}, {{status::bad_argument, "a window's neighbors are given once", [](stage& s) {
                                           s.win.neighbors(std::array{s.ctx.right()}, std::array{s.ctx.left()});
                                         }}});
}

// Goal: places, sizes and types that an operation cannot have.
void of_operations(context& ctx) {
  auto win = window::allocate(ctx.world(), text_elements, {.name = "texts"});
  win.fence();
  (void)win.get(ctx.right(), 0);  // asks a rank of another node how large its part is
  check_calls(
      {ctx, win, ctx.right()},
      {{status::out_of_window, "1 element at displacement 4711 (unit 8 bytes); rank <R> has 100 elements",
        [](stage& s) { s.win.put(1, s.to, 4711); }},
       {status::out_of_window, "1 element at displacement -1, which is negative; a part begins at displacement 0",
        [](stage& s) { s.win.put(1, s.to, static_cast<std::size_t>(-1)); }},
       {status::bad_type,
        "operator minloc of u64: pairs (rma::ValueIndex) have minloc, maxloc, replace and no_op only, and no "
        "other type has minloc and maxloc",
        [](stage& s) {
          const std::array<std::uint64_t, 2> two{};
          s.win.accumulate(std::span<const std::uint64_t>(two), s.to, 0, rma::minloc);
        }},
       {status::out_of_window,
        "a layout of 16 bytes, over bytes 0 to 16 at displacement 99 (unit 8 bytes); rank <R> has 100 elements",
        [](stage& s) {
          const std::uint64_t two[2] = {};
          const auto both = rma::Layout::contiguous<std::uint64_t>(2);
          s.win.put(two, both, s.to, 99, both);
        }},
       {status::bad_size, "1152921504606846976 elements: that is more than memory can hold",
        [](stage& s) {
          std::uint64_t one = 0;
          s.win.put(std::span<const std::uint64_t>(&one, std::size_t{1} << 60), s.to, 0);
        }},
       {status::bad_size, "2 elements: the other side has another size",
        [](stage& s) {
          const std::array<std::uint64_t, 3> three{};
          std::array<std::uint64_t, 2> two{};
          s.win.get_accumulate(std::span<const std::uint64_t>(three), std::span(two), s.to, 0, rma::sum);
        }},
       {status::bad_rank, "rank <N> is not in the team; its ranks are 0 to <L>",
        [](stage& s) { s.win.put(1, s.ctx.size(), 0); }}});
  win.fence(rma::no_succeed);
  auto odd = window::allocate(ctx.world(), text_elements, {.name = "texts", .displacement_unit = 1});
  odd.fence();
  check_calls({ctx, odd, ctx.right()},
              {{status::misaligned,
                "displacement 1 is not a multiple of the element's size; atomic operations need natural alignment",
                [](stage& s) { s.win.accumulate(1, s.to, 1, rma::sum); }}});
  odd.fence(rma::no_succeed);
}

// Goal: what is asked for while another epoch is open.
void in_an_epoch(context& ctx) {
  auto win = window::allocate(ctx.world(), text_elements, {.name = "texts"});
  const std::string locked = "rank <R> is locked; call unlock(<R>) first";
  {
    const auto hold = win.lock(rma::exclusive, ctx.right());
    check_calls({ctx, win, ctx.right()},
                {{status::wrong_epoch, locked, [](stage& s) { s.win.fence(); }},
                 {status::wrong_epoch, locked, [](stage& s) { (void)s.win.lock(rma::shared, s.to); }},
                 {status::wrong_epoch, locked, [](stage& s) { (void)s.win.lock_all(); }},
                 {status::wrong_epoch, locked, [](stage& s) { s.win.post(std::array{s.ctx.left()}); }},
                 {status::wrong_epoch, locked, [](stage& s) { s.win.free(); }}});
  }
  {
    const auto hold = win.lock_all();
    check_calls({ctx, win, ctx.right()},
                {{status::wrong_epoch, "an epoch of lock_all() is open; call unlock_all() first",
                  [](stage& s) { (void)s.win.lock(rma::shared, s.to); }}});
  }
  {
    auto hold = win.lock_all();
    hold.unlock();
    try {
      hold.unlock();
      ctx.fail("an epoch was unlocked twice");
    } catch (const rma::Error& e) {
      ctx.check(std::string(e.what()).ends_with("this epoch was unlocked already; unlock once"), e.what());
    }
  }
  ctx.world().barrier();
}

// Goal: what is asked for in the epochs of active targets.
void in_an_active_epoch(context& ctx) {
  auto win = window::allocate(ctx.world(), text_elements, {.name = "texts"});
  win.fence();
  check_calls(
      {ctx, win, ctx.right()},
      {{status::wrong_epoch, "no epoch of start() is open; call start() first", [](stage& s) { s.win.complete(); }},
       {status::wrong_epoch, "a fence epoch is open, whose operations fence() completes; call fence() instead",
        [](stage& s) { s.win.flush(s.to); }}});
  win.fence(rma::no_succeed);
  win.post(std::array{ctx.left()});
  check_calls({ctx, win, ctx.right()},
              {{status::wrong_epoch, "this rank has posted; call wait() first",
                [](stage& s) { s.win.post(std::array{s.ctx.left()}); }},
               {status::wrong_epoch, "this rank has posted; call wait() first", [](stage& s) { s.win.fence(); }}});
  win.start(std::array{ctx.right()});
  check_calls({ctx, win, ctx.right()},
              {{status::wrong_epoch, "an epoch of start() is open; call complete() first",
                [](stage& s) { (void)s.win.lock_all(); }},
               {status::wrong_epoch,
                "an epoch of start() is open, whose operations complete() completes; call complete() instead",
                [](stage& s) { s.win.flush(s.to); }}});
  if (ctx.size() > 1) {
    check_calls({ctx, win, ctx.rank()},
                {{status::wrong_epoch, "the epoch of start() does not include rank <R>; add it to the list of start()",
                  put_one}});
  }
  win.complete();
  win.wait();
  win.neighbors(std::array{ctx.right()}, std::array{ctx.left()});
  win.fence_neighbors();
  check_calls(
      {ctx, win, ctx.right()},
      {{status::wrong_epoch, "an epoch of fence_neighbors() is open; call fence_neighbors(rma::no_succeed) first",
        [](stage& s) { (void)s.win.lock_all(); }},
       {status::wrong_epoch,
        "an epoch of fence_neighbors() is open, whose operations it completes; call fence_neighbors() instead",
        [](stage& s) { s.win.flush(s.to); }}});
  if (ctx.size() > 1) {
    check_calls(
        {ctx, win, ctx.rank()},
        {{status::wrong_epoch,
          "rank <R> is not a target of this rank's fence_neighbors(); add it to the list of neighbors()", put_one}});
  }
  win.fence_neighbors(rma::no_succeed);
}

// Goal: locks of ranges.
void of_ranges(context& ctx) {
  auto win = window::allocate(ctx.world(), text_elements, {.name = "texts"});
  win.fence();
  (void)win.get(ctx.right(), 0);  // asks a rank of another node how large its part is
  win.fence(rma::no_succeed);
  check_calls(
      {ctx, win, ctx.right()},
      {{status::bad_argument, "a range of no bytes", [](stage& s) { s.win.lock_range(rma::exclusive, s.to, 0, 0); }},
       {status::bad_argument, unknown_kind,
        [](stage& s) { s.win.lock_range(static_cast<rma::lock_kind>(7), s.to, 0, 8); }},
       {status::out_of_window, "8 bytes from byte 4000 on; rank <R> has 800 bytes",
        [](stage& s) { s.win.lock_range(rma::exclusive, s.to, 4000, 8); }},
       {status::not_locked,
        "8 bytes from byte 16 on are not a range of rank <R> that this rank has locked, or unlock(<R>) has "
        "ended its epoch before; locked there now: none",
        [](stage& s) { s.win.unlock_range(s.to, 16, 8); }}});
  win.lock_range(rma::exclusive, ctx.right(), 0, 8);
  check_calls({ctx, win, ctx.right()},
              {{status::wrong_epoch,
                "the range of 8 bytes from byte 0 on of rank <R> is locked; call unlock_range() for it first",
                [](stage& s) { s.win.lock_range(rma::exclusive, s.to, 0, 16); }}});
  win.unlock_range(ctx.right(), 0, 8);
  ctx.world().barrier();
}

// Goal: windows that are of no use any more.
void of_ended_windows(context& ctx) {
  auto win = window::allocate(ctx.world(), text_elements, {.name = "texts"});
  ctx.world().barrier();
  win.revoke();
  check_calls({ctx, win, ctx.right()},
              {{status::revoked, "a member has revoked it, or its team; shrink() the team, and make the window anew",
                [](stage& s) { s.win.fence(); }}});
  window freed;
  check_calls({ctx, freed, ctx.right()},
              {{status::window_freed, "the window was freed, moved from or never made; make it before", put_one}});
  auto failed = window::allocate(ctx.world(), text_elements);
  try {
    const auto hold = failed.lock(rma::shared, ctx.right());
    throw std::runtime_error("the program's own trouble");
  } catch (const std::runtime_error&) {}
  check_calls(
      {ctx, failed, ctx.right()},
      {{status::window_failed, "an exception has left the scope of an epoch of this rank; free the window", put_one}});
  ctx.world().barrier();
}

std::string hex_of(std::uint64_t address) {
  std::ostringstream text;
  text << std::hex << std::showbase << address;
  return text.str();
}

// Goal: what was never attached, and what was.
void of_dynamic_windows(context& ctx) {
  auto win = window::create_dynamic(ctx.world(), {.name = "texts"});
  check_calls({ctx, win, ctx.right()},
              {{status::bad_argument, "there is no memory in it",
                [](stage& s) { (void)s.win.attach(std::span<std::uint64_t>()); }},
               {status::out_of_window, "8 bytes from byte 18446744073709551612 on; rank <R> has no such address",
                [](stage& s) { s.win.lock_range(rma::exclusive, s.to, ~std::uint64_t{3}, 8); }},
               {status::out_of_window,
                "displacement 4096: of the 8 bytes from 0x1000 on, rank <R> has attached nothing there; a displacement "
                "is what its attach() has returned, plus bytes inside that range, or inside ranges that follow it "
                "without a gap",
                [](stage& s) {
                  const auto hold = s.win.lock(rma::shared, s.to);
                  s.win.put(1, s.to, 4096);
                }}});
  std::array<std::uint64_t, 4> memory{};
  const std::span<std::uint64_t> all(memory);
  const std::string at = hex_of(win.attach(all));
  const std::string second = hex_of(reinterpret_cast<std::uint64_t>(memory.data() + 1));
  std::array<std::uint64_t, 4> other{};
  const auto refused = [&](std::span<std::uint64_t> what, bool attaches, const std::string& wanted) {
    try {
      attaches ? void(win.attach(what)) : win.detach(what);
      ctx.fail("nothing was thrown, instead of " + wanted);
    } catch (const rma::Error& e) {
      ctx.expect(e.code(), status::bad_argument, e.what());
      ctx.check(std::string(e.what()).ends_with(": bad_argument: " + wanted), e.what());
    }
  };
  refused(all.subspan(1), true,
          "the 24 bytes from " + second + " on overlap the 32 bytes from " + at +
              " on, which are attached; detach those first");
  refused(
      all.subspan(1), false,
      "no attached range begins at " + second + "; the 32 bytes from " + at + " on are one, and detached as a whole");
  refused(other, false, "nothing is attached at " + hex_of(reinterpret_cast<std::uint64_t>(other.data())));
  win.detach(all);
  ctx.world().barrier();
}

constexpr test_case error_text_table[] = {
    {"error_text.without_an_epoch", without_an_epoch},
    {"error_text.of_operations", of_operations},
    {"error_text.in_an_active_epoch", in_an_active_epoch},
    {"error_text.in_an_epoch", in_an_epoch},
    {"error_text.of_ranges", of_ranges},
    {"error_text.of_ended_windows", of_ended_windows},
    {"error_text.of_dynamic_windows", of_dynamic_windows},
};

}  // namespace

std::span<const test_case> error_text_cases() noexcept { return error_text_table; }

}  // namespace conformance
