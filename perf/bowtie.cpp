// SPDX-License-Identifier: Apache-2.0
// BOWTIE: rank r and rank r ^ n/2 send to each other at once, and wait. Prints for each size the time of one exchange,
// and how many messages and reads or writes each transfer took. By rma-sim with as many ranks on a node as there are
// pairs, and RMA_EAGER_BYTES=0, as in Takagi et al., EuroMPI 2013, figures 5 to 8 and 11: RMA_RENDEZVOUS is the
// protocol. `--worst`: all messages end in the byte that a receive of putnr has before (figure 7).
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <rma/rma.hpp>
#include <vector>

namespace {

constexpr int rounds = 50;

std::uint64_t count_of(const rma::Runtime& rt, const char* name) {
  for (const rma::Counter& c : rt.counters()) {
    if (c.name == name) return c.value;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const bool worst = argc > 1 && std::strcmp(argv[1], "--worst") == 0;
  rma::Team world = rt.world();
  if (world.size() % 2 != 0) return 2;
  const int peer = world.rank() < world.size() / 2 ? world.rank() + world.size() / 2 : world.rank() - world.size() / 2;
  for (const std::size_t bytes : {1024U, 2048U, 4096U, 8192U, 16384U, 32768U}) {
    std::vector<std::uint8_t> out(bytes, worst ? 0 : 77), in(bytes);
    const auto exchange = [&](int i) {
      auto posted = world.irecv(std::span(in), peer, i);
      auto sent = world.isend(std::span(out), peer, i);
      posted.wait(), sent.wait();
    };
    exchange(0);
    world.barrier();
    const std::uint64_t messages = count_of(rt, "rendezvous_messages"), moved = count_of(rt, "rendezvous_transfers");
    const auto begin = rt.now();
    for (int i = 1; i <= rounds; ++i) exchange(i);
    const auto time = (rt.now() - begin).count() / rounds;
    const std::uint64_t mine[] = {count_of(rt, "rendezvous_messages") - messages,
                                  count_of(rt, "rendezvous_transfers") - moved};
    std::vector<std::uint64_t> all(mine, mine + 2);
    world.allreduce(std::span(all), rma::sum);
    const double transfers = static_cast<double>(rounds) * world.size();
    if (world.rank() == 0)
      std::printf("bowtie %2d pairs %6zu bytes %8lld ns %5.2f messages %5.2f transfers\n", world.size() / 2, bytes,
                  static_cast<long long>(time), static_cast<double>(all[0]) / transfers,
                  static_cast<double>(all[1]) / transfers);
    if (in != out) return 1;
    world.barrier();
  }
  return 0;
}
