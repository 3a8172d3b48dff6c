// SPDX-License-Identifier: Apache-2.0
/// \file
/// The handler protocol puts messages on the wire. An operation is one or more messages:
///
///   operation_header | target_rows ... | data        origin -> target
///   reply_header | data                              target -> origin, if something comes back
///   count                                            target -> origin, acknowledges so many messages
///   dropped_header                                   target -> origin, instead of both
///   batch_header | [length | message] ... | rider    origin -> target, several operations at once
///   ticket                                           target -> origin, the copy is not made
///   share_header                                     origin -> target, acknowledged after the copy
///
/// Messages between two ranks arrive in order, so that none says which piece of its operation it is. An update of one
/// word fits into one cache line of the shm fabric, with that fabric's header of 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rma/detail/view.hpp"

namespace rma::detail {

/// Bytes of a message whose answer, or whose pieces, have to fit, too. Others may be longer, as the network says.
inline constexpr std::size_t operation_message_max = 4096;

/// In operation_args::signal and the header of a message: the last one of an epoch, whose number is this minus the
/// signal. The target's epochs know what that is, see epoch_rules::last_came.
inline constexpr int last_of_epoch = -2;
/// An operation that is put off until the end of an epoch goes by one message, if it is as short as that.
constexpr bool ends_epoch_by_message(bool contiguous, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t one_message_bytes = 4000;
  return contiguous && bytes <= one_message_bytes;
}

struct operation_header {
  std::uint64_t window;
  std::uint64_t ticket;  ///< of the origin, comes back with the data; 0: nothing comes back
  std::int32_t signal;   ///< raised after this message, -1: none, less: see last_of_epoch
  std::uint8_t pieces;   ///< target_rows that follow
  call kind;
  operation op;
  element type;
};
static_assert(sizeof(operation_header) == 24);

/// A piece of the target's part: equal rows at equal distances. The first is so many bytes from the part's start
/// (dynamic windows: an address).
struct target_rows {
  std::uint64_t offset;
  std::int64_t stride;
  std::uint32_t bytes;  ///< of each row
  std::uint32_t rows;
};
static_assert(sizeof(target_rows) == 24);

/// A contiguous operation of so much fits one message.
inline constexpr std::uint64_t one_message_max = operation_message_max - sizeof(operation_header) - sizeof(target_rows);

struct reply_header {
  std::uint64_t ticket;
  std::uint64_t done;  ///< messages that this one acknowledges
};

/// An operation was not done: the target has dropped the window.
struct dropped_header {
  std::uint64_t window;
  std::uint64_t ticket;  ///< 0: nothing was to come back
  std::uint64_t done;    ///< messages that this one acknowledges; the last is that of the operation
};

/// The target copies this, and the other side of its copy is there.
enum class share_kind : std::uint64_t {
  put,         ///< from the memory of the origin's process
  get,         ///< to the memory of the origin's process
  staged_put,  ///< from the origin's segment
  staged_get,  ///< to the origin's segment
};

/// A copy that the target makes between its part of the window and the origin's memory.
struct share_header {
  std::uint64_t window;
  std::uint64_t offset;  ///< of the target's part
  std::uint64_t place;   ///< an address in the origin's process, or an offset of its segment
  std::uint64_t bytes;
  share_kind kind;
  std::uint64_t ticket = 0;  ///< of the origin, which a refusal says
};

/// Several operations on one window, see operation_batch.hpp.
struct batch_header {
  std::uint64_t window;
  std::uint32_t rider_bytes;
  std::uint16_t rider;  ///< kind of the message behind the operations; 0: none
  std::uint16_t reserved;
};
static_assert(sizeof(batch_header) == 16);

/// A lock message says one of these.
enum class lock_word : std::uint8_t {
  request,  ///< origin: I want it
  epoch,    ///< origin: a piece of an epoch: [length, operation message] ...
  release,  ///< origin: I let go
  answer,   ///< target: `result`
  // Lock "auto": a rank of another node brings a hybrid lock to CPU mode.
  migrate_request,  ///< origin: may I bring it?
  migrate_reply,    ///< target: `result`
  migrated,         ///< origin: it is yours, I have let go of the network word
  migrate_cancel,   ///< origin: I shall not bring it
};

/// A lock manager answers one of these.
enum class lock_answer : std::uint8_t {
  granted,   ///< the lock is held; an epoch has been run; yes
  migrates,  ///< the origin brings the lock to the network word (lock "hybrid")
  moved,     ///< the lock is there, or on its way; no
  failed,    ///< a rank that held it has died, or the window was dropped (`blamed` is -1)
  count_
};

/// Between a rank that wants a lock and the lock manager of its target.
struct lock_header {
  std::uint64_t window;
  std::uint32_t number;  ///< the origin's, of its requests to this target
  std::int32_t target;   ///< rank in the window's team
  std::int32_t blamed;   ///< world rank that `result` is about
  lock_word word;
  std::uint8_t kind;  ///< lock_kind
  std::uint8_t last;  ///< of the pieces of an epoch
  lock_answer result;
  std::uint32_t waited_ns = 0;  ///< answer: for others that held the lock
  std::uint8_t late = 0;        ///< ask: see excess_locks()
  std::uint8_t alone = 0;       ///< answer: the target shares its node with no member
  std::uint16_t reserved = 0;
};
static_assert(sizeof(lock_header) == 32);

struct notify_header {
  std::uint64_t window;
  std::uint32_t kind;
  std::uint32_t index;
};

}  // namespace rma::detail
