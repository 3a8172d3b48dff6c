// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages between messengers, as they travel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rma::detail {

/// Every message has an envelope that a receive is looked for: `message::eager`, with the data behind it, and
/// announcements.
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
  std::uint64_t send;     ///< id of the sender's operation
  std::uint64_t address;  ///< of the data, and the key for a read of them; sgrs: bytes of a list, at most; else 0
  std::uint64_t key;
  std::uint16_t kind;         ///< the protocol that the sender wants
  std::uint8_t last;          ///< byte of the message
  std::uint8_t void_request;  ///< the receive that it matches has asked, and is not answered by a write
  std::uint8_t writable;      ///< the sender can write it where the receiver says, whatever `kind` is
  std::uint8_t lists;         ///< it can send it in lists, of any number of bytes if `kind` is not sgrs
  std::uint8_t unused[2];
};
static_assert(sizeof(announcement) == 56);  // one line in shared memory

/// `message::request`: the receiver of an announced message says where its data go.
struct transfer_request {
  std::uint64_t send;     ///< id of the sender's operation
  std::uint64_t receive;  ///< of the receiver's
  std::uint64_t address;  ///< of the buffer, and the key for a write to it; sgrs: bytes of a list, and how many are
  std::uint64_t key;      ///< posted; else 0
  std::uint64_t room;     ///< bytes of the receive
  std::uint32_t kind;     ///< the protocol
  std::uint32_t last;     ///< byte of the buffer, before
};
static_assert(sizeof(transfer_request) == 48);

/// `message::ask`: the same before the message has been announced, for the next one with this envelope.
struct early_request {
  envelope of;  ///< `sequence`: how many of the sender's envelopes the receiver has seen
  transfer_request where;
};

/// `message::rendezvous` says one of these.
enum class rendezvous_step : std::uint32_t {
  finished,  ///< this side has made its part
  gone,      ///< what the id stands for has been withdrawn, or is not there
  declined,  ///< the sender cannot use the request
  recall,    ///< the receiver wants its request back, `from`
  used,      ///< the sender has written, or writes, what the receive has asked for
  look,      ///< the sender of this knows nothing of what the receive has asked for: it is over, or void
  tell_end,  ///< the receiver of `from` does not look at its buffer any more
  count_
};

struct rendezvous_message {
  std::uint64_t to;     ///< id of the operation that it is for; 0 for one that the sender of this does not know
  std::uint64_t from;   ///< id of the one that says so; 0: none
  std::uint64_t bytes;  ///< of the message that is finished
  rendezvous_step step;
  std::uint32_t unused;
};
static_assert(sizeof(rendezvous_message) == 32);

/// `message::stream`: the next bytes of a message, behind it.
struct stream_piece {
  std::uint64_t receive;  ///< id of the receiver's operation
};

/// `message::credit` says these of eager messages.
enum class credit_word : std::uint64_t {
  memory,        ///< so many units may be used again
  ring_open,     ///< messages may be written into the ring: at `address` the first time
  ring_close,    ///< no more of them
  ring_closed,   ///< so many have been written, ever
  ring_credits,  ///< so many slots may be used again
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
