// SPDX-License-Identifier: Apache-2.0
// flood_program MESSAGES COMPUTE_MS: all ranks send so many messages of 1 KiB to rank 0, which computes for so long and
// then receives them. The memory that it holds meanwhile stays within the bound that it prints, and all arrive in
// order.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <rma/rma.hpp>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace {

using message = std::array<std::uint64_t, 128>;
constexpr int tag = 1;

std::uint64_t count_of(const rma::Runtime& rt, std::string_view name) {
  for (const rma::Counter& c : rt.counters()) {
    if (c.name == name) return c.value;
  }
  return 0;
}

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Without a call that makes progress.
void compute(rma::Runtime& rt, std::chrono::milliseconds time) {
  const auto end = rt.now() + time;
  rt.compute(time);  // virtual time passes in it
  while (rt.now() < end) {}
}

int receive_all(rma::Runtime& rt, rma::Team& world, std::uint64_t messages) {
  for (std::uint64_t i = 0; i < messages; ++i) {
    for (int r = 1; r < world.size(); ++r) {
      message in{};
      world.recv(std::span(in), r, tag);
      if (in.front() == i && in.back() == i) continue;
      std::printf("wrong: message %llu of rank %d is %llu\n", static_cast<unsigned long long>(i), r,
                  static_cast<unsigned long long>(in.front()));
      return EXIT_FAILURE;
    }
  }
  const std::uint64_t held = count_of(rt, "unexpected_bytes"), bound = count_of(rt, "unexpected_bytes_max");
  std::printf("flood: %llu bytes held, at most %llu\n", static_cast<unsigned long long>(held),
              static_cast<unsigned long long>(bound));
  return held <= bound && held != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  const std::uint64_t messages = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const std::chrono::milliseconds time(argc > 2 ? std::atoi(argv[2]) : 100);
  // Whoever has met everybody has its connections, rings and tables.
  for (int r = 0; r < world.size(); ++r) {
    if (r == world.rank()) continue;
    message hello{};
    world.sendrecv(std::span(hello), r, tag + 1, std::span(hello), r, tag + 1);
  }
  world.barrier();
  int status = EXIT_SUCCESS;
  if (world.rank() == 0) {
    const std::size_t before = resident_bytes();
    compute(rt, time);
    status = receive_all(rt, world, messages);
    const bool alone = argc <= 3;                        // in this process
    constexpr std::size_t slack = std::size_t{4} << 20;  // room for allocator and code
    const std::size_t grown = resident_bytes() - std::min(before, resident_bytes());
    if (alone && grown > count_of(rt, "unexpected_bytes_max") + slack) {
      std::printf("wrong: the process has grown by %zu bytes\n", grown);
      status = EXIT_FAILURE;
    }
  } else {
    message out{};
    for (std::uint64_t i = 0; i < messages; ++i) {
      out.fill(i);
      world.send(std::span(out), 0, tag);
    }
  }
  world.barrier();
  return status;
}
