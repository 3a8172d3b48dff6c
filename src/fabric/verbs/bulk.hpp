// SPDX-License-Identifier: Apache-2.0
/// \file
/// The bulk channel: a second connection with a peer, made when it is first used, whose receives are its own. Data go
/// straight from the gather list of a send into the scatter list of the receive that the peer has posted, in order. A
/// send without a receive waits for it: the adapters try again.
///
///   flowing  -- a send is longer than its receive, or fails otherwise: an error at both ends -->  draining
///   draining -- the queue pair has given everything back, and the connection is made anew   -->  flowing
///
/// With the new connection each side says how many of its receives are over. Sends that the peer has had are over too;
/// the others, which the queue pair gave back, are posted again, in order: an error is that of one send and its
/// receive. For send-gather/receive-scatter (SGRS), which needs receives of its own.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/verbs/registration_cache.hpp"

namespace rma::verbs {

inline constexpr std::size_t bulk_pieces_max = 60;  ///< an entry of the queue has 1 KiB then
inline constexpr std::uint32_t bulk_depth = 16;     ///< sends, and receives, of one channel at a time; a power of two

/// A send or a receive.
struct bulk_entry {
  std::array<ibv_sge, bulk_pieces_max> pieces;
  std::array<registration_cache::entry*, bulk_pieces_max> leases;  ///< on registrations, given back
  std::uint32_t piece_count = 0;
  std::uint32_t lease_count = 0;
  std::uint64_t token = 0;
  status result = status::done;  ///< of one that failed, unless its peer is dead
};

/// The sends, or the receives, of one channel, the oldest first: those in the queue pair, then those that wait.
class bulk_line {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
  [[nodiscard]] bool full() const noexcept { return end_ - first_ == bulk_depth; }
  [[nodiscard]] bool all_posted() const noexcept { return next_ == end_; }
  /// Where the next one is to be described; `add` follows.
  [[nodiscard]] bulk_entry& room() noexcept { return at(end_); }
  void add() noexcept { ++end_; }
  /// The one to be posted; `posted` follows.
  [[nodiscard]] bulk_entry& next() noexcept { return at(next_); }
  void posted() noexcept {
    ++next_;
    ++in_queue_;
  }
  /// In the queue pair, which has not given them back.
  [[nodiscard]] std::uint32_t in_queue() const noexcept { return in_queue_; }
  void given_back() noexcept { --in_queue_; }
  /// The oldest is over: it may be overwritten from the next `add` on.
  [[nodiscard]] bulk_entry& take_first() noexcept {
    ++over_;
    return at(first_++);
  }
  /// How many are over, as the peer counts them.
  [[nodiscard]] std::uint32_t over() const noexcept { return over_; }
  /// The queue pair is gone, and what was in it.
  void start_again() noexcept {
    next_ = first_;
    in_queue_ = 0;
  }
  /// How many of the oldest are over since the peer says that it has had so many. One that failed before it left has no
  /// receive there: the next one gets its number.
  [[nodiscard]] std::uint32_t had_by_peer(std::uint32_t peers_over) noexcept {
    const auto ahead = static_cast<std::int32_t>(peers_over - over_);
    if (ahead < 0) over_ = peers_over;
    return ahead <= 0 ? 0 : std::min(static_cast<std::uint32_t>(ahead), end_ - first_);
  }

 private:
  bulk_entry& at(std::uint32_t n) noexcept { return ring_[n % bulk_depth]; }

  std::vector<bulk_entry> ring_ = std::vector<bulk_entry>(bulk_depth);
  std::uint32_t first_ = 0, next_ = 0, end_ = 0;
  std::uint32_t in_queue_ = 0;
  std::uint32_t over_ = 0;
};
static_assert((bulk_depth & (bulk_depth - 1)) == 0);

struct bulk_channel {
  bulk_line sends, receives;
  bool flowing = false;                ///< else it waits for its connection
  bool draining = false;               ///< what the queue pair had is still coming back
  std::int64_t broken_ns = 0;          ///< when the connection broke
  std::vector<bulk_entry> unresolved;  ///< failed: because they were refused, or the peer was dying
};

}  // namespace rma::verbs
