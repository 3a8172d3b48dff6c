// SPDX-License-Identifier: Apache-2.0
/// \file
/// A token goes round a ring of ranks. put_signal moves data and tells the target so; the target waits for the
/// signal, without a collective and without polling memory.
///
/// \code
/// rmarun -n 4 06_notified_ring
/// \endcode

#include <array>
#include <cstdint>
#include <rma/rma.hpp>

#include <fmt/format.h>

namespace {
constexpr int hops = 120;
constexpr unsigned token_here = 0;  // the number of a signal; a window has 16 unless its hints say otherwise
struct Token {
  std::int64_t hops;
  std::int64_t sum;
};
}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  const int left = (rt.rank() + rt.size() - 1) % rt.size();
  const int right = (rt.rank() + 1) % rt.size();
  auto window = rma::Window<Token>::allocate(world, 1);
  world.barrier();

  {
    auto epoch = window.lock_all();
    for (int hop = rt.rank(); hop < hops; hop += rt.size()) {
      if (hop > 0) window.wait_signal(token_here, 1, left);  // afterwards plain loads see the data
      const std::array<Token, 1> token{Token{window[0].hops + 1, window[0].sum + hop}};
      window.put_signal(token, right, 0, token_here);
      epoch.flush();  // `token` leaves its scope
    }
    if (hops % rt.size() == rt.rank()) window.wait_signal(token_here, 1, left);  // the last hop ends here
  }

  Token last = window[0];
  world.broadcast(std::span<Token>(&last, 1), hops % rt.size());
  if (rt.rank() == 0) fmt::print("the token made {} hops and collected {}\n", last.hops, last.sum);
  return last.hops == hops && last.sum == hops * (hops - 1) / 2 ? 0 : 1;
}
