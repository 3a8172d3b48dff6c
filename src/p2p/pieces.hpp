// SPDX-License-Identifier: Apache-2.0
/// \file
/// One side of a message whose data are sent in lists of pieces over the bulk channel (rendezvous/sgrs.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "channel/bulk_order.hpp"
#include "core/assert.hpp"
#include "datatype/cursor.hpp"
#include "fabric/fabric.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

class messenger;
struct message_operation;

/// A transfer outlives its operation while the fabric may use its record.
struct piece_transfer : fabric::completion, bulk_turn {
  /// The message that the receiver has sent to the sender.
  enum class word : std::uint8_t { none, finished, stream };

  messenger* owner = nullptr;
  message_operation* op = nullptr;  ///< null: the operation has ended, and posted receives get empty sends
  fabric::network* network = nullptr;
  int peer = -1;
  bool sends = false;
  bool is_posted = false;  ///< nothing more will be posted
  bool is_cut = false;     ///< `list` is filled but not posted: there was no room
  bool is_given_up = false;
  word answer = word::none;
  status result = status::done;
  std::byte* base = nullptr;
  Layout layout{};
  std::optional<cursor> at{};
  std::size_t left = 0;         ///< bytes that are in no list yet
  std::size_t part_bytes = 0;   ///< bytes of each list but the last
  std::uint32_t granted = 0;    ///< receives posted by the peer for which nothing has been sent
  std::uint32_t under_way = 0;  ///< pending lists
  std::uint64_t arrived = 0;    ///< bytes that have arrived
  std::vector<fabric::local_slice> list{};
  piece_transfer* next_free = nullptr;

  void cut_next() {
    if (is_cut) return;
    RMA_ASSERT(left != 0 && part_bytes != 0 && at.has_value());
    is_cut = true;
    list.clear();
    std::size_t bytes = std::min(part_bytes, left);
    left -= bytes;
    while (bytes != 0) {
      const block b = at->front();
      const std::size_t part = std::min(b.bytes, bytes);
      std::byte* const first = base + b.offset;
      if (!list.empty() && static_cast<std::byte*>(list.back().at) + list.back().bytes == first) {
        list.back().bytes += part;
      } else {
        list.push_back({first, part});
      }
      at->advance_in_block(part);
      bytes -= part;
    }
    RMA_ASSERT(!list.empty());
  }
  [[nodiscard]] bool is_all_cut() const noexcept { return left == 0 && !is_cut; }
};

/// A free list that grows to the largest number of transfers pending at once.
class piece_pool {
 public:
  piece_transfer& take() {
    if (free_ == nullptr) free_ = &all_.emplace_back();
    piece_transfer& t = *free_;
    free_ = t.next_free;
    RMA_ASSERT(t.op == nullptr && !t.in_queue.is_linked());
    t.is_posted = t.is_cut = t.is_given_up = false;
    t.answer = piece_transfer::word::none;
    t.result = status::done;
    t.left = t.granted = t.under_way = 0;
    t.arrived = 0;
    return t;
  }
  void give_back(piece_transfer& t) noexcept {
    RMA_ASSERT(t.is_posted && t.under_way == 0 && !t.in_queue.is_linked());
    t.op = nullptr;
    t.at.reset();
    t.layout = Layout();
    t.next_free = free_;
    free_ = &t;
  }

 private:
  std::list<piece_transfer> all_;
  piece_transfer* free_ = nullptr;
};

/// Bytes of the shortest contiguous piece, or less than `enough` if one is shorter than that.
std::size_t shortest_piece(const Layout& layout, std::size_t enough) noexcept;

}  // namespace rma::detail
