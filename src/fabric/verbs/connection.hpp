// SPDX-License-Identifier: Apache-2.0
/// \file
/// One reliable connection: its queue pair, how far its handshake is, and what is in its send queue.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/verbs/bulk.hpp"
#include "fabric/verbs/handshake.hpp"
#include "fabric/verbs/registration_cache.hpp"

namespace rma::verbs {

inline constexpr std::int64_t doubt_ns = 2'000'000'000;  ///< who lives has answered by then

/// How far a connection is. From `asking` and `answering` to `ready`; from anywhere to `broken` (an operation ended
/// with an error) or `dead` (the peer is).
enum class connection_state : std::uint8_t { asking, answering, ready, broken, dead };

/// A completion_action ends when an entry of a send queue is over.
struct completion_action {
  std::uint64_t token = 0;       ///< 0: nobody waits for it
  std::byte* copy_to = nullptr;  ///< what was read goes from the buffer to here
  std::uint32_t bytes = 0;
  std::int32_t buffer = -1;                    ///< of the pool, given back
  registration_cache::entry* lease = nullptr;  ///< on a registration, given back
  bool word = false;                           ///< the buffer is one of words
  bool message = false;                        ///< what is in the buffer is sent again if the connection breaks
  bool silent = false;                         ///< nobody waits for its end: a message, or write_word
  bool piece = false;                          ///< of a transfer in stages, whose number the token is

  /// Nothing of ours is given back.
  [[nodiscard]] bool plain() const noexcept { return buffer < 0 && lease == nullptr && !piece && !silent; }
};

struct connection {
  connection(int rank, channel what, std::uint32_t number) noexcept : peer(rank), of(what), index(number) {}

  const int peer;
  const channel of;
  const std::uint32_t index;
  std::atomic<connection_state> state = connection_state::asking;
  ibv_qp* queue_pair = nullptr;             ///< made by the connection manager, destroyed with the fabric
  std::atomic<bool> left = false;           ///< the peer has left the job
  std::atomic<std::int64_t> heard_ns = 0;   ///< when the peer's connection manager said something
  std::atomic<std::size_t> inline_max = 0;  ///< bytes that an entry can carry itself

  // ---- of the connection manager, guarded by its lock
  // ------------------------------------------------------------------
  manager_address connection_manager;  ///< the peer's
  std::uint32_t first_packet = 0;      ///< number that our packets start with
  bool asked = false;                  ///< by us
  std::uint16_t generation = 0;        ///< broken and made anew so many times
  std::uint32_t over = 0;              ///< bulk receives, when this generation began
  std::uint32_t peers_over = 0;        ///< the same of the peer's; the owner reads it once the connection is ready
  std::optional<hello> newer;          ///< the peer has begun the next generation
  std::int64_t due_ns = 0;             ///< when to say it again
  std::int64_t pause_ns = 0;
  unsigned asks = 0;  ///< that went out for this generation

  // ---- of the progress lock ---------------------------------------------------------------------------------
  std::vector<completion_action> ring;    ///< entry n of the send queue at n & mask; one stays free
  std::uint32_t mask = 0;                 ///< its size, a power of two, less one; 0 before it is made
  std::uint32_t head = 0;                 ///< entries posted, ever
  std::uint32_t tail = 0;                 ///< of these, over
  std::uint32_t unsignalled = 0;          ///< posted since the last one that says when it is over
  std::uint32_t silent = 0;               ///< of those that are not over
  std::uint32_t burst = 0;                ///< the first entry since there was none that somebody waits for
  std::uint32_t stages = 0;               ///< transfers in stages under way: nothing may overtake them
  bool listed = false;                    ///< among those with an unsignalled tail
  bool abandoned = false;                 ///< what was under way when it broke is over
  std::uint16_t sent = 0;                 ///< number of the next message
  std::uint16_t received = 0;             ///< of the next one from there
  std::vector<completion_action> resend;  ///< messages of the last generation that may not have come through, in order
  std::vector<completion_action>
      unresolved;  ///< operations of it that failed: because they were refused, or the peer was dying
  std::int64_t doubt_since_ns = 0;
  std::unique_ptr<bulk_channel> bulk;  ///< of a bulk channel that is used

  [[nodiscard]] std::uint32_t room() const noexcept { return mask - (head - tail); }
  completion_action& at(std::uint32_t n) noexcept { return ring[n & mask]; }
};

}  // namespace rma::verbs
