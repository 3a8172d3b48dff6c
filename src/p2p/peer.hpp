// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state that a messenger keeps for another rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/shm/ring.hpp"
#include "p2p/eager_ring.hpp"
#include "p2p/messenger.hpp"

namespace rma::detail {

/// A request that arrived before a matching send.
struct messenger::early_entry : match_entry {
  transfer_request where{};
  bool wants_word = false;
  early_entry* next_free = nullptr;
};

/// The write of one slot.
struct messenger::ring_write : fabric::completion {
  ring_out_state* out = nullptr;
  std::uint32_t slot = 0;
};

/// A ring in another rank's memory, which this one writes.
struct messenger::ring_out_state {
  ring_out_state(std::uint32_t slots, messenger& of, int rank) : ring(slots), writes(slots), owner(&of), peer(rank) {
    for (ring_write& w : writes) w.out = this;
  }
  ring_source ring;
  std::vector<ring_write> writes;
  messenger* owner;
  int peer;
  fabric::region_key region{};
  bool open = false;
  bool signals = false;                 ///< each write has an immediate
  std::uint32_t unposted = 0;           ///< the number of filled slots at the end that are not posted
  std::vector<std::uint32_t> resend{};  ///< slots whose write has failed
};

struct messenger::peer {
  int rank = -1;
  bool gone = false;                ///< dead, or has left the job and all its messages have been handled
  bool is_busy = false;             ///< in `busy_`
  std::uint16_t sequence = 0;       ///< number of the next envelope
  std::uint32_t used = 0;           ///< units of the peer's memory for unexpected messages that are in use
  std::uint32_t freed = 0;          ///< units of this rank's memory that are free, which the peer does not know yet
  std::uint32_t held = 0;           ///< units of this rank's memory in use by unexpected messages
  std::uint32_t lent = 0;           ///< units beyond the peer's share, which are returned first
  bool is_crowded = false;          ///< it has no credit for one more announcement
  std::uint16_t seen = 0;           ///< envelopes that have arrived from it
  shm::line_pair* lines = nullptr;  ///< for short messages within the node; else null
  context::peer* before_lines = nullptr;                 ///< messages that wait for room there must be sent first
  std::size_t eager_max = 0;                             ///< longest eager message to it
  std::size_t piece_max = 0;                             ///< most data bytes in one message
  rendezvous_kind kind = rendezvous_kind::stream;        ///< protocol for messages announced to it
  rendezvous_kind early_kind = rendezvous_kind::stream;  ///< protocol of requests before an announcement
  bool asks = false;                                     ///< receives send such requests
  bool sends_long = true;               ///< its last message to this rank was announced, or it has sent none
  std::int64_t left_ns = 0;             ///< when it was found to have left the job
  std::uint64_t left = 0, arrived = 0;  ///< message counters for a trace
  bool has_requests = false;            ///< `requests_` has some of its receives
  bool has_used = false;                ///< `used_` has some of its receives
  std::uint16_t eager_next = 0;         ///< next entry of `eager_sent`
  /// The last eager envelopes, for requests that cross them; null while it sends no requests.
  std::unique_ptr<std::array<envelope, 16>> eager_sent{};
  std::uint32_t eager_count = 0;
  std::unique_ptr<ring_out_state> ring_out{};
  std::unique_ptr<ring_sink> ring_in{};
  fabric::region_key ring_region{};
  bool rings = false;         ///< it may have a ring here
  bool ring_signals = false;  ///< its writes have immediates: the ring is not polled
  bool ring_in_open = false;
  bool ring_hinted = false;        ///< the program has announced many messages from it
  std::uint32_t ring_wishes = 0;   ///< eager messages that arrived while it had no ring
  std::uint32_t ring_traffic = 0;  ///< recent messages through its ring
  std::uint32_t ring_freed = 0;    ///< free slots of which the peer does not know yet
  std::uint64_t ring_to_come = 0;  ///< total messages written when the ring is closed; ~0: not known yet
  std::int64_t ring_used_ns = 0;   ///< idle since this time; 0: in use
  message_pool::queue delayed{};
  message_operation::list queued;   ///< sends whose envelopes have not been sent
  message_operation::list streams;  ///< sends whose data are sent in messages
};

/// Count an envelope sent to the peer, and one that has arrived from it.
inline void messenger::dequeue(peer& p) noexcept {
  ++p.sequence;
  if (trace_ != nullptr) [[unlikely]]
    trace_message(p, p.left++, true);
}
inline void messenger::arrive(peer& p) noexcept {
  ++p.seen;
  if (trace_ != nullptr) [[unlikely]]
    trace_message(p, p.arrived++, false);
}

}  // namespace rma::detail
