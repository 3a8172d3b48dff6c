// SPDX-License-Identifier: Apache-2.0
// Time of messages between rank 0 and rank 1, ns for each. `ping_pong`: one way, by send and recv. `preposted`: the
// same with the receive posted before its message is asked for. `stream`: 100 messages and a reply, as in Liu et al.,
// ICS 2003, figures 13 and 14. `bowtie`: both send and receive at once, as in Takagi et al., EuroMPI 2013. Four ranks
// and more are pairs, all of which stream at once; there is no other measurement of them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench.hpp"

namespace {

constexpr int tag = 1;
constexpr std::uint64_t messages_per_reply = 100;

struct pair {
  pair(rma::Team& all, std::size_t size)
      : world(all), peer(all.rank() ^ 1), own(2 * size), out(own.data(), size), in(own.data() + size, size) {
    std::ranges::fill(out, std::byte{1});
  }
  /// In a window, which the other rank maps.
  pair(rma::Team& all, rma::Window<std::byte>& mapped, std::size_t size)
      : world(all), peer(all.rank() ^ 1), out(mapped.local().subspan(0, size)), in(mapped.local().subspan(size, size)) {
    std::ranges::fill(out, std::byte{1});
  }

  void send() { world.send(std::span(out), peer, tag); }
  void receive() { world.recv(std::span(in), peer, tag); }
  /// True if the bytes are those that were sent, or nothing was measured.
  [[nodiscard]] bool intact() const {
    return !used || std::ranges::all_of(in, [](std::byte b) { return b == std::byte{1}; });
  }

  rma::Team& world;
  int peer;
  std::vector<std::byte> own;
  std::span<std::byte> out, in;
  bool used = false;
};

void ping_pong(perf::bench& b, pair& p, const std::string& name) {
  const bool first = b.first();
  b.points.everyone({name, p.out.size(), perf::unit::ns, 2}, [&](std::uint64_t n) {
    p.used = true;
    for (std::uint64_t i = 0; i < n; ++i) {
      if (first) p.send();
      p.receive();
      if (!first) p.send();
    }
  });
}

void measure(perf::bench& b, std::size_t bytes) {
  pair p(b.world, bytes);
  const bool first = b.first();
  ping_pong(b, p, "ping_pong");
  b.points.everyone({"preposted", bytes, perf::unit::ns, 2}, [&](std::uint64_t n) {
    p.used = true;
    rma::MessageRequest posted = p.world.irecv(std::span(p.in), p.peer, tag);
    for (std::uint64_t i = 0; i < n; ++i) {
      if (first) p.send();
      posted.wait();
      if (i + 1 < n) posted = p.world.irecv(std::span(p.in), p.peer, tag);
      if (!first) p.send();
    }
  });
  b.points.everyone({"bowtie", bytes}, [&](std::uint64_t n) {
    p.used = true;
    for (std::uint64_t i = 0; i < n; ++i) {
      rma::MessageRequest posted = p.world.irecv(std::span(p.in), p.peer, tag);
      p.send();
      posted.wait();
    }
  });
  perf::require(p.intact(), "the bytes of messages");
}

void stream(perf::bench& b, pair& p, const std::string& name) {
  const bool sends = b.rank() % 2 == 0;
  b.points.everyone({name, p.out.size(), perf::unit::ns, messages_per_reply}, [&](std::uint64_t n) {
    p.used = true;
    std::vector<rma::MessageRequest> all(messages_per_reply);
    for (std::uint64_t i = 0; i < n; ++i) {
      for (auto& each : all)
        each = sends ? p.world.isend(std::span(p.out), p.peer, tag) : p.world.irecv(std::span(p.in), p.peer, tag);
      rma::wait_all(all);
      if (sends) p.world.recv(std::span(p.in.data(), 0), p.peer, 2);
      if (!sends) p.world.send(std::span(p.out.data(), 0), p.peer, 2);
    }
  });
}

/// Buffers that the other rank maps: one copy.
void mapped(perf::bench& b, std::size_t bytes) {
  auto window = rma::Window<std::byte>::allocate(b.world, 2 * bytes);
  pair p(b.world, window, bytes);
  ping_pong(b, p, "mapped_ping_pong");
  stream(b, p, "mapped_stream");
  perf::require(p.intact(), "the bytes of messages between windows");
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "messages with tags between two ranks", 2, [](perf::bench& b) {
    const bool many = b.world.size() > 2;
    perf::require(b.world.size() % 2 == 0, "a pair for each rank");
    for (const std::size_t bytes : {0UL, 8UL, 1024UL, 4096UL, 16384UL, 65536UL, 1048576UL}) {
      if (!many) measure(b, bytes);
    }
    for (const std::size_t bytes : {8UL, 1024UL, 65536UL, 1048576UL}) {
      pair p(b.world, bytes);
      stream(b, p, "stream");
    }
    if (many) return;
    for (const std::size_t bytes : {65536UL, 1048576UL}) mapped(b, bytes);
  });
}
