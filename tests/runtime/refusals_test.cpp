// SPDX-License-Identifier: Apache-2.0
// The text of each refusal of a call on a window: rank, call, window, place, status, what is wrong and what to do.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <complex>
#include <cstdint>
#include <functional>
#include <rma/rma.hpp>
#include <span>
#include <stdexcept>
#include <string>

namespace {

using rma::status;

rma::Config alone() { return {.environment = false, .boot = "alone"}; }

/// `call` must throw exactly "HEAD at FILE:LINE: REST".
void says(const std::string& head, const std::string& rest, const std::function<void()>& call) {
  CAPTURE(head, rest);
  try {
    call();
    FAIL("nothing was thrown");
  } catch (const rma::Error& e) {
    const std::string place = " at " + std::string(e.where().file_name()) + ":" + std::to_string(e.where().line());
    CHECK(e.what() == head + place + ": " + rest);
    CHECK(std::string(e.where().file_name()).ends_with("refusals_test.cpp"));
  }
}

class Refusals {
 public:
  Refusals() : rt(alone()), world(rt.world()), win(window::allocate(world, 10, {.name = "w"})) {}
  void on_w(const std::string& call, const std::string& rest, const std::function<void()>& run) const {
    says("[rank 0] " + call + " (window 'w')", rest, run);
  }

