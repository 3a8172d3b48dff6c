// SPDX-License-Identifier: Apache-2.0
// Goal: copies of more than 1 KiB between private memory of two processes arrive whole by whatever way they go, and a
// rank comes to know what each way costs, of puts and of gets, at each size.
//
// Method: rank 0 puts to rank 1, which waits in the library, and gets what it has put, until it knows all; then again,
// by what it has chosen. Each put overwrites others that went in messages. Where a way is forced there is nothing to
// learn. At last rank 0 does nothing but get, and has to answer rank 1 meanwhile.
//
// Break: count gets as puts; take every use of a slot for its first; copy a word less from a slot; let a copy by the
// kernel overtake messages; never look for others amid copies by the kernel.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "datatype/copy_experience.hpp"
#include "rma/rma.hpp"
#include "runtime/runtime_core.hpp"

namespace {

using rma::detail::copy_class;
constexpr std::size_t words_max = (std::size_t{5} << 20) / sizeof(std::uint64_t);

struct copier {
  rma::Runtime& rt;
  rma::Window<std::uint64_t>& win;
  std::vector<std::uint64_t> from, to;
  std::array<std::uint64_t, 128> zeros{};  ///< the most that always goes in a message
  std::uint64_t next = 1;

  /// One put and one get of it.
  bool there_and_back(std::size_t words) {
    std::iota(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(words), next);
    next += words;
    std::fill_n(to.begin(), words, 0);
    for (int i = 0; i < 8; ++i) win.put(std::span<const std::uint64_t>(zeros), 1, 3);
    win.put(std::span<const std::uint64_t>(from.data(), words), 1, 3);
    win.flush(1);
    win.get(std::span(to.data(), words), 1, 3);
    win.flush(1);
    if (std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(words), to.begin())) return true;
    fmt::print("large_copies: {} words were not got as they had been put\n", words);
    return false;
  }
  [[nodiscard]] bool knows_all(std::size_t bytes) const {
    if (rt.core().ops->forced() != rma::detail::user_memory::automatic) return true;
    const auto of_class = static_cast<std::size_t>(copy_class(bytes));
    for (const auto& classes : rt.core().copies()) {
      const rma::detail::copy_experience e = classes[of_class].load();
      for (std::size_t way = 0; way < rma::detail::ways_of(copy_class(bytes)); ++way) {
        if (e.figures[way].cost_ns == 0) return false;
      }
    }
    return true;
  }
};

bool learn(copier& c) {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + std::chrono::seconds(40);
  for (const std::size_t bytes :
       std::to_array<std::size_t>({1032, 4000, 4104, 20'000, 65'536, 300'000, words_max * 8})) {
    unsigned rounds = 0;
    for (; !c.knows_all(bytes); ++rounds) {
      if (!c.there_and_back(bytes / 8)) return false;
      if (clock::now() > until) {
        fmt::print("large_copies: after {} copies of {} bytes a way has not been measured\n", 2 * rounds, bytes);
        return false;
      }
    }
    for (int i = 0; i < 20; ++i) {
      if (!c.there_and_back(bytes / 8)) return false;
    }
  }
  return true;
}

/// Rank 0 gets again and again until rank 1 has set its last word, which it does when rank 0's handler has answered.
bool answers_while_it_gets(rma::Window<std::uint64_t>& win, int rank) {
  constexpr std::size_t words = 200;
  std::array<std::uint64_t, words> part{};
  const auto epoch = win.lock_all();
  if (rank == 1) {
    win.fetch_and_op(std::uint64_t{1}, 0, 0, rma::sum);
    win.put(~std::uint64_t{0}, 1, words - 1);
    return true;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (part[words - 1] != ~std::uint64_t{0}) {
    win.get(std::span<std::uint64_t>(part), 1, 0);
    win.flush(1);
    if (std::chrono::steady_clock::now() < until) continue;
    fmt::print("large_copies: rank 0, which only gets, has not answered rank 1\n");
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  std::vector<std::uint64_t> memory(words_max + 3);
  auto win = rma::Window<std::uint64_t>::create(world, memory);
  bool ok = true;
  if (rt.rank() == 0) {
    const auto epoch = win.lock_all();
    copier c{rt, win, std::vector<std::uint64_t>(words_max), std::vector<std::uint64_t>(words_max)};
    ok = learn(c);
  }
  world.barrier();
  ok = answers_while_it_gets(win, rt.rank()) && ok;
  world.barrier();
  win.free();
  if (rt.rank() == 0 && ok) fmt::print("large_copies: done\n");
  return ok ? 0 : 1;
}
