// SPDX-License-Identifier: Apache-2.0
/// \file
/// The UCX fabric's state of one peer, and of its outstanding operations.
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
using messaged::under_way_max;  ///< UCX itself has no limit

inline constexpr unsigned message_id = 1;                   ///< id of UCX's active messages: this fabric uses one
inline constexpr std::size_t handler_message_bytes = 4096;  ///< payload of a message where UCX has puts and gets

/// A key to a region of the peer, requested at first use.
struct remote_key {
  ucp_rkey_h handle = nullptr;
  bool refused = false;  ///< the peer has no such region
};

struct outgoing;

struct connection final : messaged::peer {
  connection(ucx_fabric& fabric, int its_rank) noexcept : peer(its_rank), owner(&fabric) { met = true; }

  ucx_fabric* const owner;
  ucp_ep_h endpoint = nullptr;  ///< made with the first operation
  bool introduced = false;      ///< a message has been sent there
  std::unordered_map<std::uint64_t, remote_key> keys;
  std::uint64_t last_key = 0;
  ucp_rkey_h last_handle = nullptr;
  outgoing* batch = nullptr;              ///< messages that have not been sent yet
  std::vector<std::uint32_t> immediates;  ///< immediates of unflushed writes: reported to the peer after placement
  std::uint32_t flushes = 0;              ///< outstanding
  std::uint32_t under_way = 0;            ///< outstanding requests of UCX
  status write_error = status::done;      ///< error of a write since the last flush
  std::vector<std::uint64_t> unresolved;  ///< failed operations, while it is unknown whether the peer is dead

  /// True if a write may not be in the peer's memory yet.
  [[nodiscard]] bool unplaced() const noexcept { return unflushed != 0 || flushes != 0; }
  [[nodiscard]] bool idle() const noexcept override { return peer::idle() && under_way == 0 && flushes == 0; }
};

inline connection& connection_of(messaged::peer& p) noexcept { return static_cast<connection&>(p); }

/// The completion action of requests of UCX. From a free list.
struct operation {
  ucx_fabric* owner = nullptr;
  connection* to = nullptr;
  std::uint64_t token = 0;
  std::uint32_t pieces = 0;  ///< outstanding requests, and one while they are being posted
  bool flush = false;
  bool reported = false;         ///< its completion has been reported
  std::uint64_t operand = 0;     ///< operand of an atomic
  std::uint64_t reply = 0;       ///< its result
  std::uint64_t* old = nullptr;  ///< destination of the result
  status result = status::done;
  std::vector<std::uint64_t> written;  ///< tokens of the writes that a flush completes
  std::vector<std::uint32_t> immediates;
  operation* next_free = nullptr;
};

/// A batch of messages, in order: UCX may read it after the call that sends it. From a free list.
struct outgoing {
  connection* to = nullptr;
  ucx_fabric* owner = nullptr;
  outgoing* next_free = nullptr;
  std::size_t filled = 0;  ///< bytes
  std::array<std::byte, batch_bytes> bytes;
};

}  // namespace rma::ucx
