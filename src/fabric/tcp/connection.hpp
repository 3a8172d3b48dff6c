// SPDX-License-Identifier: Apache-2.0
/// \file
/// The TCP fabric knows this of one peer, and of what it has under way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "boot/socket.hpp"
#include "fabric/fabric.hpp"
#include "fabric/messaged/peer.hpp"
#include "fabric/tcp/byte_queue.hpp"
#include "fabric/tcp/silence.hpp"
#include "fabric/tcp/wire.hpp"

namespace rma::tcp {

/// A bulk send or receive.
struct bulk_entry {
  std::array<fabric::local_slice, bulk_pieces_max> pieces;
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::uint64_t token = 0;

  [[nodiscard]] std::span<const fabric::local_slice> list() const noexcept { return {pieces.data(), count}; }
};

/// At most bulk_depth of them, the oldest first.
template <class T>
class bulk_line {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool full() const noexcept { return size_ == bulk_depth; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return ring_[(first_ + i) % bulk_depth]; }
  T& add() noexcept { return (*this)[size_++]; }
  void drop_first() noexcept {
    first_ = (first_ + 1) % bulk_depth;
    --size_;
  }

 private:
  std::array<T, bulk_depth> ring_{};
  std::size_t first_ = 0, size_ = 0;
};

/// The bulk channel with one peer; made when it is first used.
struct bulk_channel {
  bulk_line<bulk_entry> sends, receives;
  std::size_t left = 0;              ///< of the sends: their data are on the way
  bulk_line<std::uint64_t> granted;  ///< bytes of the peer's receives that no send has left for
};

///     none --something to say--> asking --welcome--> met
///     none --no descriptor for it--> postponed --a while later--> asking
///                                asking --"mine comes"--> awaited --introduction--> met
///     none, postponed, awaited --introduction of the peer--> met
///                      (asking: of the two attempts the lower rank's counts)
///
/// A peer that is awaited may compute for long before it comes. If it dies the job says so.
enum class phase : std::uint8_t { none, postponed, asking, awaited, met };

struct connection final : messaged::peer {
  using peer::peer;

  phase way = phase::none;
  unsigned attempts = 0;
  boot::unique_fd line;
  silence quiet;  ///< of the line

  byte_queue out;               ///< not taken by the kernel yet
  bool waits_for_room = false;  ///< the kernel is watched for it

  byte_queue in;                             ///< received, and not looked at
  bool unread = false;                       ///< listed as one with whole messages in there
  std::vector<fabric::local_slice> landing;  ///< memory that the next bytes go to, from `landed` on
  std::size_t landed = 0;
  std::uint64_t landing_key = 0;  ///< of a put: the region
  bool lands_bulk = false;        ///< what lands is for the first bulk receive
  std::size_t bulk_bytes = 0;     ///< the same
  bool answers = false;           ///< what lands is the first question's answer
  std::size_t dropping = 0;       ///< the next bytes go nowhere

  std::unique_ptr<bulk_channel> bulk;  ///< null until it is used

  [[nodiscard]] bool idle() const noexcept override {
    return peer::idle() && (bulk == nullptr || bulk->sends.size() == 0);
  }
  [[nodiscard]] bool lands() const noexcept { return landed < landing.size(); }
};

inline connection& connection_of(messaged::peer& p) noexcept { return static_cast<connection&>(p); }

}  // namespace rma::tcp
