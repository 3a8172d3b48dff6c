// SPDX-License-Identifier: Apache-2.0
// Goal: copies between private memory that wait for each other arrive whole and in their order, whatever comes behind
// them, and are over with whatever ends them.
//
// Method: rank 0 puts and gets blocks of 2 KiB, more of them than go together, to ranks that wait in the library; amid
// them small puts, updates and gets, which go in messages, and other targets. Each ends in another way.
//
// Break: in issue and run_plain_promised, let what waits wait on; leave copy_gathered out of complete_target.
// (That a network's unlock follows them, as it follows writes, these rounds do not meet.)
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "rma/rma.hpp"

namespace {

using words = std::vector<std::uint64_t>;
constexpr std::size_t block = 256;  // 2 KiB
constexpr std::size_t blocks = 20;
constexpr std::size_t last = blocks * block - 7;  // a word of the last block, which waits when all blocks were put

struct copier {
  rma::Window<std::uint64_t>& win;
  words from = words(block * blocks), to = words(block * blocks);
  std::uint64_t next = 1;
  bool right = true;

  void check(bool good, const char* what) {
    if (!good) fmt::print("gathered_copies: {}\n", what);
    right = right && good;
  }
  void fill() {
    std::iota(from.begin(), from.end(), next);
    next += from.size();
  }
  std::span<std::uint64_t> part(words& all, std::size_t i) { return std::span(all).subspan(i * block, block); }
  void put(int target, std::size_t i) { win.put(std::span<const std::uint64_t>(part(from, i)), target, i * block); }
  void put_all(int target) {
    fill();
    for (std::size_t i = 0; i < blocks; ++i) put(target, i);
  }
  bool is_there(int target) {
    std::ranges::fill(to, 0);
    for (std::size_t i = 0; i < blocks; ++i) win.get(part(to, i), target, i * block);
    win.flush_local(target);
    return to == from;
  }
};

/// Until the library knows which way blocks go.
void learn(copier& c) {
  const auto epoch = c.win.lock_all();
  for (int round = 0; round < 40; ++round) {
    c.put_all(1);
    c.win.flush(1);
    c.check(c.is_there(1), "puts, a flush and gets");
  }
}

void amid_messages(copier& c) {
  const auto epoch = c.win.lock_all();
  for (int round = 0; round < 10; ++round) {
    c.put_all(1);
    c.from[last] = 1;
    c.win.put(std::uint64_t{1}, 1, last);
    c.win.flush(1);
    c.check(c.is_there(1), "a small put behind blocks");
    c.put_all(1);
    c.check(c.win.get(1, last) == c.from[last], "a small get behind blocks");
    c.put_all(1);
    c.win.accumulate(std::uint64_t{5}, 1, last, rma::sum);
    c.from[last] += 5;
    c.win.flush(1);
    c.check(c.is_there(1), "an update behind blocks");
    c.put_all(1);
    const words two(2 * block, 9);
    std::ranges::copy(two, c.part(c.from, blocks - 2).begin());
    c.win.put(std::span<const std::uint64_t>(two), 1, (blocks - 2) * block);
    c.win.flush(1);
    c.check(c.is_there(1), "a longer put behind blocks");
  }
}

void of_two_targets(copier& c) {
  const auto epoch = c.win.lock_all();
  for (int round = 0; round < 10; ++round) {
    c.put_all(1);
    c.put_all(2);
    for (std::size_t i = 0; i < 6; ++i) c.put(1 + static_cast<int>(i % 2), i);
    c.win.flush_all();
    c.check(c.is_there(2), "blocks to two targets");
  }
}

void without_a_flush(copier& c, int target) {
  for (int round = 0; round < 10; ++round) {
    const auto epoch = c.win.lock(rma::exclusive, target);
    c.put_all(target);
  }
  const auto epoch = c.win.lock(rma::shared, target);
  c.check(c.is_there(target), "blocks at the end of an epoch");
}

/// Rank 1 looks at its own memory, under the same lock, whether rank 0 has let go of it too early.
bool only_whole(copier& c, int rank) {
  constexpr int rounds = 300;
  bool whole = true;
  for (int round = 0; round < rounds && rank < 2; ++round) {
    const auto epoch = c.win.lock(rma::exclusive, 1);
    if (rank == 0) c.put_all(1);
    if (rank == 1) whole = whole && c.win[last] - c.win[0] == last;
  }
  return whole;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  words memory(block * blocks);
  auto win = rma::Window<std::uint64_t>::create(rt.world(), memory);
  copier c{win};
  if (rt.rank() == 0) {
    learn(c);
    amid_messages(c);
    of_two_targets(c);
    without_a_flush(c, 2);
    without_a_flush(c, 1);
  }
  rt.world().barrier();
  c.check(only_whole(c, rt.rank()), "a lock was given back before what was under way was there");
  const std::uint64_t first = rt.world().allreduce(rt.rank() == 0 ? c.from[0] : 0, rma::max);
  if (rt.rank() == 1) {
    words expected(block * blocks);
    std::iota(expected.begin(), expected.end(), first);
    c.check(memory == expected, "what the last epoch has left");
  }
  win.free();
  if (rt.rank() == 0 && c.right) fmt::print("gathered_copies: done\n");
  return c.right ? 0 : 1;
}
