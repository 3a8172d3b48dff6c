// SPDX-License-Identifier: Apache-2.0
/// \file
/// The bulk channel: a second connection with a peer, made at first use, with receives of its own. Data go directly
/// from the gather list of a send into the scatter list of the receive that the peer has posted, in order. A send
/// without a receive waits for one: the adapters retry.
///
///   flowing  -- a send is longer than its receive, or fails otherwise: an error at both ends -->  draining
///   draining -- the queue pair has returned all entries, and has been connected again       -->  flowing
///
/// With the new connection each side announces how many of its receives are complete. Sends that the peer has received
/// are complete, too; the others, which the queue pair returned, are posted again, in order: an error affects one send
/// and its receive. Send-gather/receive-scatter (SGRS) uses the channel, since it needs receives of its own.
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

inline constexpr std::size_t bulk_pieces_max = 60;  ///< an entry of the queue has 1 KiB with these
inline constexpr std::uint32_t bulk_depth = 16;     ///< outstanding sends, and receives, of one channel; a power of two

/// A send or a receive.
struct bulk_entry {
  std::array<ibv_sge, bulk_pieces_max> pieces;
  std::array<registration_cache::entry*, bulk_pieces_max> leases;  ///< on registrations, to be released
  std::uint32_t piece_count = 0;
  std::uint32_t lease_count = 0;
  std::uint64_t token = 0;
  status result = status::done;  ///< error of a failed entry, unless its peer is dead
};

/// The sends, or the receives, of one channel, the oldest first: entries in the queue pair, then entries not posted
/// yet.
class bulk_line {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
  [[nodiscard]] bool full() const noexcept { return end_ - first_ == bulk_depth; }
  [[nodiscard]] bool all_posted() const noexcept { return next_ == end_; }
  /// A free entry for the caller to fill in; `add` follows.
  [[nodiscard]] bulk_entry& room() noexcept { return at(end_); }
  void add() noexcept { ++end_; }
  /// The next entry to post; `posted` follows.
  [[nodiscard]] bulk_entry& next() noexcept { return at(next_); }
  void posted() noexcept {
    ++next_;
    ++in_queue_;
  }
  /// The number of entries in the queue pair.
  [[nodiscard]] std::uint32_t in_queue() const noexcept { return in_queue_; }
  void given_back() noexcept { --in_queue_; }
  /// Removes the oldest entry, which is complete: the next `add` may overwrite it.
  [[nodiscard]] bulk_entry& take_first() noexcept {
    ++over_;
    return at(first_++);
  }
  /// The number of complete entries, as the peer counts them.
  [[nodiscard]] std::uint32_t over() const noexcept { return over_; }
  /// Called when the queue pair and its entries are lost: they are to be posted again.
  void start_again() noexcept {
    next_ = first_;
    in_queue_ = 0;
  }
  /// The number of oldest entries that are complete, given the peer's count. An entry that failed before it was sent
  /// has no receive there: the next one gets its number.
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
  bool flowing = false;                ///< otherwise it waits for its connection
  bool draining = false;               ///< the queue pair has not returned all entries
  std::int64_t broken_ns = 0;          ///< when the connection broke
  std::vector<bulk_entry> unresolved;  ///< failed entries: either refused, or the peer was dying
};

}  // namespace rma::verbs
