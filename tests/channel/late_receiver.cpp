// SPDX-License-Identifier: Apache-2.0
// Goal: what a call that has succeeded has sent arrives, though its rank leaves the job at once and the receiver looks
// much later.
// Method: rank 1 sends in several sizes, broadcasts what fits into one message or a slot, and leaves; the others do
// something else for longer than a rank used to wait when it leaves (2 s), and longer than networks keep what nobody
// takes. Prints what is missing.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "rma/rma.hpp"

namespace {

constexpr int sender = 1;
constexpr std::array<std::size_t, 4> sizes_bytes{8, 5'000, 300'000, 6'000'000};
constexpr std::array<std::size_t, 2> broadcast_bytes{8, 1'000};
constexpr int tag = 5;
constexpr int late_ms = 2500;

bool is_whole(std::span<const char> data) {
  return std::all_of(data.begin(), data.end(), [](char c) { return c == 2; });
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const bool sends = rt.rank() == sender;
  rt.world().barrier();
  if (!sends) (void)::poll(nullptr, 0, late_ms);
  int failures = 0;
  const auto look = [&](bool is_there, std::size_t bytes) {
    if (is_there) return;
    ++failures;
    fmt::print("late_receiver: rank {} lacks some of {} bytes\n", rt.rank(), bytes);
  };
  try {
    for (const std::size_t bytes : sizes_bytes) {
      std::vector<char> data(bytes, sends ? 2 : 0);
      if (sends) {
        for (int r = 0; r < rt.size(); ++r) {
          if (r != sender) rt.world().bsend(std::span(data), r, tag);
        }
      } else {
        (void)rt.world().recv(std::span(data), sender, tag);
        look(is_whole(data), bytes);
      }
    }
    for (const std::size_t bytes : broadcast_bytes) {
      std::vector<char> data(bytes, sends ? 2 : 0);
      rt.world().broadcast(std::span(data), sender);
      look(is_whole(data), bytes);
    }
  } catch (const rma::Error& e) {
    ++failures;
    fmt::print("late_receiver: rank {}: {}\n", rt.rank(), e.what());
  }
  if (failures == 0 && rt.rank() == 0) fmt::print("late_receiver: done\n");
  return failures == 0 ? 0 : 1;
}
