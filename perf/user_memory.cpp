// SPDX-License-Identifier: Apache-2.0
// The basic operations on windows over the user's own memory (Window::create). The target, rank 1,
//   created_...    sits in the library (a barrier),
//   computing_...  computes and does not call the library (puts and gets only),
//   promoted_...   sits in the library, and its memory was promoted into shared pages,
//   allocated_...  sits in the library, and the window has memory of its own: what promoted_ is compared with, in the
//                  same loops (others are aligned differently, which shows in times of a few instructions).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bench.hpp"
#include "plan.hpp"

namespace {

using window = rma::Window<std::uint64_t>;
constexpr int target = 1;
constexpr std::size_t words = perf::matrix_rows * perf::matrix_columns * sizeof(int) / sizeof(std::uint64_t);
constexpr std::size_t large_words = 64 * perf::kibibyte / sizeof(std::uint64_t);
constexpr std::size_t stream_words = perf::stream_bytes / sizeof(std::uint64_t);
constexpr std::size_t page_words = perf::page_bytes / sizeof(std::uint64_t);
constexpr std::size_t as_allocated = 2048;  ///< where in its page the memory of an allocated window begins

/// One state of the target: how points are named and what the target does meanwhile.
class scene {
 public:
  scene(perf::bench& b, window& win, std::string prefix, window* flag)
      : b_(b), win_(win), prefix_(std::move(prefix)), flag_(flag) {}

  void put_get() {
    latency();
    bandwidth();
    strided();
  }
  void atomics() {
    std::uint64_t added = 0;
    if (b_.first()) {
      win_.put(added, target, 0);
      win_.flush(target);
    }
    point("fetch_and_op", 8, perf::unit::ns, 1, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) perf::keep(win_.fetch_and_op(1, target, 0, rma::sum));
      added += n;
    });
    if (b_.first()) perf::require(read(0) == added, "fetch_and_op");
  }

 private:
  void point(const char* name, std::size_t bytes, perf::unit in, double per_iteration, const perf::body& run) {
    const perf::point what{prefix_ + name, bytes, in, per_iteration};
    if (flag_ == nullptr) return b_.points.origin(what, run);
    ++turn_;
    b_.points.origin(
        what, run, [&] { compute(); }, [&] { release(); });
  }

  /// Computes, without a call of the library, until rank 0 says that it has measured.
  void compute() {
    const std::atomic_ref<std::uint64_t> turn((*flag_)[0]);
    double work = 1;
    while (turn.load(std::memory_order_acquire) != turn_) {
      for (int i = 0; i < 100; ++i) work = work * 0.999 + 1;
      perf::keep(work);
    }
  }
  void release() {
    auto epoch = flag_->lock(rma::shared, target);
    flag_->put(turn_, target, 0);
  }

  std::uint64_t read(std::size_t at) {
    std::uint64_t value = 0;
    win_.get(std::span(&value, 1), target, at);
    win_.flush(target);
    return value;
  }

  void latency() {
    std::uint64_t last = 0;
    if (b_.first()) {
      win_.put(last, target, 0);
      win_.flush(target);
    }
    point("put_flush", 8, perf::unit::ns, 1, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win_.put(i, target, 0);
        win_.flush(target);
      }
      last = n - 1;
    });
    if (b_.first()) perf::require(read(0) == last, "put_flush");
    point("get", 8, perf::unit::ns, 1, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) perf::keep(win_.get(target, 0));
    });
  }

  void bandwidth() {
    constexpr std::size_t batch = perf::operations_per_flush(8);
    std::vector<std::uint64_t> from_room(large_words + page_words), to_room(from_room);
    const auto from = perf::part_at(0, from_room), to = perf::part_at(0, to_room);
    std::iota(from.begin(), from.end(), 1);
    point("put_rate", 8, perf::unit::mops, batch, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < batch; ++k) win_.put(from[k], target, k);
        win_.flush(target);
      }
    });
    for (const std::size_t bytes : perf::user_memory_bytes) {
      const std::size_t count = bytes / sizeof(std::uint64_t);
      put_and_get(from.first(count), to.first(count));
    }
    streams(from.first(stream_words * perf::stream_operations), to.first(stream_words * perf::stream_operations));
  }

  void streams(std::span<std::uint64_t> from, std::span<std::uint64_t> to) {
    from[0] = 2;
    point("put_stream", perf::stream_bytes, perf::unit::gbs, perf::stream_operations, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        for (std::size_t at = 0; at < from.size(); at += stream_words)
          win_.put(std::span<const std::uint64_t>(from.subspan(at, stream_words)), target, at);
        win_.flush(target);
      }
    });
    point("get_stream", perf::stream_bytes, perf::unit::gbs, perf::stream_operations, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        for (std::size_t at = 0; at < to.size(); at += stream_words) win_.get(to.subspan(at, stream_words), target, at);
        win_.flush(target);
      }
    });
    const auto asked = [&](const char* name) { return b_.points.wants(prefix_ + name, perf::stream_bytes); };
    if (b_.first() && asked("put_stream") && asked("get_stream"))
      perf::require(std::ranges::equal(from, to), "streams of puts, gets");
  }

  void put_and_get(std::span<std::uint64_t> from, std::span<std::uint64_t> to) {
    const std::size_t bytes = from.size_bytes();
    from[0] = bytes;
    point("put", bytes, perf::unit::gbs, 1, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win_.put(std::span<const std::uint64_t>(from), target, 0);
        win_.flush(target);
      }
    });
    point("get", bytes, perf::unit::gbs, 1, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win_.get(to, target, 0);
        win_.flush(target);
      }
    });
    const auto asked = [&](const char* name) { return b_.points.wants(prefix_ + name, bytes); };
    if (b_.first() && asked("put") && asked("get")) perf::require(std::ranges::equal(from, to), "put, get of a span");
  }

  void strided() {
    constexpr std::size_t length = perf::row_lengths[0];
    std::vector<int> from(perf::matrix_rows * length, 7);
    const auto here = rma::Layout::contiguous<int>(from.size());
    const auto there = rma::Layout::vector<int>(perf::matrix_rows, length, perf::matrix_columns);
    const auto* const start = reinterpret_cast<const std::uint64_t*>(from.data());
    point("strided_put_rows_8", perf::rows_bytes(length), perf::unit::ns, 1, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win_.put(start, here, target, 0, there);
        win_.flush(target);
      }
    });
    constexpr std::size_t row_words = perf::matrix_columns * sizeof(int) / sizeof(std::uint64_t);
    if (b_.first() && b_.points.wants(prefix_ + "strided_put_rows_8", perf::rows_bytes(length))) {
      perf::require(read((perf::matrix_rows - 1) * row_words) == 0x0000'0007'0000'0007u, "rows");
    }
  }

  perf::bench& b_;
  window& win_;
  std::string prefix_;
  window* flag_;
  std::uint64_t turn_ = 0;
};

