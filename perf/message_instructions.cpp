// SPDX-License-Identifier: Apache-2.0
// message_instructions N: one rank calls each wrapper below N times, for tests/perf/instructions.py: a receive that is
// posted, the send of 8 bytes that it matches, and the end of both, so that a count has both sides of a message, in
// shared memory. `count_among_...` do so with so many receives of other tags posted. Times mean nothing here.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <rma/rma.hpp>
#include <vector>

namespace {

constexpr int tag = 7;
constexpr int other_tags = 1000;

void exchange(rma::Team& world, std::uint64_t from, std::uint64_t& into) {
  rma::MessageRequest posted = world.irecv(std::span(&into, 1), 0, tag);
  world.send(std::span(&from, 1), 0, tag);
  posted.wait();
}

}  // namespace

// Outside the namespace and with C names: callgrind reports them by these.
extern "C" {

[[gnu::noinline]] void count_send_recv(rma::Team& world, std::uint64_t from, std::uint64_t& into) {
  exchange(world, from, into);
}
[[gnu::noinline]] void count_send_then_recv(rma::Team& world, std::uint64_t from, std::uint64_t& into) {
  world.send(std::span(&from, 1), 0, tag);
  world.recv(std::span(&into, 1), 0, tag);
}
[[gnu::noinline]] void count_among_10(rma::Team& world, std::uint64_t from, std::uint64_t& into) {
  exchange(world, from, into);
}
[[gnu::noinline]] void count_among_100000(rma::Team& world, std::uint64_t from, std::uint64_t& into) {
  exchange(world, from, into);
}

}  // extern "C"

int main(int argc, char** argv) {
  rma::Runtime runtime(argc, argv);
  const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  rma::Team world = runtime.world();
  std::uint64_t into = 0, wrong = 0;
  const auto run = [&](auto* wrapper) {
    for (std::uint64_t i = 0; i < calls; ++i) {
      wrapper(world, i, into);
      wrong += into == i ? 0 : 1;
    }
  };
  run(count_send_recv);
  run(count_send_then_recv);
  std::uint64_t never = 0;
  std::vector<rma::MessageRequest> posted;
  const auto post = [&](int count) {
    while (static_cast<int>(posted.size()) < count)
      posted.push_back(world.irecv(std::span(&never, 1), 0, other_tags + static_cast<int>(posted.size())));
  };
  post(10);
  run(count_among_10);
  post(100000);
  run(count_among_100000);
  for (rma::MessageRequest& each : posted) wrong += each.cancel() ? 0 : 1;
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
