// SPDX-License-Identifier: Apache-2.0
/// \file
/// Two ranks greet each other before a connection carries anything. Each proves that it knows the job's key; a
/// stranger gets a random number and nothing else.
///
///     who connects                     who listens
///                  <--- challenge ---  a number
///     introduction ----------------->  who it is, whom it wants, another number, proof
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

enum class word : std::uint32_t { welcome, mine_comes };

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
  word said = word::welcome;
  boot::digest proof{};
};

/// One handshake. Non-blocking: `step` takes what has come.
class greeting {
 public:
  enum class outcome : std::uint8_t { goes_on, failed, introduced, welcome, mine_comes };

  /// Connects to `peer`.
  greeting(boot::unique_fd line, int rank, int size, std::int64_t until_ns, int peer);
  /// Has been connected to, and challenges.
  greeting(boot::unique_fd line, int rank, int size, std::int64_t until_ns);

  /// `introduced` needs an `answer`; after all others but `goes_on` it is over.
  outcome step(std::string_view key) noexcept;
  /// False if it cannot be sent.
  bool answer(std::string_view key, word said) noexcept;

  [[nodiscard]] int fd() const noexcept { return line_.get(); }
  [[nodiscard]] boot::unique_fd take_line() noexcept { return std::move(line_); }
  [[nodiscard]] bool connects() const noexcept { return connects_; }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  /// When who connects has had its time.
  [[nodiscard]] std::int64_t until_ns() const noexcept { return until_ns_; }
  /// Waits until its socket can be written to: it is not connected yet.
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