/// `flag`: the target computes until it changes; null: it sits in a barrier.
void measure(perf::bench& b, window& win, const char* prefix, window* flag) {
  {
    std::optional<rma::Epoch> epoch;
    if (b.first()) epoch.emplace(win.lock_all());
    scene in(b, win, prefix, flag);
    in.put_get();
    if (flag == nullptr) in.atomics();
  }
  b.world.barrier();
}

/// Rank 0 decides for all: it is the one that puts and gets.
bool needs_target(perf::bench& b, const window& win) {
  const bool one_sided = win.one_sided(rma::detail::call::put, target) && win.one_sided(rma::detail::call::get, target);
  return b.points.with().from_first(one_sided ? 0 : 1) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "operations on windows over user memory", 2, [](perf::bench& b) {
    std::vector<std::uint64_t> room(words + page_words);
    auto win = window::create(b.world, perf::part_at(0, room));
    auto flag = window::allocate(b.world, 1);
    measure(b, win, "created_", nullptr);
    if (!needs_target(b, win)) {
      measure(b, win, "computing_", &flag);
    } else if (b.first()) {
      fmt::print(stderr, "user_memory: no computing_ points: operations here need the target's processor\n");
    }
    flag.free();
    win.free();

    rma::Hints hints;
    hints.promote = true;
    auto promoted = window::create(b.world, perf::part_at(as_allocated, room), hints);
    if (!promoted.promoted()) {
      fmt::print(stderr, "user_memory: rank {} was not promoted: {}\n", b.rank(), promoted.not_promoted_because());
    }
    measure(b, promoted, "promoted_", nullptr);
    promoted.free();

    auto allocated = window::allocate(b.world, words);
    measure(b, allocated, "allocated_", nullptr);
    allocated.free();
  });
}
