// SPDX-License-Identifier: Apache-2.0
/// \file
/// A messenger knows this of another rank.
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

/// A request that has come before a send for it.
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

/// A ring at another rank, which this one writes.
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
  std::uint32_t unposted = 0;           ///< the last ones that were filled
  std::vector<std::uint32_t> resend{};  ///< slots whose write has failed
};

struct messenger::peer {
  int rank = -1;
  bool gone = false;                      ///< dead, or has left the job, and everything that it has said is known
  bool is_busy = false;                   ///< in `busy_`
  std::uint16_t sequence = 0;             ///< of the next envelope
  std::uint32_t used = 0;                 ///< of the peer's memory for what it does not expect
  std::uint32_t freed = 0;                ///< of this rank's, which the peer does not know yet
  std::uint32_t held = 0;                 ///< of this rank's, by messages that no receive has asked for
  std::uint32_t lent = 0;                 ///< beyond the peer's share, and paid back first
  bool is_crowded = false;                ///< it cannot announce a message more
  std::uint16_t seen = 0;                 ///< envelopes that have come from it
  shm::line_pair* lines = nullptr;        ///< of short messages within the node; else null
  context::peer* before_lines = nullptr;  ///< what waits for room there goes first
  std::size_t eager_max = 0;              ///< bytes of an eager message to it
  std::size_t piece_max = 0;              ///< of data in one message
  rendezvous_kind kind = rendezvous_kind::stream;        ///< for what is announced to it
  rendezvous_kind early_kind = rendezvous_kind::stream;  ///< of receives that ask before a message is announced
  bool asks = false;                                     ///< they do
  bool sends_long = true;                 ///< its last message to this rank was announced, or it has sent none
  std::int64_t left_ns = 0;               ///< when it was seen to have left the job
  std::uint64_t left = 0, arrived = 0;    ///< messages, for a trace
  bool has_requests = false;              ///< of its receives, which no send has used
  bool has_used = false;                  ///< the same, of those that have been used
  std::uint16_t eager_next = 0;           ///< in `eager_sent`
  std::array<envelope, 16> eager_sent{};  ///< the last ones, for requests that cross them
  std::uint32_t eager_count = 0;
  std::unique_ptr<ring_out_state> ring_out{};
  std::unique_ptr<ring_sink> ring_in{};
  fabric::region_key ring_region{};
  bool rings = false;         ///< may have one here
  bool ring_signals = false;  ///< its writes have immediates: nobody looks at it
  bool ring_in_open = false;
  bool ring_hinted = false;        ///< the program has named it as a sender of many
  std::uint32_t ring_wishes = 0;   ///< eager messages that came without one
  std::uint32_t ring_traffic = 0;  ///< that came by it, of late
  std::uint32_t ring_freed = 0;    ///< slots that the peer does not know yet
  std::uint64_t ring_to_come = 0;  ///< how many will have been written when it is closed; ~0: not told yet
  std::int64_t ring_used_ns = 0;   ///< since when nothing has come; 0: something has
  message_pool::queue delayed{};
  message_operation::list queued;   ///< sends whose envelopes have not left
  message_operation::list streams;  ///< sends whose data leave in messages
};

/// An envelope to it, or one from it.
inline void messenger::leave(peer& p) noexcept {
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
