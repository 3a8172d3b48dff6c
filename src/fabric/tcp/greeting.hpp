// SPDX-License-Identifier: Apache-2.0
/// \file
/// The handshake of two ranks on a new connection. Each proves that it knows the job's key; a stranger receives only a
/// random number.
///
///     connecting rank                  listening rank
///                  <--- challenge ---  a number
///     introduction ----------------->  its rank, the peer's rank, another number, proof
///                  <--- verdict -----  welcome, or "mine comes"; proof
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "boot/digest.hpp"
#include "boot/socket.hpp"

namespace rma::tcp {

enum class word : std::uint32_t { accept, mine_comes };

struct challenge {
  std::array<char, 8> magic{'r', 'm', 'a', 't', 'c', 'p', '1', 0};
  boot::digest nonce{};
};

struct introduction {
  std::uint32_t from = 0, to = 0, size = 0, unused = 0;
  boot::digest nonce{};
  boot::digest proof{};
};

struct verdict {
  word said = word::accept;
  boot::digest proof{};
};

/// One handshake. It does not block: `step` processes the received bytes.
class greeting {
 public:
  enum class outcome : std::uint8_t { goes_on, failed, introduced, accept, mine_comes };

  /// Connects to `peer`.
  greeting(boot::unique_fd line, int rank, int size, std::int64_t until_ns, int peer);
  /// Accepts a connection, and sends the challenge.
  greeting(boot::unique_fd line, int rank, int size, std::int64_t until_ns);

  /// After `introduced` an `answer` is due; all other results but `goes_on` end the handshake.
  outcome step(std::string_view key) noexcept;
  /// False if it cannot be sent.
  bool answer(std::string_view key, word said) noexcept;

  [[nodiscard]] int fd() const noexcept { return line_.get(); }
  [[nodiscard]] boot::unique_fd take_line() noexcept { return std::move(line_); }
  [[nodiscard]] bool connects() const noexcept { return connects_; }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  /// The deadline of the connecting side.
  [[nodiscard]] std::int64_t until_ns() const noexcept { return until_ns_; }
  /// True while the socket is not connected: wait until it is writable.
  [[nodiscard]] bool connecting() const noexcept { return connects_ && phase_ == phase::connecting; }

 private:
  enum class phase : std::uint8_t { connecting, challenged, introduced };

  outcome introduce(std::string_view key) noexcept;
  outcome take_introduction(std::string_view key) noexcept;
  outcome take_verdict(std::string_view key) noexcept;
  bool receive(std::size_t bytes, bool& failed) noexcept;
  bool send(const void* what, std::size_t bytes) noexcept;
  bool prove(std::string_view key, std::string_view who, word said, boot::digest& proof) const noexcept;

  boot::unique_fd line_;
  int rank_, size_, peer_;
  bool connects_;
  phase phase_;
  std::int64_t until_ns_ = 0;
  boot::digest listener_nonce_{}, connector_nonce_{};
  std::array<std::byte, sizeof(introduction)> in_{};
  std::size_t received_ = 0;
};

}  // namespace rma::tcp
