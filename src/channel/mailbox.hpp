// SPDX-License-Identifier: Apache-2.0
/// \file
/// Pieces of small collectives on their way between two ranks, matched by team, sequence and tag.
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

  /// Sends `data` to `to` (world rank); copied before the return.
  void send(int to, std::uint64_t team, std::uint64_t sequence, std::uint32_t tag,
            std::span<const std::byte> data) noexcept;
  /// Takes the message if it is there; its size must be that of `data`.
  bool try_receive(const address& from, std::span<std::byte> data) noexcept { return take(from, data); }
  /// Waits for the message; its size must be that of `data`. `peer_failed` if `failed` says so.
  template <class Failed>
  status receive(const address& from, std::span<std::byte> data, Failed&& failed) noexcept {
    const auto lost = [&]() noexcept {
      const status s = failed();
      if (s != status::done || !ctx_.gone(from.source)) return s;
      ctx_.blame(from.source);
      return status::peer_failed;
    };
    if (take_soon(from, data)) return status::done;
    return ctx_.wait_for_message([&]() noexcept { return take(from, data); }, lost);
  }

 private:
  struct letter {
    std::vector<std::byte> data;
    std::size_t total = 0;  ///< bytes that will come
  };
  struct header;
  static void on_piece(void* self, int source, std::span<const std::byte> payload) noexcept;
  bool take(const address& from, std::span<std::byte> data) noexcept;
  bool take_soon(const address& from, std::span<std::byte> data) noexcept;
  bool take_locked(const address& from, std::span<std::byte> data) noexcept;

  context& ctx_;
  std::map<address, letter> letters_;
};

}  // namespace rma::detail
