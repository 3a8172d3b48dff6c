// SPDX-License-Identifier: Apache-2.0
// far_instructions N: rank 0 calls each wrapper below N times on memory of rank 1 that it does not map, for
// tests/perf/instructions.py. A wrapper does not wait for what it starts: that is done outside of it, every few calls.
// Before each `phase_...` the profile is written and begun anew, so that the handlers of each operation's messages are
// counted apart. Times mean nothing here.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <rma/rma.hpp>

namespace {

using window = rma::Window<std::uint64_t>;
constexpr int target = 1;
constexpr std::uint64_t at_once = 8;  // calls between two waits

}  // namespace

// Outside the namespace and with C names: callgrind reports them by these.
extern "C" {

[[gnu::noinline]] void count_far_put(window& win, const std::uint64_t& from, std::uint64_t at) {
  win.put(std::span(&from, 1), target, at);
}

[[gnu::noinline]] void count_far_put_value(window& win, std::uint64_t value, std::uint64_t at) {
  win.put(value, target, at);
}

[[gnu::noinline]] void count_far_get(window& win, std::uint64_t& into, std::uint64_t at) {
  win.get(std::span(&into, 1), target, at);
}

[[gnu::noinline]] rma::Request count_far_fetch_and_op(window& win, std::uint64_t& old) {
  return win.rfetch_and_op(1, old, target, 0, rma::sum);
}

[[gnu::noinline]] void count_far_accumulate(window& win, std::uint64_t value, std::uint64_t at) {
  win.accumulate(value, target, at, rma::sum);
}

[[gnu::noinline]] void phase_start() { asm volatile(""); }
[[gnu::noinline]] void phase_put() { asm volatile(""); }
[[gnu::noinline]] void phase_put_value() { asm volatile(""); }
[[gnu::noinline]] void phase_get() { asm volatile(""); }
[[gnu::noinline]] void phase_fetch_and_op() { asm volatile(""); }
[[gnu::noinline]] void phase_accumulate() { asm volatile(""); }

}  // extern "C"

namespace {

/// Both ranks pass the end of a phase when rank 0 has seen all of it complete, and before any call of the next one.
template <class Call, class Done>
void phase(rma::Runtime& runtime, std::uint64_t calls, Call&& call, Done&& done, void (*end)()) {
  for (std::uint64_t i = 0; runtime.rank() == 0 && i < calls; i += at_once) {
    for (std::uint64_t k = i; k < i + at_once; ++k) call(k);
    done();
  }
  runtime.world().barrier();
  end();
  runtime.world().barrier();
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime runtime(argc, argv);
  const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  auto win = window::allocate(runtime.world(), 64);
  std::array<std::uint64_t, at_once> found{};
  std::array<rma::Request, at_once> requests;
  std::uint64_t wrong = 0;
  auto epoch = win.lock_all();
  const auto flush = [&] { win.flush(target); };
  std::array<std::uint64_t, at_once> mine{};
  for (std::uint64_t k = 0; k < at_once; ++k) mine[k] = k;
  const auto put = [&](std::uint64_t k) { count_far_put(win, mine[k % at_once], k % at_once); };
  const auto put_value = [&](std::uint64_t k) { count_far_put_value(win, k, k % at_once); };
  const auto get = [&](std::uint64_t k) { count_far_get(win, found[k % at_once], k % at_once); };
  const auto compare = [&] {
    win.flush(target);
    for (std::uint64_t k = 0; k < at_once; ++k) wrong += found[k] % at_once == k ? 0 : 1;
  };
  const auto fetch = [&](std::uint64_t k) { requests[k % at_once] = count_far_fetch_and_op(win, found[k % at_once]); };
  const auto wait = [&] {
    for (rma::Request& each : requests) each.wait();
  };
  const auto accumulate = [&](std::uint64_t k) { count_far_accumulate(win, 1, k % at_once); };
  phase(runtime, at_once, put, flush, phase_start);
  phase(runtime, calls, put, flush, phase_put);
  phase(runtime, calls, put_value, flush, phase_put_value);
  phase(runtime, calls, get, compare, phase_get);
  if (runtime.rank() == 0) {
    win.put(0, target, 0);
    win.flush(target);
  }
  phase(runtime, calls, fetch, wait, phase_fetch_and_op);
  phase(runtime, calls, accumulate, flush, phase_accumulate);
  epoch.unlock();
  runtime.world().barrier();
  if (runtime.rank() == target) wrong += win[0] == calls + calls / at_once ? 0 : 1;
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
