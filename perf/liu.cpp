// SPDX-License-Identifier: Apache-2.0
// The measurements of Liu et al., ICS 2003: rings of short messages against sends and receives. One line for each
// point. By rma-sim with the preset liu-pcix and one rank a node, once with RMA_EAGER=send-recv and once with rdma-ring
// (times are virtual), or by rmarun on a real network.
//
//   latency      one way, by size (figures 9, 11; with RMA_EAGER_BYTES the sweep of thresholds)
//   bandwidth    100 messages and a reply (figures 10, 12; with RMA_RING_SLOTS buffers, figure 22)
//   overhead     of the sender's processor for each of 100 messages (figure 15)
//   layers       where the time of a message of 8 bytes goes (figure 16)
//   writes       one write, two, a list of two pieces, a write that tells, a send (figures 1, 4 and 7)
//   collectives  barrier, allreduce and broadcast out of messages (figures 17 to 19)
//   polling      of 1 to 128 rings that are empty (figure 23), in real time
//   connections  a look for completions when none has come, by the number of connections (figure 3), in real time
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <rma/rma.hpp>
#include <string_view>
#include <vector>

#include "p2p/eager_ring.hpp"  // tidy: allow(include-direction) the time of its polling is measured

namespace {

constexpr int rounds = 40, window_messages = 100, tag = 3;

struct bench {
  rma::Runtime& rt;
  rma::Team& world;
  [[nodiscard]] bool first() const { return world.rank() == 0; }
  /// The time of one `turn`, on rank 0.
  template <class Turn>
  [[nodiscard]] double time_us(Turn&& turn, int turns = rounds) {
    for (int i = 0; i < 8; ++i) turn();  // rings are opened
    const auto begin = rt.now();
    for (int i = 0; i < turns; ++i) turn();
    return static_cast<double>((rt.now() - begin).count()) / 1e3 / turns;
  }
  void say(const char* what, std::size_t at, double value, const char* unit) const {
    if (first()) std::printf("%-22s %7zu %10.3f %s\n", what, at, value, unit);
  }
};

constexpr std::size_t sizes[] = {4, 64, 256, 1024, 2000, 4096, 8192, 16384, 65536};

void latency(bench& b) {
  for (const std::size_t bytes : sizes) {
    std::vector<std::byte> data(bytes);
    const int peer = 1 - b.world.rank();
    const double both_us = b.time_us([&] {
      if (b.first()) b.world.send(std::span(data), peer, tag);
      b.world.recv(std::span(data), peer, tag);
      if (!b.first()) b.world.send(std::span(data), peer, tag);
    });
    b.say("latency", bytes, both_us / 2, "us");
  }
}

/// Each receive has memory of its own.
void send_window(bench& b, std::vector<std::byte>& data, std::vector<rma::MessageRequest>& all) {
  const std::size_t bytes = data.size() / all.size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::span<std::byte> one(data.data() + i * bytes, bytes);
    all[i] = b.first() ? b.world.isend(one, 1, tag) : b.world.irecv(one, 0, tag);
  }
}

void bandwidth(bench& b) {
  for (const std::size_t bytes : sizes) {
    std::vector<rma::MessageRequest> all(window_messages);
    std::vector<std::byte> data(bytes * all.size());
    const double us = b.time_us([&] {
      send_window(b, data, all);
      rma::wait_all(all);
      if (b.first()) b.world.recv(std::span(data.data(), 0), 1, tag);
      if (!b.first()) b.world.send(std::span(data.data(), 0), 0, tag);
    });
    b.say("bandwidth", bytes, static_cast<double>(bytes) * window_messages / us, "MB/s");
  }
}

void overhead(bench& b) {
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{256}, std::size_t{1024}}) {
    std::vector<rma::MessageRequest> all(16);
    std::vector<std::byte> data(bytes * all.size());
    double inside_us = 0;
    (void)b.time_us([&] {
      const auto begin = b.rt.now();
      if (b.first()) send_window(b, data, all);
      inside_us += static_cast<double>((b.rt.now() - begin).count()) / 1e3;
      if (!b.first()) send_window(b, data, all);
      rma::wait_all(all);
      b.world.barrier();
    });
    b.say("overhead", bytes, inside_us / (rounds + 8) / 16, "us");
  }
}

void layers(bench& b) {
  std::uint64_t word = 1;
  auto w = rma::Window<std::uint64_t>::allocate(b.world, 2);
  auto epoch = w.lock_all();
  const int peer = 1 - b.world.rank();
  const double write_us = b.time_us([&] {
    if (b.first()) w.put(word, peer, 0), w.flush(peer);
  });
  b.world.barrier();
  std::vector<rma::MessageRequest> one(1);
  double call_us = 0;
  const double way_us = b.time_us([&] {
    const auto begin = b.rt.now();
    if (b.first()) b.world.send(std::span(&word, 1), peer, tag);
    call_us += static_cast<double>((b.rt.now() - begin).count()) / 1e3;
    b.world.recv(std::span(&word, 1), peer, tag);
    if (!b.first()) b.world.send(std::span(&word, 1), peer, tag);
  }) / 2;
  b.say("layers: one way", 8, way_us, "us");
  b.say("layers: the send call", 8, call_us / (rounds + 8), "us");
  b.say("layers: put and flush", 8, write_us, "us");
  epoch.unlock();
}

