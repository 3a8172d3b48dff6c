// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks over TCP in one process, and peers played by the test itself: a socket, and what is said on it.
#pragma once

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "boot/socket.hpp"
#include "fabric/contract_cases.hpp"
#include "fabric/tcp/greeting.hpp"
#include "fabric/tcp/tcp_fabric.hpp"
#include "fabric/tcp/wire.hpp"

namespace rma::test {

inline constexpr std::uint16_t kind = message_kind;
inline constexpr std::string_view job_key = "some key";

using tcp_member = joined_rank<tcp::tcp_fabric>;

class tcp_job final : public joined_ranks<tcp::tcp_fabric> {
 public:
  /// The first `present` of `size` ranks.
  tcp_job(int present, int size, int peer_timeout_ms = 10000, int stranger_ms = 10000) {
    for (int r = 0; r < present; ++r) {
      const tcp::start how{r, size, "127.0.0.1", std::string(job_key), peer_timeout_ms, stranger_ms};
      add(std::make_unique<tcp::tcp_fabric>(how), tcp::address_key(r));
    }
  }
  explicit tcp_job(int size) : tcp_job(size, size) {}
  tcp_job(const tcp_job&) = delete;
  tcp_job& operator=(const tcp_job&) = delete;
  /// All leave at once, so that nobody waits for one that says nothing.
  ~tcp_job() {
    std::vector<std::thread> leavers;
    for (int r = 0; r < size(); ++r) leavers.emplace_back([gone = take(r)]() mutable { gone.reset(); });
    for (std::thread& each : leavers) each.join();
  }

  [[nodiscard]] std::vector<std::size_t> sizes_of_interest() const override {
    return {tcp::straight_bytes, tcp::straight_bytes - 8, tcp::transfer_bytes - 8};
  }
  /// One message there and one back: both ranks are connected, and each hears the other.
  void exchange(int a, int b) { test::exchange(*this, a, b); }
};

inline status write_words(tcp_member& m, int peer, const fabric::local_slice& here, const fabric::region_key& region,
                          const fabric::remote_slice& there, std::uint64_t token) {
  return m.net->write(peer, {&here, 1}, region, {&there, 1}, token);
}

inline status read_words(tcp_member& m, int peer, const fabric::local_slice& here, const fabric::region_key& region,
                         const fabric::remote_slice& there, std::uint64_t token) {
  return m.net->read(peer, {&here, 1}, region, {&there, 1}, token);
}

/// A connection to a rank's address that has said nothing yet.
inline boot::unique_fd line_to(tcp_member& m) {
  boot::unique_fd line = boot::begin_connect(boot::parse_address(m.net->address()));
  REQUIRE(line);
  return line;
}

inline void say(const boot::unique_fd& line, std::span<const std::byte> bytes) {
  REQUIRE(::send(line.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

/// The front of a message, and of its bytes those given here.
inline void say(const boot::unique_fd& line, std::uint16_t kind_said, std::size_t bytes_said,
                std::span<const std::byte> bytes) {
  const tcp::front f{static_cast<std::uint32_t>(bytes_said), kind_said, 0};
  say(line, tcp::bytes_of(f));
  if (!bytes.empty()) say(line, bytes);
}

/// Steps as far as it gets with what has come.
inline tcp::greeting::outcome advance(tcp::greeting& g, std::string_view key) {
  auto came = tcp::greeting::outcome::goes_on;
  for (int i = 0; i < 3 && came == tcp::greeting::outcome::goes_on; ++i) came = g.step(key);
  return came;
}

/// Connects to rank 0 as `rank`, which the test plays.
inline boot::unique_fd join_as(tcp_job& all, int rank, int size) {
  tcp::greeting g(line_to(all[0]), rank, size, 0, 0);
  auto came = tcp::greeting::outcome::goes_on;
  REQUIRE(all.until([&] { return (came = advance(g, job_key)) != tcp::greeting::outcome::goes_on; }));
  REQUIRE(came == tcp::greeting::outcome::accept);
  return g.take_line();
}

}  // namespace rma::test
