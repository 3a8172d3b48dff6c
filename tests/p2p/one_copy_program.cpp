// SPDX-License-Identifier: Apache-2.0
// Two ranks of a node send each other long messages from and to memory that is mapped, promoted or private. Whoever
// copies counts a transfer: the receiver from a mapped buffer, the sender to one, and nobody where there are two
// copies. Break: let messenger::choose_copy take a stream always.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <rma/rma.hpp>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t bytes = std::size_t{1} << 20;

struct program {
  rma::Runtime& rt;
  rma::Team world = rt.world();
  int failures = 0;

  [[nodiscard]] std::uint64_t transfers() const {
    for (const rma::Counter& c : rt.counters()) {
      if (c.name == "rendezvous_transfers") return c.value;
    }
    return 0;
  }
  /// From rank 0 to rank 1, with so many transfers of each side.
  void send(const char* what, std::span<std::byte> from, std::span<std::byte> to, std::uint64_t by_sender,
            std::uint64_t by_receiver) {
    const std::uint64_t before = transfers();
    std::ranges::fill(rt.rank() == 0 ? from : to, rt.rank() == 0 ? std::byte{42} : std::byte{1});
    if (rt.rank() == 0) world.send(from, 1, 1);
    if (rt.rank() == 1) world.recv(to, 0, 1);
    const std::uint64_t found = transfers() - before, wanted = rt.rank() == 0 ? by_sender : by_receiver;
    const bool whole = rt.rank() == 0 || std::ranges::all_of(to, [](std::byte b) { return b == std::byte{42}; });
    if (found == wanted && whole) return;
    std::printf("wrong: %s, rank %d: %llu transfers, %llu wanted, contents %s\n", what, rt.rank(),
                static_cast<unsigned long long>(found), static_cast<unsigned long long>(wanted),
                whole ? "right" : "wrong");
    ++failures;
  }
  /// Neither buffer is mapped: by one copy of the kernel and by two copies at the same time, four each, before the
  /// faster is taken; where the kernel refuses, it is asked once.
  void send_private(std::span<std::byte> buffer) {
    constexpr int messages = 8;
    constexpr std::uint64_t by_kernel = 4, refused = 1;
    const std::uint64_t before = transfers();
    for (int i = 0; i < messages; ++i) {
      if (rt.rank() == 0) world.send(buffer, 1, 1);
      if (rt.rank() == 1) world.recv(buffer, 0, 1);
    }
    const std::uint64_t found = transfers() - before;
    if (rt.rank() == 0 ? found == 0 : found == by_kernel || found <= refused) return;
    std::printf("wrong: private to private, rank %d: %llu transfers\n", rt.rank(),
                static_cast<unsigned long long>(found));
    ++failures;
  }
};

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  if (std::thread::hardware_concurrency() < 2) {
    if (rt.rank() == 0) std::printf("skipped: two copies at the same time need two processors\n");
    return 77;
  }
  program p{rt};
  auto window = rma::Window<std::byte>::allocate(p.world, bytes);
  std::vector<std::byte> own(bytes), user(2 * bytes);
  const std::span<std::byte> mapped = window.local(), alone(own);
  p.send_private(alone);
  p.send("mapped to private", mapped, alone, 0, 1);
  p.send("private to mapped", alone, mapped, 1, 0);
  p.send("mapped to mapped", mapped, mapped, 0, 1);
  auto created = rma::Window<std::byte>::create(p.world, std::span(user));
  const auto inside = std::span(user).subspan(bytes / 2, bytes);
  p.send("promoted to private", inside, alone, 0, 1);
  p.send("private to promoted", alone, inside, 1, 0);
  p.world.barrier();
  if (p.failures == 0 && rt.rank() == 0) std::printf("one copy where a buffer is mapped\n");
  return p.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
