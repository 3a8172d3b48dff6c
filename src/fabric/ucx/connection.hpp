// SPDX-License-Identifier: Apache-2.0
/// \file
/// The UCX fabric knows this of one peer, and of what it has under way.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fabric/messaged/messaged_fabric.hpp"
#include "rma/error.hpp"

namespace rma::ucx {

class ucx_fabric;

using messaged::batch_bytes;
using messaged::departure;
using messaged::own_kind;
using messaged::under_way_max;  ///< UCX itself would take any number

inline constexpr unsigned message_id = 1;  ///< of UCX's active messages: all of this fabric's are one kind
inline constexpr std::size_t handler_message_bytes = 4096;  ///< that a message carries where UCX has puts and gets

/// A key to a region of the peer, asked for at first use.
struct remote_key {
  ucp_rkey_h handle = nullptr;
  bool refused = false;  ///< there is no such region
};

struct outgoing;

struct connection final : messaged::peer {
  connection(ucx_fabric& fabric, int its_rank) noexcept : peer(its_rank), owner(&fabric) { met = true; }

  ucx_fabric* const owner;
  ucp_ep_h endpoint = nullptr;  ///< made when something goes there
  bool introduced = false;      ///< a message has gone there
  std::unordered_map<std::uint64_t, remote_key> keys;
  std::uint64_t last_key = 0;
  ucp_rkey_h last_handle = nullptr;
  outgoing* batch = nullptr;              ///< messages that have not left yet
  std::vector<std::uint32_t> immediates;  ///< of unflushed writes: the peer is told when they are in its memory
  std::uint32_t flushes = 0;              ///< under way
  std::uint32_t under_way = 0;            ///< requests of UCX that have not ended
  status write_error = status::done;      ///< of a write since the last flush
  std::vector<std::uint64_t> unresolved;  ///< operations that failed while it was not known whether the peer is dead

  /// Whether a write may not be in the peer's memory yet.
  [[nodiscard]] bool unplaced() const noexcept { return unflushed != 0 || flushes != 0; }
  [[nodiscard]] bool idle() const noexcept override { return peer::idle() && under_way == 0 && flushes == 0; }
};

inline connection& connection_of(messaged::peer& p) noexcept { return static_cast<connection&>(p); }

/// A request of UCX: what ends when it is over. From a free list.
struct operation {
  ucx_fabric* owner = nullptr;
  connection* to = nullptr;
  std::uint64_t token = 0;
  std::uint32_t pieces = 0;  ///< requests that are not over, and one while they are being posted
  bool flush = false;
  bool told = false;             ///< it is over for who waits for it
  std::uint64_t operand = 0;     ///< of an atomic
  std::uint64_t reply = 0;       ///< and what it finds
  std::uint64_t* old = nullptr;  ///< where that goes
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
  std::array<std::byte, batch_bytes> bytes;
};

}  // namespace rma::ucx
