// SPDX-License-Identifier: Apache-2.0
// Goal: no operation allocates memory once its kind has been used.
// Method: the program's malloc counts. Each kind runs some rounds first, then as many again, in which nothing may be
// taken from the heap by the calls themselves, their flushes, or the handlers that run meanwhile.
// Break: make a vector in run_handler.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "rma/rma.hpp"

namespace {

std::atomic<bool> counting{false};      // NOLINT: malloc has no argument for it
std::atomic<std::uint64_t> counted{0};  // NOLINT

void count_one() noexcept {
  if (!counting.load(std::memory_order_relaxed)) return;
  counted.fetch_add(1, std::memory_order_relaxed);
  if (std::getenv("ALLOCATIONS_ABORT") != nullptr) std::abort();  // where it is, says a debugger
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count_one();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  count_one();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  count_one();
  return __libc_realloc(old, bytes);
}
}

namespace {

using rma::Layout;
using rma::Request;
using word = std::uint64_t;

constexpr std::size_t words = 4096;
constexpr int rounds = 200;
/// Pools grow to the most that has been outstanding at once, which may be more in the second half than in the first: by
/// so many chunks at most, and by one for each thousandth operation where many are outstanding.
constexpr std::uint64_t growth_max = 10;
constexpr std::uint64_t operations_per_chunk = 1000;

struct test {
  rma::Runtime& rt;
  rma::Window<word>& win;
  int target;
  std::vector<word> buffer = std::vector<word>(words, 1);
  int failures = 0;

  /// Rank 0 calls; the others wait in a barrier, and serve it there. All count in the second half.
  void run(const char* name, const std::function<void()>& round, std::uint64_t operations = 1) {
    for (const bool counts : {false, true}) {
      rt.world().barrier();
      counting.store(counts);
      rt.world().barrier();
      if (rt.rank() == 0) {
        auto epoch = win.lock(rma::shared, target);
        for (int i = 0; i < rounds; ++i) round();
        epoch.unlock();
      }
      rt.world().barrier();
      counting.store(false);
    }
    const std::uint64_t mine = counted.exchange(0);
    if (mine < growth_max + rounds * operations / operations_per_chunk) return;
    ++failures;
    fmt::print("{}: {} allocations in {} rounds\n", name, mine, rounds);
  }
};

void run_kinds(test& t) {
  auto& win = t.win;
  const int to = t.target;
  const std::span<word> one(t.buffer.data(), 1), many(t.buffer.data(), 1024);
  const Layout rows = Layout::vector<word>(16, 2, 4);
  word old = 0;
  t.run("put", [&] { win.put(one, to, 0), win.flush(to); });
  t.run("put of a value", [&] { win.put(word{7}, to, 0), win.flush(to); });
  t.run("put of 8 KiB", [&] { win.put(many, to, 0), win.flush(to); });
  t.run(
      "puts in a stream",
      [&] {
        for (std::size_t i = 0; i < 500; ++i) win.put(word{i}, to, i);
        win.flush(to);
      },
      500);
  t.run("get", [&] { win.get(one, to, 0), win.flush(to); });
  t.run("get of 8 KiB", [&] { win.get(many, to, 0), win.flush(to); });
  t.run("accumulate", [&] { win.accumulate(one, to, 0, rma::sum), win.flush(to); });
  t.run("accumulate of 8 KiB", [&] { win.accumulate(many, to, 0, rma::sum), win.flush(to); });
  t.run("fetch_and_op", [&] { old = win.fetch_and_op(word{1}, to, 0, rma::sum); });
  t.run("compare_and_swap", [&] { old = win.compare_and_swap(old, word{1}, to, 0); });
  t.run("put of rows", [&] { win.put(t.buffer.data(), rows, to, 0, rows), win.flush(to); });
  t.run("get of rows", [&] { win.get(t.buffer.data(), rows, to, 0, rows), win.flush(to); });
  t.run("accumulate of rows", [&] { win.accumulate(t.buffer.data(), rows, to, 0, rows, rma::sum), win.flush(to); });
  t.run("put of rows and its request", [&] { win.rput(t.buffer.data(), rows, to, 0, rows).wait(); });
  t.run("put and its request", [&] { win.rput(one, to, 0).wait(); });
  t.run("get and its request", [&] { win.rget(one, to, 0).wait(); });
  t.run("fetch_and_op and its request", [&] { win.rfetch_and_op(word{1}, old, to, 0, rma::sum).wait(); });
}

/// How many kinds of operations have allocated.
int failures_of(rma::Runtime& rt) {
  std::vector<word> memory(words);
  auto allocated = rma::Window<word>::allocate(rt.world(), words);
  auto created = rma::Window<word>::create(rt.world(), memory);
  int failures = 0;
  for (auto* const win : {&allocated, &created}) {
    test t{rt, *win, rt.size() - 1};
    run_kinds(t);
    failures += t.failures;
  }
  allocated.free();
  created.free();
  return failures;
}

}  // namespace
