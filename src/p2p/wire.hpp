// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages between messengers, as they travel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rma::detail {

/// What every message has that a receive is looked for: `message::eager`, with the data behind it, and announcements.
struct envelope {
  std::uint64_t context;
  std::int32_t tag;
  std::uint16_t sequence;  ///< of the envelopes of this pair
  std::uint16_t freed;     ///< units of memory for unexpected messages that the other side may use again
};
static_assert(sizeof(envelope) == 16);

/// `message::announce`: the data stay with the sender until it is asked for them.
struct announcement {
  envelope of;
  std::uint64_t bytes;
  std::uint64_t send;  ///< id of the sender's operation
  std::uint64_t flags;
};

/// What `message::rendezvous` says.
enum class rendezvous_step : std::uint32_t {
  clear_to_send,  ///< the receiver: send the data in messages
  finished,       ///< the receiver: the send is over
  gone,           ///< either: what the id stands for has been withdrawn
  count_
};

struct rendezvous_message {
  std::uint64_t to;    ///< id of the operation that it is for
  std::uint64_t from;  ///< id of the one that says so; 0: none
  rendezvous_step step;
  std::uint32_t result;  ///< a status, as it is
};
static_assert(sizeof(rendezvous_message) == 24);

/// `message::stream`: the next bytes of a message, behind it.
struct stream_piece {
  std::uint64_t receive;  ///< id of the receiver's operation
};

/// `message::credit`
struct credit_message {
  std::uint64_t freed;
};

}  // namespace rma::detail