  using window = rma::Window<std::int64_t>;
  rma::Runtime rt;
  rma::Team world;
  window win;
};

TEST_CASE_METHOD(Refusals, "refusals of calls in the wrong epoch", "[errors]") {
  on_w("put to rank 0", "wrong_epoch: no epoch is open to rank 0; call lock(0) first", [&] { win.put(1, 0, 0); });
  on_w("complete", "wrong_epoch: no epoch of start() is open; call start() first", [&] { win.complete(); });
  on_w("wait", "wrong_epoch: this rank has not posted; call post() first", [&] { win.wait(); });
  on_w("flush to rank 0", "wrong_epoch: rank 0 is not locked; call lock(0) first", [&] { win.flush(0); });
  on_w("unlock to rank 0", "not_locked: rank 0 is not locked by this rank; lock() it first, and unlock once",
       [&] { win.unlock(0); });
  on_w("unlock_all", "not_locked: lock_all() is not open", [&] { win.unlock_all(); });
  const auto epoch = win.lock(rma::exclusive, 0);
  const std::string locked = "wrong_epoch: rank 0 is locked; call unlock(0) first";
  on_w("lock to rank 0", locked, [&] { (void)win.lock(rma::exclusive, 0); });
  on_w("fence", locked, [&] { win.fence(); });
  on_w("lock_all", locked, [&] { (void)win.lock_all(); });
  on_w("free", locked, [&] { win.free(); });
}

TEST_CASE_METHOD(Refusals, "a transfer beyond the end of an attached range", "[errors]") {
  auto dynamic = window::create_dynamic(world, {.name = "w"});
  std::array<std::int64_t, 4> memory{};
  const std::array<std::int64_t, 4> four{};
  const std::uint64_t at = dynamic.attach(std::span(memory));
  const auto hold = dynamic.lock(rma::shared, 0);
  const auto hex = [](std::uint64_t address) { return fmt::format("{:#x}", address); };
  on_w(
      "put to rank 0",
      "out_of_window: displacement " + std::to_string(at + 8) + ": of the 32 bytes from " + hex(at + 8) +
          " on, rank 0 has attached 32 bytes from " + hex(at) +
          " on, of which 24 are behind that place; a displacement is what its attach() has returned, plus bytes inside "
          "that range, or inside ranges that follow it without a gap",
      [&] { dynamic.put(std::span(four), 0, at + 8); });
}

TEST_CASE_METHOD(Refusals, "refusals of places, numbers and types", "[errors]") {
  const auto epoch = win.lock(rma::shared, 0);
  on_w("put to rank 0", "out_of_window: 1 element at displacement 10 (unit 8 bytes); rank 0 has 10 elements",
       [&] { win.put(1, 0, 10); });
  on_w("put to rank 1", "bad_rank: rank 1 is not in the team; its ranks are 0 to 0", [&] { win.put(1, 1, 0); });
  std::array<std::int64_t, 4> four{};
  const auto two = rma::Layout::contiguous<std::int64_t>(2), three = rma::Layout::contiguous<std::int64_t>(3);
  on_w("put to rank 0", "bad_size: a layout of 24 bytes: the other side has another size",
       [&] { win.put(four.data(), two, 0, 0, three); });
  const auto halves = rma::Layout::vector<std::int32_t>(2, 1, 2);
  on_w("accumulate to rank 0",
       "bad_type: the layout of 8 bytes has a piece that is no whole number of i64; make its blocks of whole elements",
       [&] { win.accumulate(four.data(), rma::Layout::contiguous<std::int64_t>(1), 0, 0, halves, rma::sum); });
  on_w("wait_signal", "bad_argument: signal 99 is none of the window's, which has 16 (Hints::signals)",
       [&] { win.wait_signal(99); });
  on_w("attach", "not_supported: only windows made by create_dynamic have ranges",
       [&] { (void)win.attach(std::span(four)); });
}

TEST_CASE_METHOD(Refusals, "refusals of operators name the one thing that is wrong", "[errors]") {
  auto reals = rma::Window<double>::allocate(world, 4, {.name = "w"});
  const auto epoch = reals.lock(rma::shared, 0);
  const std::array<double, 1> one{1};
  on_w("accumulate to rank 0",
       "bad_type: operator bxor needs integers, whose bits it combines, and f64 has none; use another operator, or "
       "another type",
       [&] { reals.accumulate(std::span(one), 0, 0, rma::operation::bxor); });
  auto complexes = rma::Window<std::complex<double>>::allocate(world, 4, {.name = "w"});
  const auto other = complexes.lock(rma::shared, 0);
  const std::array<std::complex<double>, 1> imaginary{};
  on_w("accumulate to rank 0",
       "bad_type: operator max needs an order of the values, and c64 has none; use another operator, or another type",
       [&] { complexes.accumulate(std::span(imaginary), 0, 0, rma::operation::max); });
}

TEST_CASE_METHOD(Refusals, "refusals of windows that are of no use any more", "[errors]") {
  try {
    const auto epoch = win.lock(rma::shared, 0);
    throw std::runtime_error("out of the epoch");
  } catch (const std::runtime_error&) {  // the scope was left by it
  }
  on_w("lock to rank 0", "window_failed: an exception has left the scope of an epoch of this rank; free the window",
       [&] { (void)win.lock(rma::shared, 0); });
  auto revoked = window::allocate(world, 1, {.name = "w"});
  revoked.revoke();
  on_w("fence", "revoked: a member has revoked it, or its team; shrink() the team, and make the window anew",
       [&] { revoked.fence(); });
  win.free();
  says("put", "window_freed: the window was freed, moved from or never made; make it before",
       [&] { win.put(1, 0, 0); });
  says("unlock", "window_freed: the window was freed, moved from or never made; make it before",
       [&] { win.unlock(0); });
}

TEST_CASE("a program whose headers do not fit the library gets one line", "[errors]") {
  rma::Config config = alone();
  config.headers = 9900;
  try {
    const rma::Runtime rt(config);
    FAIL("nothing was thrown");
  } catch (const rma::Error& e) {
    CHECK(e.code() == status::bad_setting);
    CHECK(std::string(e.what()).starts_with("the program was compiled with headers of rma 0.99.0 and runs with the"));
  }
}

}  // namespace

TEST_CASE_METHOD(Refusals, "refusals of ranks that a team has not", "[errors]") {
  const auto on_team = [](const std::string& call, int rank, const std::function<void()>& run) {
    says("[rank 0] " + call + " (team of 1 ranks)",
         "bad_rank: the team's ranks are 0 to 0: rank " + std::to_string(rank) + " is none of them", run);
  };
  std::array<int, 1> one{};
  on_team("broadcast", 3, [&] { world.broadcast(std::span(one), 3); });
  on_team("gather", -2, [&] { (void)world.gather(1, -2); });
  on_team("world_rank", 1, [&] { (void)world.world_rank(1); });
}
