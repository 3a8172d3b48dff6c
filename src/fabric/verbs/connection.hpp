// SPDX-License-Identifier: Apache-2.0
/// \file
/// One reliable connection: its queue pair, the state of its handshake, and the entries of its send queue.
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

inline constexpr std::int64_t doubt_ns = 2'000'000'000;  ///< a live peer has replied by then

/// The state of a connection. It changes from `asking` and `answering` to `ready`, and from any state to `broken` (an
/// operation ended with an error) or `dead` (the peer is dead).
enum class connection_state : std::uint8_t { asking, answering, ready, broken, dead };

/// The action at the completion of an entry of a send queue.
struct completion_action {
  std::uint64_t token = 0;       ///< 0: no completion is reported
  std::byte* copy_to = nullptr;  ///< destination of data read into the buffer
  std::uint32_t bytes = 0;
  std::int32_t buffer = -1;                    ///< buffer of the pool, to be returned
  registration_cache::entry* lease = nullptr;  ///< on a registration, to be released
  bool word = false;                           ///< the buffer is of the pool of words
  bool message = false;                        ///< the buffer's message is sent again if the connection breaks
  bool silent = false;                         ///< its completion is not reported: a message, or write_word
  bool piece = false;                          ///< a piece of a bounced transfer, whose number is the token

  /// True if it has no resources to return.
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
  std::atomic<std::int64_t> heard_ns = 0;   ///< time of the last datagram from the peer's connection manager
  std::atomic<std::size_t> inline_max = 0;  ///< bytes of inline data of an entry

  // ---- owned by the connection manager, guarded by its lock
  // ------------------------------------------------------------------
  manager_address connection_manager;  ///< the peer's
  std::uint32_t first_packet = 0;      ///< our first packet sequence number
  bool asked = false;                  ///< we have asked for it
  std::uint16_t generation = 0;        ///< number of times it was broken and reconnected
  std::uint32_t over = 0;              ///< complete bulk receives at the start of this generation
  std::uint32_t peers_over = 0;        ///< those of the peer; the owner reads it once the connection is ready
  std::optional<hello> newer;          ///< the peer has begun the next generation
  std::int64_t due_ns = 0;             ///< time of the next repetition
  std::int64_t pause_ns = 0;
  unsigned asks = 0;  ///< asks sent for this generation

  // ---- under the progress lock ------------------------------------------------------------------------------
  std::vector<completion_action> ring;        ///< entry n of the send queue at n & mask; one stays free
  std::uint32_t mask = 0;                     ///< its size, a power of two, minus one; 0 before it is made
  std::uint32_t head = 0;                     ///< entries posted so far
  std::uint32_t tail = 0;                     ///< number of complete entries
  std::uint32_t unsignalled = 0;              ///< entries posted since the last signaled one
  std::uint32_t silent = 0;                   ///< outstanding silent entries
  std::uint32_t burst = 0;                    ///< first entry since none with a reported completion was outstanding
  std::uint32_t stages = 0;                   ///< outstanding bounced transfers: nothing may overtake them
  bool listed = false;                        ///< in the list of connections with an unsignaled tail
  bool abandoned = false;                     ///< entries outstanding at its break have been ended
  std::uint16_t sent = 0;                     ///< number of the next message
  std::uint16_t received = 0;                 ///< number of the next message from the peer
  std::vector<completion_action> resend;      ///< messages of the last generation that may be lost, in order
  std::vector<completion_action> unresolved;  ///< its failed operations: either refused, or the peer was dying
  std::int64_t doubt_since_ns = 0;
  std::unique_ptr<bulk_channel> bulk;  ///< only of a bulk channel in use

  [[nodiscard]] std::uint32_t room() const noexcept { return mask - (head - tail); }
  completion_action& at(std::uint32_t n) noexcept { return ring[n & mask]; }
};

}  // namespace rma::verbs
