// SPDX-License-Identifier: Apache-2.0
/// \file
/// The TCP fabric's state of one peer, and of its outstanding operations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "boot/socket.hpp"
#include "core/assert.hpp"
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

/// A queue of at most bulk_depth entries, the oldest first.
template <class T>
class bulk_line {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool full() const noexcept { return size_ == bulk_depth; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept {
    RMA_ASSERT(i < size_);
    return ring_[(first_ + i) % bulk_depth];
  }
  T& add() noexcept {
    RMA_ASSERT(!full());
    return (*this)[size_++];
  }
  void drop_first() noexcept {
    RMA_ASSERT(size_ != 0);
    first_ = (first_ + 1) % bulk_depth;
    --size_;
  }

 private:
  std::array<T, bulk_depth> ring_{};
  std::size_t first_ = 0, size_ = 0;
};

/// The bulk channel with one peer, made at first use.
struct bulk_channel {
  bulk_line<bulk_entry> sends, receives;
  std::size_t left = 0;              ///< number of sends whose data have been sent
  bulk_line<std::uint64_t> granted;  ///< sizes of the peer's receives without a send
};

///     none --first message-----> asking --welcome--> met
///     none --no descriptor for it--> postponed --a while later--> asking
///                                asking --"mine comes"--> awaited --introduction--> met
///     none, postponed, awaited --introduction of the peer--> met
///                      (asking: of the two attempts the lower rank's counts)
///
/// An awaited peer may compute for long before it connects. The job reports its death.
enum class phase : std::uint8_t { none, postponed, asking, awaited, met };

struct connection final : messaged::peer {
  using peer::peer;

  phase way = phase::none;
  unsigned attempts = 0;
  boot::unique_fd line;
  silence quiet;  ///< silence of the peer

  byte_queue out;               ///< not yet accepted by the kernel
  bool waits_for_room = false;  ///< epoll watches for it

  byte_queue in;                             ///< received and not processed
  bool unread = false;                       ///< in the list of those with complete messages in `in`
  std::vector<fabric::local_slice> landing;  ///< destination of the next bytes, from `landed` on
  std::size_t landed = 0;
  std::uint64_t landing_key = 0;  ///< key of the region of a put
  bool lands_bulk = false;        ///< the data are for the first bulk receive
  std::size_t bulk_bytes = 0;     ///< bytes of these data
  bool answers = false;           ///< the data are the reply to the first question
  std::size_t dropping = 0;       ///< number of next bytes to discard

  std::unique_ptr<bulk_channel> bulk;  ///< null until first use

  [[nodiscard]] bool idle() const noexcept override {
    return peer::idle() && (bulk == nullptr || bulk->sends.size() == 0);
  }
  [[nodiscard]] bool lands() const noexcept { return landed < landing.size(); }
};

inline connection& connection_of(messaged::peer& p) noexcept { return static_cast<connection&>(p); }

}  // namespace rma::tcp
