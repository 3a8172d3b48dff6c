// SPDX-License-Identifier: Apache-2.0
/// \file
/// Records of sends and receives, which the caller owns from start to completion.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "fabric/fabric.hpp"
#include "p2p/match_table.hpp"
#include "p2p/rendezvous/step.hpp"
#include "rma/detail/message_ops.hpp"
#include "rma/error.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

/// The messages of a team's program and those of its collectives never match each other.
enum class message_user : std::uint8_t { program, collectives };

/// A context separates the messages of a team from all others; it is the same number on all members.
constexpr std::uint64_t message_context(std::uint64_t team_id, message_user user) noexcept {
  return team_id << 1 | static_cast<std::uint64_t>(user);
}

constexpr message_user user_of(std::uint64_t context) noexcept { return static_cast<message_user>(context & 1); }

enum class send_mode : std::uint8_t {
  standard,     ///< complete when the buffer may be reused
  synchronous,  ///< complete when, in addition, a receive has been matched
};

/// The state of an operation. Internal to the messenger.
enum class message_state : std::uint8_t {
  idle,       ///< not started, or complete
  queued,     ///< a send that waits for room in the network, or for credit of the peer
  announced,  ///< a send that is announced to the peer, and waits for a receive
  streaming,  ///< a send whose data are sent in messages
  posted,     ///< a receive that waits for its message
  receiving,  ///< a receive whose data are arriving
  failing,    ///< in no table any more; its `over` is still to be called
};

struct transfer;
struct piece_transfer;

/// The reason for the choice of a rendezvous protocol: for the trace.
enum class rendezvous_reason : std::uint8_t {
  asked_for,       ///< set by RMA_RENDEZVOUS
  fallback,        ///< the same, but the fabric does not support it
  sender_first,    ///< the receiver reads as soon as there is a receive
  receiver_first,  ///< the sender writes as soon as there is a message
  mapped_source,   ///< the receiver's processor copies once
  mapped_receive,  ///< the sender's processor copies once
  both_private,    ///< two copies, at the same time
  experience,      ///< as both_private, or one copy by the kernel: whichever has been faster for this size
  short_of_cores,  ///< as both_private, but the two sides seldom run at the same time
  own_memory,      ///< both buffers are in this process
  collective,      ///< both sides are in the call, and may send to each other
  no_bytes,
  layout,    ///< one side's data are not contiguous, and are copied
  in_lists,  ///< one side's data are not contiguous; they are sent and received in place
  count_
};

/// State of a rendezvous, set by `reset` when one begins, so that short messages have no cost for it.
struct rendezvous_fields {
  rendezvous_kind kind;
  rendezvous_reason reason;
  rendezvous_state step;
  bool is_exposed;   ///< other ranks can access the buffer with `exposed`
  bool is_write;     ///< `moving` is a write
  bool polls;        ///< its end is detected by its last byte
  bool wants_word;   ///< the other side has stopped polling, and needs a message at the end
  bool changed;      ///< its last byte was seen to change, before messages were polled once more
  bool has_asked;    ///< a receive: its source has its request, and may write before any announcement
  bool is_canceled;  ///< a receive: its user has canceled it; it ends if its source has not used its request
  bool solicited;    ///< a send that uses a request that came before its announcement, if there is one, was handled
  std::byte last;    ///< last byte of the receive's buffer, before the transfer
  status withdrawn;  ///< its result, if it has been withdrawn; else `done`
  transfer* moving;
  piece_transfer* pieces;  ///< the transfer of data that are sent in lists
  std::size_t part_bytes;  ///< bytes of each list
  fabric::region_key exposed;
  fabric::region_key remote;  ///< the other side's memory
  std::size_t peer_room;      ///< a send: bytes of the receive
  std::int64_t polls_since_ns;
  std::int64_t copy_since_ns;  ///< a receive within the node: the start of its copy; 0: it is not measured
  std::uint64_t
      told_bytes;  ///< a receive that has asked: its length as reported by an end message that came out of order; or 0

  void reset(rendezvous_kind with) noexcept {
    kind = with;
    reason = rendezvous_reason::asked_for;
    step = rendezvous_state::begin;
    is_exposed = is_write = polls = wants_word = changed = has_asked = is_canceled = solicited = false;
    last = {};
    withdrawn = status::done;
    moving = nullptr;
    pieces = nullptr;
    part_bytes = 0;
    peer_room = 0;
    polls_since_ns = copy_since_ns = 0;
    told_bytes = 0;
  }
};

/// The path of the data, and the reason for it: for the trace.
enum class message_path : std::uint8_t {
  eager,        ///< with the envelope
  ring,         ///< the same, written into a ring
  too_long,     ///< by a rendezvous: longer than an eager message
  no_credit,    ///< the receiver has no memory left for unexpected messages
  synchronous,  ///< the send completes when a receive is matched
  requested,    ///< the receiver had requested the message before it was announced
};

/// A send or a receive. The caller fills in the first part, starts it (`messenger::send`, `messenger::receive`), and
/// keeps record and buffer in place until it is complete. Then it may be started again.
struct message_operation : rendezvous_fields {
  std::uint64_t context = 0;  ///< see message_context
  int peer = any_source;      ///< rank in the job of the destination, or of the source
  int tag = 0;
  void* at = nullptr;
  std::size_t bytes = 0;           ///< length of the message; for a receive, of the longest that it accepts
  const Layout* layout = nullptr;  ///< layout of these bytes, relative to `at`; null: they are contiguous
  /// Called once, under the progress lock, when an operation completes whose start returned `posted`. It may start
  /// other operations or this one again; it must not wait. Null: the caller polls `ended`.
  void (*over)(message_operation& self) noexcept = nullptr;

  /// The result: `done`, `message_too_long` (a receive, whose buffer is unchanged), `peer_failed`, `transfer_failed`.
  status result = status::done;
  std::atomic<std::uint32_t> ended = 1;  ///< 0 from start to completion; `result` is valid when it is not 0

  // Internal to the messenger.
  bool is_send = false;
  message_path path = message_path::eager;
  std::int64_t begin_ns = 0;  ///< for a trace
  message_state state = message_state::idle;
  int with = any_source;        ///< the other side, once it is known
  std::uint64_t id = 0;         ///< its identifier in messages of the other side; 0 while it has none
  std::uint64_t peer_id = 0;    ///< identifier of the other side's operation
  std::byte* marked = nullptr;  ///< last byte of a receive's buffer, while it has a value by which the end is detected
  std::byte unmarked{};         ///< its value before
  std::size_t moved = 0;        ///< bytes of data that have been sent or received
  std::size_t total = 0;        ///< total number of bytes
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> in_list;

  using list = boost::intrusive::list<
      message_operation,
      boost::intrusive::member_hook<
          message_operation,
          boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>,
          &message_operation::in_list>,
      boost::intrusive::constant_time_size<false>>;
};

struct send_operation : message_operation, match_entry {
  send_mode mode = send_mode::standard;

  bool by_message = false;  ///< internal to the messenger: must not use a ring
  bool is_void = false;     ///< internal to the messenger: its receive has sent a request, which no write answers
};

struct receive_operation : message_operation, match_entry {
  int source = any_source;        ///< source of the received message, a rank in the job; of none if it was canceled
  int message_tag = any_tag;      ///< its tag
  std::size_t message_bytes = 0;  ///< its length, also if it was too long
};

}  // namespace rma::detail
