// SPDX-License-Identifier: Apache-2.0
// instructions N: calls each wrapper below N times on this rank's own window, for tests/perf/instructions.py, which
// counts under callgrind what one call executes, wrapper included. Times mean nothing here.
#include <cstdint>
#include <cstdlib>
#include <rma/rma.hpp>
#include <vector>

namespace {

using window = rma::Window<std::uint64_t>;
constexpr int self = 0;

}  // namespace

// Outside the namespace and with C names: callgrind reports them by these.
extern "C" {

[[gnu::noinline]] void count_put(window& win, std::uint64_t value, std::uint64_t at) { win.put(value, self, at); }

[[gnu::noinline]] std::uint64_t count_get(window& win, std::uint64_t at) { return win.get(self, at); }

[[gnu::noinline]] void count_put_rows(window& win, const std::uint64_t* from, const rma::Layout& rows) {
  win.put(from, rows, self, 0, rows);
}

[[gnu::noinline]] void count_flush(window& win) { win.flush(self); }

[[gnu::noinline]] std::uint64_t count_fetch_and_op(window& win, std::uint64_t value, std::uint64_t at) {
  return win.fetch_and_op(value, self, at, rma::sum);
}

[[gnu::noinline]] std::uint64_t count_compare_and_swap(window& win, std::uint64_t expected, std::uint64_t at) {
  return win.compare_and_swap(expected, expected + 1, self, at);
}

[[gnu::noinline]] void count_accumulate(window& win, std::uint64_t value, std::uint64_t at) {
  win.accumulate(value, self, at, rma::sum);
}

// 1024 updates with a layout that was made before.
[[gnu::noinline]] void count_accumulate_1024(window& win, const std::uint64_t* from, const rma::Layout& scattered) {
  win.accumulate(from, rma::Layout::contiguous<std::uint64_t>(1024), self, 0, scattered, rma::sum);
}

// 1024 words packed: planes of two rows of four words, and an index list.
[[gnu::noinline]] void count_pack_nested(window& win, const std::uint64_t* from, const rma::Layout& nested) {
  win.put(from, nested, self, 0, rma::Layout::contiguous<std::uint64_t>(1024));
}

[[gnu::noinline]] void count_pack_indexed(window& win, const std::uint64_t* from, const rma::Layout& scattered) {
  win.put(from, scattered, self, 0, rma::Layout::contiguous<std::uint64_t>(1024));
}

[[gnu::noinline]] bool count_lock_unlock(window& win) {
  return ok(win.lock_nothrow(rma::exclusive, self)) && ok(win.try_unlock(self));
}

[[gnu::noinline]] bool count_lock_unlock_shared(window& win) {
  return ok(win.lock_nothrow(rma::shared, self)) && ok(win.try_unlock(self));
}

// Two pairs, of which the second finds readers counted in the lock word.
[[gnu::noinline]] bool count_lock_unlock_mixed(window& win) {
  return ok(win.lock_nothrow(rma::exclusive, self)) && ok(win.try_unlock(self)) &&
         ok(win.lock_nothrow(rma::shared, self)) && ok(win.try_unlock(self));
}

// The epoch is used: the put takes the target's lock.
[[gnu::noinline]] void count_lock_all_put(window& win) {
  auto epoch = win.lock_all();
  win.put(0, self, 1);
}

// The scope asks twice whether an exception is in flight.
[[gnu::noinline]] void count_lock_scope(window& win) { auto epoch = win.lock(rma::exclusive, self); }

}  // extern "C"

namespace {

void count_scattered(rma::Runtime& runtime, std::uint64_t calls) {
  constexpr std::size_t updates = 1024;
  constexpr std::size_t words = std::size_t{1} << 16;
  auto table = window::allocate(runtime.world(), words);
  std::vector<std::ptrdiff_t> places(updates);
  for (std::size_t i = 0; i < updates; ++i) places[i] = static_cast<std::ptrdiff_t>(i * 40503 % words);
  const auto scattered = rma::Layout::indexed<std::uint64_t>(1, places);
  const std::vector<std::uint64_t> ones(updates, 1);
  const auto epoch = table.lock_all();
  for (std::uint64_t i = 0; i < calls; ++i) count_accumulate_1024(table, ones.data(), scattered);
  const std::vector<std::uint64_t> memory(words, 1);
  const auto plane = rma::Layout::resized(rma::Layout::vector<std::uint64_t>(2, 4, 16), 0, 64 * sizeof(std::uint64_t));
  const auto nested = rma::Layout::contiguous(128, plane);
  for (std::uint64_t i = 0; i < calls; ++i) count_pack_nested(table, memory.data(), nested);
  for (std::uint64_t i = 0; i < calls; ++i) count_pack_indexed(table, memory.data(), scattered);
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime runtime(argc, argv);
  const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  auto win = window::allocate(runtime.world(), 64);
  std::uint64_t sum = 0;
  {
    auto epoch = win.lock_all();
    for (std::uint64_t i = 0; i < calls; ++i) {
      count_put(win, i, i % 64);
      count_flush(win);
      sum += count_get(win, i % 64) - i;
    }
    const auto column = rma::Layout::vector<std::uint64_t>(8, 1, 8);
    const std::uint64_t matrix[64] = {};
    for (std::uint64_t i = 0; i < calls; ++i) count_put_rows(win, matrix, column);
    win.put(0, self, 0);
    for (std::uint64_t i = 0; i < calls; ++i) sum += count_fetch_and_op(win, 1, 0) - i;
    for (std::uint64_t i = 0; i < calls; ++i) count_accumulate(win, 1, 0);
    for (std::uint64_t i = 0; i < calls; ++i) sum += count_compare_and_swap(win, 2 * calls + i, 0) - 2 * calls - i;
  }
  count_scattered(runtime, calls);
  for (std::uint64_t i = 0; i < calls; ++i) sum += count_lock_unlock(win) ? 0 : 1;
  for (std::uint64_t i = 0; i < calls; ++i) count_lock_scope(win);
  for (std::uint64_t i = 0; i < calls; ++i) sum += count_lock_unlock_shared(win) ? 0 : 1;
  for (std::uint64_t i = 0; i < calls; ++i) count_lock_all_put(win);
  for (std::uint64_t i = 0; i < calls; ++i) sum += count_lock_unlock_mixed(win) ? 0 : 1;
  return sum == 0 && win[0] == 3 * calls ? EXIT_SUCCESS : EXIT_FAILURE;
}
