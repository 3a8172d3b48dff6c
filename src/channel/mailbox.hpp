// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages of small collectives between two ranks, matched by team, sequence number and tag.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "channel/context.hpp"
#include "core/assert.hpp"

namespace rma::detail {

class mailbox {
 public:
  explicit mailbox(context& ctx);

  struct address {
    std::uint64_t team;
    std::uint64_t sequence;
    std::uint32_t tag;
    int source;  ///< world rank
    auto operator<=>(const address&) const = default;
  };

  /// Sends `data` to world rank `to`; the data are copied before it returns.
  void send(int to, std::uint64_t team, std::uint64_t sequence, std::uint32_t tag,
            std::span<const std::byte> data) noexcept;
  /// Takes the message if it has arrived, else `not_yet`. `bad_size` if its length differs from that of `data`.
  status try_receive(const address& from, std::span<std::byte> data) noexcept { return take(from, data); }
  /// Waits for the message. `peer_failed` by `failed`, `bad_size` as above.
  template <class Failed>
  status receive(const address& from, std::span<std::byte> data, Failed&& failed) noexcept {
    const auto gone = [&]() noexcept {
      const status s = failed();
      if (s != status::done || !ctx_.gone(from.source)) return s;
      ctx_.set_last_failed(from.source);
      return status::peer_failed;
    };
    status taken = take_soon(from, data);
    if (taken != status::not_yet) return taken;
    const auto there = [&]() noexcept { return (taken = take(from, data)) != status::not_yet; };
    const status waited = ctx_.wait({.until = there, .fails_if = gone});
    return waited == status::done ? taken : waited;
  }

 private:
  struct collective_message {
    std::vector<std::byte> data;
    std::size_t total = 0;  ///< length of the whole message
  };
  struct header;
  static void on_piece(void* self, int source, std::span<const std::byte> payload) noexcept;
  status take(const address& from, std::span<std::byte> data) noexcept;
  status take_soon(const address& from, std::span<std::byte> data) noexcept;
  status take_locked(const address& from, std::span<std::byte> data) noexcept;

  context& ctx_;
  std::map<address, collective_message> messages_;
};

}  // namespace rma::detail