void writes(bench& b) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{1024}}) {
    std::vector<std::uint8_t> data(2 * bytes, 1);
    auto w = rma::Window<std::uint8_t>::allocate(b.world, 4 * bytes);
    const int peer = 1;
    auto epoch = w.lock_all();
    const auto put = [&](const char* name, auto&& post) {
      const double us = b.time_us([&] {
        if (b.first()) post(), w.flush(peer);
      });
      b.say(name, bytes, us, "us");
      b.world.barrier();
    };
    put("writes: one", [&] { w.put(std::span(data.data(), bytes), peer, 0); });
    put("writes: two", [&] {
      w.put(std::span(data.data(), bytes / 2), peer, 0);
      w.put(std::span(data.data() + bytes, bytes / 2), peer, bytes / 2);
    });
    const rma::Layout halves = rma::Layout::vector<std::uint8_t>(2, bytes / 2, bytes);
    const rma::Layout whole = rma::Layout::contiguous<std::uint8_t>(bytes);
    put("writes: of two pieces", [&] { w.put(data.data(), halves, peer, 0, whole); });
    epoch.unlock();
  }
}

void barrier(rma::Team& world) {
  for (int distance = 1; distance < world.size(); distance *= 2) {
    const int to = (world.rank() + distance) % world.size(),
              from = (world.rank() - distance + world.size()) % world.size();
    std::byte none[1] = {};
    world.sendrecv(std::span(none, 0), to, tag, std::span(none, 0), from, tag);
  }
}

void allreduce(rma::Team& world, std::vector<double>& data, std::vector<double>& other) {
  for (int bit = 1; bit < world.size(); bit *= 2) {
    world.sendrecv(std::span(data), world.rank() ^ bit, tag, std::span(other), world.rank() ^ bit, tag);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] += other[i];
  }
}

void broadcast(rma::Team& world, std::vector<std::byte>& data) {
  int bit = 1;
  while (bit < world.size() && (world.rank() & bit) == 0) bit *= 2;
  if (world.rank() != 0) world.recv(std::span(data), world.rank() - bit, tag);
  for (bit /= 2; bit > 0; bit /= 2)
    if (world.rank() + bit < world.size()) world.send(std::span(data), world.rank() + bit, tag);
}

void collectives(bench& b) {
  if ((b.world.size() & (b.world.size() - 1)) != 0) return;
  b.say("barrier", static_cast<std::size_t>(b.world.size()), b.time_us([&] { barrier(b.world); }), "us");
  for (const std::size_t bytes : {8U, 128U, 1024U, 1600U}) {
    std::vector<double> data(bytes / 8, 0.0), other(bytes / 8);
    b.say("allreduce", bytes, b.time_us([&] { allreduce(b.world, data, other); }), "us");
    std::vector<std::byte> all(bytes);
    b.say("broadcast", bytes, b.time_us([&] { broadcast(b.world, all), barrier(b.world); }), "us");
  }
}

/// Nothing comes: what a rank pays in each look at its polling set.
void polling(bench& b) {
  if (!b.first()) return;
  constexpr int looks = 20000;
  for (std::size_t rings = 1; rings <= 128; rings *= 2) {
    std::vector<std::unique_ptr<rma::detail::ring_sink>> set;
    for (std::size_t i = 0; i < rings; ++i) set.push_back(std::make_unique<rma::detail::ring_sink>(100));
    std::uint64_t found = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < looks; ++i)
      for (const auto& each : set) found += each->ready() ? 1 : 0;
    const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begin;
    b.say(found == 0 ? "polling" : "polling?", rings, passed.count() / looks, "us");
  }
}

/// All connections share a completion queue: what a look costs should not depend on their number.
void connections(bench& b) {
  constexpr int looks = 2000;
  std::uint64_t word = 1;
  int connected = 0;
  for (int wanted = 1; wanted < b.world.size(); wanted *= 2) {
    for (; connected < wanted; ++connected) {
      const int other = connected + 1;
      if (b.first()) b.world.ssend(std::span(&word, 1), other, tag);
      if (b.world.rank() == other) b.world.recv(std::span(&word, 1), 0, tag);
    }
    if (!b.first()) continue;
    double least_us = 1e9;  // others disturb
    for (int turn = 0; turn < 20; ++turn) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < looks; ++i) b.rt.progress();
      const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begin;
      least_us = std::min(least_us, passed.count() / looks);
    }
    b.say("connections", static_cast<std::size_t>(connected), least_us, "us");
  }
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  bench b{rt, world};
  struct {
    std::string_view name;
    void (*run)(bench&);
    bool of_two;
  } constexpr parts[] = {{"latency", latency, true},   {"bandwidth", bandwidth, true},
                         {"overhead", overhead, true}, {"layers", layers, true},
                         {"writes", writes, true},     {"collectives", collectives, false},
                         {"polling", polling, false},  {"connections", connections, false}};
  for (const auto& part : parts) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || part.name == argv[i];
    if (wanted && (!part.of_two || world.size() == 2)) part.run(b);
    world.barrier();
  }
  return 0;
}
