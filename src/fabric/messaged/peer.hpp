// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state of one peer of a fabric of messages, for every line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/messaged/wire.hpp"

namespace rma::messaged {

/// A request without a reply yet. From a free list.
struct unanswered {
  own_kind answered_by = own_kind::result;
  std::uint64_t token = 0;
  std::uint64_t* old = nullptr;           ///< receives the old value of an atomic
  std::vector<fabric::local_slice> into;  ///< destination of a get's data
  std::size_t bytes = 0;                  ///< length of a get's data
  std::vector<std::uint64_t> written;     ///< tokens of the writes that the reply to `ask_placed` ends
  unanswered* next = nullptr;
};

/// `left`: in good order, by its goodbye. `broken`: the connection has failed for an unknown reason. `dead`: reported
/// by the job.
enum class connection_state : std::uint8_t { open, left, broken, dead };

struct peer {
  explicit peer(int its_rank) noexcept : rank(its_rank) {}
  peer(const peer&) = delete;
  peer& operator=(const peer&) = delete;
  virtual ~peer() = default;

  /// True if no operation of this rank is pending there.
  [[nodiscard]] virtual bool idle() const noexcept { return questions == 0 && unflushed == 0; }

  const int rank;
  connection_state state = connection_state::open;
  bool begun = false;       ///< a connection has been requested
  bool met = false;         ///< the peer knows of the connection, and will say goodbye
  bool understood = false;  ///< the peer knows that this rank leaves, and has no pending operation here
  std::int64_t suspected_until_ns =
      0;  ///< not 0: the connection has failed, and the peer is presumed lost at this time

  unsigned batched = 0;     ///< messages that wait for others
  bool in_batches = false;  ///< listed as one with a batch

  unanswered* first = nullptr;  ///< questions, in their order
  unanswered* last = nullptr;
  std::uint32_t questions = 0;
  std::size_t asked_bytes = 0;

  std::vector<std::uint64_t> written;  ///< tokens of writes that no flush has been started for
  std::uint32_t unflushed = 0;         ///< writes of these
  bool listed = false;                 ///< among those with unflushed writes
  status put_error = status::done;     ///< error of a put of the peer's, here, since it last asked
};

/// The time at which a message is sent: `soon` is with others, at the next poll, or when the batch is full.
enum class departure : std::uint8_t { now, soon };

}  // namespace rma::messaged
