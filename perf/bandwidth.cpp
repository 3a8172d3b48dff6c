// SPDX-License-Identifier: Apache-2.0
// Puts and gets of 8 bytes (rate) to 1 MiB (bandwidth), memcpy into the same memory as the machine's limit, and
// accumulates of 64 KiB. Rank 0 works on rank 1, which sits in a barrier.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench.hpp"
#include "plan.hpp"

namespace {

using window = rma::Window<std::uint64_t>;
constexpr int target = 1;
constexpr std::size_t word = sizeof(std::uint64_t);

/// One iteration is what lies between two flushes.
perf::point point_of(const char* metric, std::size_t bytes) {
  const auto batch = static_cast<double>(perf::operations_per_flush(bytes));
  if (bytes == word) return {std::string(metric) + "_rate", bytes, perf::unit::mops, batch};
  return {metric, bytes, perf::unit::gbs, batch};
}

// The work between two flushes. It takes arguments by value, as the loops of a program have them: values captured by
// reference would be read again after every store.

void put_batch(window& win, std::span<const std::uint64_t> from, std::size_t words, std::size_t batch) {
  for (std::size_t k = 0; k < batch; ++k) {
    if (words == 1) {
      win.put(from[k], target, k);
    } else {
      win.put(from.subspan(k * words, words), target, k * words);
    }
  }
  win.flush(target);
}

// A value is waited for, which is a load within a node. Between nodes programs that want many get them into memory.
void get_batch(window& win, std::span<std::uint64_t> to, std::size_t words, std::size_t batch, bool values) {
  for (std::size_t k = 0; k < batch; ++k) {
    if (words == 1 && values) {
      to[k] = win.get(target, k);
    } else {
      win.get(to.subspan(k * words, words), target, k * words);
    }
  }
  win.flush(target);
}

void put(perf::bench& b, window& win, std::size_t bytes, std::span<const std::uint64_t> from) {
  b.points.origin(point_of("put", bytes), [&](std::uint64_t n) {
    for (; n > 0; --n) put_batch(win, from, bytes / word, perf::operations_per_flush(bytes));
  });
}

void get(perf::bench& b, window& win, std::size_t bytes, std::span<std::uint64_t> to) {
  const bool values = b.world.one_node();
  b.points.origin(point_of("get", bytes), [&](std::uint64_t n) {
    for (; n > 0; --n) get_batch(win, to, bytes / word, perf::operations_per_flush(bytes), values);
  });
}

/// The limit: plain copies into and out of the target's mapped memory, in the same order.
void copy(perf::bench& b, std::uint64_t* mapped, std::size_t bytes, std::span<std::uint64_t> mine) {
  const std::size_t words = bytes / word;
  const std::size_t batch = perf::operations_per_flush(bytes);
  const auto points_of = [&](bool out) {
    return [&, out](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < batch; ++k) {
          std::uint64_t* const there = mapped + k * words;
          std::uint64_t* const here = mine.data() + k * words;
          std::memcpy(out ? there : here, out ? here : there, bytes);
          perf::keep(there);
        }
      }
    };
  };
  b.points.origin(point_of("memcpy_put", bytes), points_of(true));
  b.points.origin(point_of("memcpy_get", bytes), points_of(false));
}

void contiguous(perf::bench& b) {
  auto win = window::allocate(b.world, perf::size_bytes_max / word);
  std::vector<std::uint64_t> from(perf::size_bytes_max / word);
  std::iota(from.begin(), from.end(), 1);
  std::vector<std::uint64_t> to(from.size());
  for (const std::size_t bytes : perf::sizes_bytes) {
    std::optional<rma::Epoch> epoch;
    if (b.first()) epoch.emplace(win.lock_all());
    put(b, win, bytes, from);
    get(b, win, bytes, to);
    const std::size_t words = bytes / word * perf::operations_per_flush(bytes);
    if (b.first() && b.points.wants("put.*|get.*", bytes)) {
      win.put(std::span<const std::uint64_t>(from).first(words), target, 0);
      win.flush(target);
      std::fill(to.begin(), to.end(), 0);
      win.get(std::span(to).first(words), target, 0);
      win.flush(target);
      perf::require(std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(words), to.begin()),
                    "put, get");
    }
    if (b.world.one_node()) copy(b, win.pointer_to(target), bytes, to);
  }
  b.world.barrier();
  win.free();
}

/// `passive`: rank 0 holds the target's lock of this kind.
template <class T>
void accumulate(perf::bench& b, const std::string& metric, rma::lock_kind passive) {
  constexpr std::size_t count = 64 * perf::kibibyte / sizeof(T);
  auto win = rma::Window<T>::allocate(b.world, count);
  const std::vector<T> ones(count, T{1});
  std::uint64_t added = 0;
  std::optional<rma::Epoch> epoch;
  if (b.first()) epoch.emplace(win.lock(passive, target));
  b.points.origin({metric, count * sizeof(T), perf::unit::gbs}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      win.accumulate(ones, target, 0, rma::sum);
      win.flush(target);
    }
    added += n;
  });
  if (b.first()) {
    std::vector<T> sums(count);
    win.get(std::span<T>(sums), target, 0);
    win.flush(target);
    perf::require(std::count(sums.begin(), sums.end(), static_cast<T>(added)) == static_cast<std::ptrdiff_t>(count),
                  metric);
    epoch->unlock();
  }
  b.world.barrier();
  win.free();
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "bandwidth of put, get and accumulate", 2, [](perf::bench& b) {
    contiguous(b);
    accumulate<double>(b, "accumulate_double", rma::shared);
    accumulate<double>(b, "accumulate_double_exclusive", rma::exclusive);
    accumulate<std::int64_t>(b, "accumulate_int64", rma::shared);
    accumulate<std::int64_t>(b, "accumulate_int64_exclusive", rma::exclusive);
  });
}
