// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the UCX fabric knows of one peer, and what it has under way.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rma/error.hpp"

namespace rma::ucx {

class ucx_fabric;

inline constexpr unsigned message_id = 1;               ///< of UCX's active messages: all of this fabric's are one kind
inline constexpr std::size_t message_bytes = 4096;      ///< that a message carries
inline constexpr std::uint32_t under_way_max = 1024;    ///< to one peer; UCX itself would take any number
inline constexpr std::size_t batch_bytes = 63 << 10;    ///< of messages to one peer that travel together, at most: what
                                                        ///< TCP carries as one fragment
inline constexpr std::size_t batched_bytes = 33 << 10;  ///< that a message there carries: 32 KiB and what is said about
                                                        ///< them. The target works on one while the next is sent
inline constexpr std::size_t alone_bytes = 32 << 10;    ///< a message of so many does not wait for others
inline constexpr unsigned batch_enough_messages = 64;   ///< it does not wait for more
inline constexpr unsigned place_bits = 24;              ///< of an operation, among all

/// `left`: in good order, and has said so. `unreachable`: UCX has no way there, and nobody has been told yet. `broken`:
/// nothing goes there any more. `dead`: the job says so.
enum class connection_state : std::uint8_t { alive, left, unreachable, broken, dead };

/// When a message leaves: `soon` is with others, at the next look at the network, or when the batch has enough.
enum class departure : std::uint8_t { now, soon };

/// A key to a region of the peer, asked for at first use.
struct remote_key {
  ucp_rkey_h handle = nullptr;
  bool refused = false;  ///< there is no such region
};

struct outgoing;

struct connection {
  connection(ucx_fabric& fabric, int rank) noexcept : owner(&fabric), peer(rank) {}

  ucx_fabric* const owner;
  const int peer;
  connection_state state = connection_state::alive;
  ucp_ep_h endpoint = nullptr;  ///< made when something goes there
  bool introduced = false;      ///< a message has gone there
  bool understood = false;      ///< the peer knows that this rank leaves, and has nothing under way here
  std::unordered_map<std::uint64_t, remote_key> keys;
  std::uint64_t last_key = 0;
  ucp_rkey_h last_handle = nullptr;
  outgoing* batch = nullptr;              ///< messages that have not left yet
  bool in_batches = false;                ///< among those with a batch, or which had one
  std::uint32_t questions = 0;            ///< made of messages, and not answered yet
  std::vector<std::uint64_t> written;     ///< tokens of writes that no flush has been started for
  std::vector<std::uint32_t> immediates;  ///< of these: the peer is told when they are in its memory
  std::uint32_t unflushed = 0;            ///< writes that no flush has been started for
  std::uint32_t flushes = 0;              ///< under way
  std::uint32_t under_way = 0;            ///< operations that have not ended
  status write_error = status::done;      ///< of a write since the last flush
  status put_error = status::done;        ///< of a put of the peer's, here, since it last asked
  std::vector<std::uint64_t> unresolved;  ///< operations that failed while it was not known whether the peer is dead
  std::int64_t doubt_until_ns = 0;        ///< the endpoint has failed; not 0: when the peer is taken for lost
  bool listed = false;                    ///< among those with unflushed writes

  /// Whether a write may not be in the peer's memory yet.
  [[nodiscard]] bool unplaced() const noexcept { return unflushed != 0 || flushes != 0; }
  [[nodiscard]] bool idle() const noexcept { return under_way == 0 && !unplaced(); }
};

/// A request of UCX: what ends when it is over. From a free list.
struct operation {
  ucx_fabric* owner = nullptr;
  connection* to = nullptr;
  std::uint64_t token = 0;
  std::uint64_t place = 0;   ///< among all operations
  std::uint64_t asked = 0;   ///< made of messages: what the peer's answer has to repeat
  std::uint32_t pieces = 0;  ///< requests that are not over, and one while they are being posted
  bool flush = false;
  std::vector<fabric::local_slice> into;  ///< of a get made of messages
  bool told = false;                      ///< it is over for who waits for it
  std::uint64_t operand = 0;              ///< of an atomic
  std::uint64_t reply = 0;                ///< and what it finds
  std::uint64_t* old = nullptr;           ///< where that goes
  status result = status::done;
  std::vector<std::uint64_t> written;  ///< of a flush: the writes that it ends
  std::vector<std::uint32_t> immediates;
  operation* next_free = nullptr;
};

/// Messages on their way, in the order they were made: UCX reads them after the call. From a free list.
struct outgoing {
  connection* to = nullptr;
  ucx_fabric* owner = nullptr;
  outgoing* next_free = nullptr;
  std::size_t filled = 0;  ///< bytes
  unsigned messages = 0;
  std::array<std::byte, batch_bytes> bytes;
};

}  // namespace rma::ucx
