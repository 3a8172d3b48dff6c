// SPDX-License-Identifier: Apache-2.0
/// \file
/// Wire formats of the messages between messengers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rma::detail {

/// Every message that is matched with a receive has an envelope: `message::eager`, which has the data after it, and
/// announcements.
struct envelope {
  std::uint64_t context;
  std::int32_t tag;
  std::uint16_t sequence;  ///< number among the envelopes of this pair
  std::uint16_t freed;     ///< units of memory for unexpected messages that the other side may reuse
};
static_assert(sizeof(envelope) == 16);

/// `message::announce`: the data stay with the sender until they are requested.
struct announcement {
  envelope of;
  std::uint64_t bytes;
  std::uint64_t send;     ///< id of the sender's operation
  std::uint64_t address;  ///< address of the data, with its key; sgrs: upper bound on the bytes of a list; else 0
  std::uint64_t key;
  std::uint16_t kind;         ///< the protocol that the sender prefers
  std::uint8_t last;          ///< last byte of the message
  std::uint8_t void_request;  ///< the matching receive has sent a request, which no write answers
  std::uint8_t writable;      ///< the sender can write to the receiver's buffer, whatever `kind` is
  std::uint8_t lists;         ///< it can send in lists, of any number of bytes if `kind` is not sgrs
  std::uint8_t unused[2];
};
static_assert(sizeof(announcement) == 56);  // one line in shared memory

/// `message::request`: the receiver of an announced message sends the address of its buffer.
struct transfer_request {
  std::uint64_t send;     ///< id of the sender's operation
  std::uint64_t receive;  ///< id of the receiver's operation
  std::uint64_t address;  ///< address of the buffer, with its key; sgrs: bytes of a list, and the number of
  std::uint64_t key;      ///< lists posted; else 0
  std::uint64_t room;     ///< bytes of the receive
  std::uint32_t kind;     ///< the protocol
  std::uint32_t last;     ///< last byte of the buffer, before the transfer
};
static_assert(sizeof(transfer_request) == 48);

/// `message::ask`: a request before the message has been announced, for the next one with this envelope.
struct early_request {
  envelope of;  ///< `sequence`: number of the sender's envelopes that the receiver has seen
  transfer_request where;
};

/// The kinds of `message::rendezvous`.
enum class rendezvous_step : std::uint32_t {
  finished,  ///< this side has completed its part
  gone,      ///< the operation of the id has been withdrawn, or does not exist
  declined,  ///< the sender cannot use the request
  recall,    ///< the receiver withdraws its request, `from`
  used,      ///< the sender has used the receive's request: it has written the data, or does so
  look,      ///< the sender of this does not know the receive's request: it is complete, or void
  tell_end,  ///< the receiver of `from` does not poll its buffer any more
  count_
};

struct rendezvous_message {
  std::uint64_t to;     ///< id of the operation that it is for; 0 if the sender of this does not know it
  std::uint64_t from;   ///< id of the operation that sends it; 0: none
  std::uint64_t bytes;  ///< bytes of the finished message
  rendezvous_step step;
  std::uint32_t unused;
};
static_assert(sizeof(rendezvous_message) == 32);

/// `message::stream`: the next bytes of a message follow this header.
struct stream_piece {
  std::uint64_t receive;  ///< id of the receiver's operation
};

/// The kinds of `message::credit`, all about eager messages.
enum class credit_word : std::uint64_t {
  memory,        ///< `count` units may be reused
  ring_open,     ///< messages may be written into the ring, which is at `address` the first time
  ring_close,    ///< no more messages may be written into the ring
  ring_closed,   ///< `count` messages have been written into the ring in total
  ring_credits,  ///< `count` slots may be reused
  count_
};

struct credit_message {
  credit_word what = credit_word::memory;
  std::uint64_t count = 0;  ///< ring_open: 1 if each write is to have an immediate
  std::uint64_t slots = 0;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

}  // namespace rma::detail
