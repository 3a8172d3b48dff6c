// SPDX-License-Identifier: Apache-2.0
// Goal: a stream of gets by message asks for no more at once than the ring from the target holds, so that the target
// need not keep answers in memory of its own; and each get brings what lies at its place, whatever its length.
//
// Method: rank 0 gets blocks of growing length from rank 1, which waits in the library, many for each flush. Rank 1
// then tells how many of its messages were queued: usually none, but the origin goes on when the target has lost its
// core.
//
// Break: leave keep_pace out of run_plain_promised: more than half of the answers are queued. Answer from another place
// in row_asked_for: "a get".
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "rma/rma.hpp"

namespace {

using words = std::vector<std::uint64_t>;
constexpr std::size_t blocks = 64;
constexpr std::size_t longest = 480;  // 3840 bytes, which still fit one message
constexpr std::size_t lengths[] = {1, 3, 40, 100, 128, 129, 300, longest};
constexpr int rounds = 20;

bool get_all(rma::Window<std::uint64_t>& win, words& to, std::size_t length) {
  const auto epoch = win.lock_all();
  bool right = true;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < blocks; ++i) win.get(std::span(to).subspan(i * length, length), 1, i * (longest + 1));
    win.flush(1);
    for (std::size_t i = 0; i < blocks * length; ++i) {
      right = right && to[i] == i / length * (longest + 1) + i % length;
      to[i] = ~to[i];
    }
  }
  return right;
}

std::uint64_t queued_by(const rma::Runtime& rt) {
  for (const rma::Counter& c : rt.counters()) {
    if (c.name == "sends_queued") return c.value;
  }
  return ~std::uint64_t{0};
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  words memory((longest + 1) * blocks);
  std::iota(memory.begin(), memory.end(), 0);
  auto win = rma::Window<std::uint64_t>::create(rt.world(), memory);
  bool good = true;
  std::uint64_t gets = 0;
  for (const std::size_t length : lengths) {
    gets += blocks * rounds;
    if (rt.rank() != 0) continue;
    words to(length * blocks);
    if (!get_all(win, to, length)) {
      fmt::print("gets_keep_pace: a get of {} words brought something else\n", length);
      good = false;
    }
  }
  rt.world().barrier();
  const std::uint64_t queued = rt.rank() == 1 ? queued_by(rt) : 0;
  const std::uint64_t allowed = gets / 4;
  if (queued > allowed) {
    fmt::print("gets_keep_pace: {} of {} answers found no room, allowed {}\n", queued, gets, allowed);
    good = false;
  }
  win.free();
  if (rt.rank() == 0 && good) fmt::print("gets_keep_pace: done\n");
  return good ? 0 : 1;
}
