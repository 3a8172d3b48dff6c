// SPDX-License-Identifier: Apache-2.0
/// \file
/// The messages of the handler protocol. An operation is one or more messages:
///
///   operation_header | target_rows ... | data        origin -> target
///   operation_header | target_part | data            the same, by the layout's number
///   reply_header | data                              target -> origin, if there is a result
///   count                                            target -> origin, acknowledges that many messages
///   dropped_header                                   target -> origin, instead of both
///   batch_header | [length | message] ... | rider    origin -> target, several operations at once
///   ticket                                           target -> origin, the copy is not made
///   share_header                                     origin -> target, acknowledged after the copy
///
/// Messages between two ranks arrive in order, so that none needs the number of its piece. An update of one
/// word fits into one cache line of the shm fabric, with that fabric's header of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rma/detail/view.hpp"

namespace rma::detail {

/// Limit of a message whose reply, or whose pieces, must fit as well. Others may be longer, up to the network's limit.
inline constexpr std::size_t operation_message_max = 4096;
/// The same on a network with this limit of its messages.
constexpr std::size_t operation_message_max_of(std::size_t network_max) noexcept {
  return network_max < operation_message_max ? network_max : operation_message_max;
}

/// A value of operation_args::signal and of a message's header from here downwards marks the last message of an epoch,
/// whose number is this constant minus the signal. For its meaning see epoch_rules::last_came.
inline constexpr int last_of_epoch = -2;
struct operation_header {
  std::uint64_t window;
  std::uint64_t ticket;  ///< the origin's number for the reply; 0: no reply
  std::int32_t signal;   ///< signal raised after this message; -1: none; less: see last_of_epoch
  std::uint8_t pieces;   ///< target_rows that follow; by_layout: a target_part follows
  call kind;
  operation op;
  element type;
};
static_assert(sizeof(operation_header) == 24);

/// A piece of the target's part: equal rows at equal distances. The offset of the first is in bytes from the part's
/// start (dynamic windows: an address).
struct target_rows {
  std::uint64_t offset;
  std::int64_t stride;
  std::uint32_t bytes;  ///< length of each row
  std::uint32_t rows;
};
static_assert(sizeof(target_rows) == 24);

/// A part of the data of a layout at the target. Between nodes it takes the place of several target_rows.
struct target_part {
  std::uint64_t offset;  ///< offset of the layout, in bytes from the part's start (dynamic windows: an address)
  std::uint64_t first;   ///< byte of the layout's data
  std::uint32_t bytes;
  std::uint32_t layout;  ///< its number, see layout_exchange.hpp
};
static_assert(sizeof(target_part) == sizeof(target_rows));

/// The value of operation_header::pieces with a target_part, and the limit of target_rows in a message.
inline constexpr std::uint8_t by_layout = 255;
inline constexpr std::size_t target_rows_max = 254;

/// The size up to which a contiguous operation fits one message.
inline constexpr std::uint64_t one_message_max = operation_message_max - sizeof(operation_header) - sizeof(target_rows);

/// True if an operation that is deferred to the end of an epoch uses one message, on a network with this limit.
constexpr bool ends_epoch_by_message(bool contiguous, std::uint64_t bytes, std::size_t network_max) noexcept {
  return contiguous && bytes <= operation_message_max_of(network_max) - sizeof(operation_header) - sizeof(target_rows);
}

struct reply_header {
  std::uint64_t ticket;
  std::uint64_t done;  ///< messages that this one acknowledges
};

/// Reports an operation that was not done, since the target has dropped the window.
struct dropped_header {
  std::uint64_t window;
  std::uint64_t ticket;  ///< 0: no reply was expected
  std::uint64_t done;    ///< messages that this one acknowledges; the last is that of the operation
};

/// The kinds of copies that the target makes, and their other side.
enum class share_kind : std::uint64_t {
  put,         ///< a copy from the memory of the origin's process
  get,         ///< a copy to the memory of the origin's process
  staged_put,  ///< a copy from the origin's segment
  staged_get,  ///< a copy to the origin's segment
};

/// A copy that the target makes between its part of the window and the origin's memory.
struct share_header {
  std::uint64_t window;
  std::uint64_t offset;  ///< offset in the target's part
  std::uint64_t buffer;  ///< an address in the origin's process, or an offset in its segment
  std::uint64_t bytes;
  share_kind kind;
  std::uint64_t ticket = 0;  ///< the origin's number, which a refusal repeats
};

/// Several operations on one window, see operation_batch.hpp.
struct batch_header {
  std::uint64_t window;
  std::uint32_t rider_bytes;
  std::uint16_t rider;  ///< kind of the message after the operations; 0: none
  std::uint16_t reserved;
};
static_assert(sizeof(batch_header) == 16);

/// The kinds of lock messages.
enum class lock_word : std::uint8_t {
  request,  ///< origin: requests the lock
  epoch,    ///< origin: a piece of an epoch: [length, operation message] ...
  release,  ///< origin: releases the lock
  answer,   ///< target: the reply, with `result`
  // Lock "auto": a rank of another node moves a hybrid lock to CPU mode.
  migrate_request,  ///< origin: asks for permission to move it
  migrate_reply,    ///< target: the reply, with `result`
  migrated,         ///< origin: has released the network word, the lock is in CPU mode
  migrate_cancel,   ///< origin: cancels the migration
};

/// The results in a lock manager's reply.
enum class lock_answer : std::uint8_t {
  granted,   ///< the origin holds the lock; its epoch has been run; the migration is permitted
  migrates,  ///< the origin must move the lock to the network word (lock "hybrid")
  moved,     ///< the lock's home is the network, or it is migrating there; the migration is not permitted
  failed,    ///< a rank that held it has died, or the window was dropped (`blamed` is -1)
  count_
};

/// The message between a rank that requests a lock and the lock manager of its target.
struct lock_header {
  std::uint64_t window;
  std::uint32_t number;  ///< the origin's number of its request to this target
  std::int32_t target;   ///< rank in the window's team
  std::int32_t blamed;   ///< world rank that caused `result`
  lock_word word;
  std::uint8_t kind;  ///< lock_kind
  std::uint8_t last;  ///< 1 for the last piece of an epoch
  lock_answer result;
  std::uint32_t waited_ns = 0;  ///< answer: time that it waited for other holders
  std::uint8_t late = 0;        ///< request: see excess_locks()
  std::uint8_t alone = 0;       ///< answer: no other member is on the target's node
  std::uint16_t reserved = 0;
};
static_assert(sizeof(lock_header) == 32);

struct notify_header {
  std::uint64_t window;
  std::uint32_t kind;
  std::uint32_t index;
};

}  // namespace rma::detail
