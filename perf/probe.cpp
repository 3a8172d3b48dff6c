// SPDX-License-Identifier: Apache-2.0
#include "probe.hpp"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "perf.hpp"

namespace perf {
namespace {

constexpr int batches = 9;

void wait_for(const std::atomic_ref<std::uint64_t>& word, std::uint64_t value) {
  // No pause instruction: it takes longer than a line does. The yield is for the case that both share a core.
  for (std::uint64_t turns = 1; word.load(std::memory_order_acquire) != value; ++turns) {
    if (turns % 16384 == 0) sched_yield();
  }
}

double elapsed_ns(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

double line_crossing_ns(std::uint64_t& line, int rank) {
  constexpr std::uint64_t round_trips = 200;
  const std::atomic_ref<std::uint64_t> word(line);
  // Counts go on from probe to probe, so that nobody has to reset the word while the other may look at it.
  std::uint64_t turn = word.load();
  turn -= turn % (2 * round_trips * batches);
  samples one_way_ns;
  for (int batch = 0; batch < batches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < round_trips; ++i, turn += 2) {
      if (rank == 0) {
        word.store(turn + 1, std::memory_order_release);
        wait_for(word, turn + 2);
      } else {
        wait_for(word, turn + 1);
        word.store(turn + 2, std::memory_order_release);
      }
    }
    one_way_ns.add(elapsed_ns(begin) / (2.0 * round_trips));
  }
  return one_way_ns.median();
}

double pace_ns() {
  constexpr int steps = 200'000;
  std::uint64_t value = 1;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) {
    value = value * 0x9e37'79b9'7f4a'7c15u + 1;
    keep(value);
  }
  return elapsed_ns(begin) / steps;
}

double memcpy_gbs(std::size_t bytes) {
  struct alignas(64) line {
    char bytes[64];
  };
  const std::vector<line> from(bytes / sizeof(line));
  std::vector<line> to(from.size());
  samples gbs;
  for (int batch = 0; batch < batches; ++batch) {
    constexpr int copies = 20;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < copies; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      keep(to.data());
    }
    gbs.add(static_cast<double>(bytes) * copies / elapsed_ns(begin));
  }
  return gbs.median();
}

}  // namespace perf
