// SPDX-License-Identifier: Apache-2.0
// BOWTIE: rank r and rank r ^ n/2 send to each other at once, and wait. Prints for each size the time of one exchange,
// and how many messages and reads or writes each transfer took. By rma-sim with as many ranks on a node as there are
// pairs, and RMA_EAGER_BYTES=0, as in Takagi et al., EuroMPI 2013, figures 5 to 8 and 11: RMA_RENDEZVOUS is the
// protocol. `--worst`: all messages end in the byte that a receive of putnr has before (figure 7). `--alltoall`: every
// rank sends to all others instead, four messages at a time in each direction (figure 9).
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

/// One measurement of a size: what is exchanged, and by how many messages of a rank.
struct pattern {
  const char* name;
  int messages;
};

/// Rank r sends to r + 1, ... and receives from r - 1, ..., four of each at a time.
void alltoall(rma::Team& world, std::vector<std::uint8_t>& out, std::vector<std::uint8_t>& in, std::size_t bytes,
              int tag) {
  constexpr int at_once = 4;
  const int n = world.size(), me = world.rank();
  std::vector<rma::Request> open;
  for (int first = 1; first < n; first += at_once) {
    for (int i = first; i < n && i < first + at_once; ++i) {
      const auto to = static_cast<std::size_t>((me + i) % n), from = static_cast<std::size_t>((me - i + n) % n);
      open.push_back(world.irecv(std::span(in).subspan(from * bytes, bytes), static_cast<int>(from), tag));
      open.push_back(world.isend(std::span(out).subspan(to * bytes, bytes), static_cast<int>(to), tag));
    }
    for (rma::Request& each : open) each.wait();
    open.clear();
  }
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const bool worst = argc > 1 && std::strcmp(argv[1], "--worst") == 0;
  const bool all_to_all = argc > 1 && std::strcmp(argv[1], "--alltoall") == 0;
  rma::Team world = rt.world();
  const pattern what = all_to_all ? pattern{"alltoall", world.size() - 1} : pattern{"bowtie", 1};
  const auto places = static_cast<std::size_t>(all_to_all ? world.size() : 1);
  if (world.size() % 2 != 0) return 2;
  const int peer = world.rank() < world.size() / 2 ? world.rank() + world.size() / 2 : world.rank() - world.size() / 2;
  for (const std::size_t bytes : {1024U, 2048U, 4096U, 8192U, 16384U, 32768U}) {
    std::vector<std::uint8_t> out(places * bytes, worst ? 0 : 77), in(places * bytes);
    if (all_to_all) std::memcpy(in.data() + static_cast<std::size_t>(world.rank()) * bytes, out.data(), bytes);
    const auto exchange = [&](int i) {
      if (all_to_all) return alltoall(world, out, in, bytes, i);
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
    const double transfers = static_cast<double>(rounds) * world.size() * what.messages;
    if (world.rank() == 0)
      std::printf("%s %2d pairs %6zu bytes %8lld ns %5.2f messages %5.2f transfers\n", what.name, world.size() / 2,
                  bytes, static_cast<long long>(time), static_cast<double>(all[0]) / transfers,
                  static_cast<double>(all[1]) / transfers);
    if (in != out) return 1;
    world.barrier();
  }
  return 0;
}
