// SPDX-License-Identifier: Apache-2.0
/// \file
/// Records of messages: what the caller of a send or a receive owns from its start to its end.
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

/// The messages of a team's users and those of its collectives never match each other.
enum class message_user : std::uint8_t { program, collectives };

/// A context keeps the messages of a team apart from all others: the same number on all members.
constexpr std::uint64_t message_context(std::uint64_t team_id, message_user user) noexcept {
  return team_id << 1 | static_cast<std::uint64_t>(user);
}

constexpr message_user user_of(std::uint64_t context) noexcept { return static_cast<message_user>(context & 1); }

enum class send_mode : std::uint8_t {
  standard,     ///< over when the buffer may be used again
  synchronous,  ///< over when a receive has been found, too
};

/// Where an operation is. The messenger's.
enum class message_state : std::uint8_t {
  idle,       ///< not started, or over
  queued,     ///< a send that waits for room, or until the peer has room for what it does not expect
  announced,  ///< a send of which the peer knows, and waits for a receive
  streaming,  ///< a send whose data leave in messages
  posted,     ///< a receive that waits for its message
  receiving,  ///< a receive whose data come
  failing,    ///< in no table any more; its `over` is still to be called
};

struct transfer;
struct piece_transfer;

/// Why a rendezvous is the one that it is: for the trace.
enum class rendezvous_reason : std::uint8_t {
  asked_for,       ///< by RMA_RENDEZVOUS
  fallback,        ///< the same, as far as the fabric can
  sender_first,    ///< the receiver reads as soon as there is a receive
  receiver_first,  ///< the sender writes as soon as there is a message
  mapped_source,   ///< the receiver's processor copies once
  mapped_receive,  ///< the sender's does
  both_private,    ///< two copies, at the same time
  experience,      ///< the same, or one by the kernel: what copies of this size have taken so far
  short_of_cores,  ///< the same, but the two sides seldom run at the same time
  own_memory,      ///< both buffers are this process's
  collective,      ///< both sides are there, and may send to each other
  no_bytes,
  layout,    ///< one side's data are in pieces, and copied
  in_lists,  ///< the same, and sent and received where they lie
  count_
};

/// A rendezvous needs these; filled in when one begins (`reset`), so that short messages do not pay for it.
struct rendezvous_fields {
  rendezvous_kind kind;
  rendezvous_reason reason;
  rendezvous_state step;
  bool is_exposed;  ///< other ranks reach the buffer by `exposed`
  bool is_write;    ///< of `moving`
  bool polls;       ///< its end is seen by its last byte
  bool wants_word;  ///< the other side does not look any more, and wants to be told
  bool changed;     ///< its last byte has been seen to change, before messages were looked for once more
  bool has_asked;   ///< a receive: its source knows of it, and may write before it announces anything
  bool solicited;   ///< a send that leaves by a request that came before its announcement, if there is one, was handled
  std::byte last;   ///< of the receive's buffer, before
  status withdrawn;  ///< its result, if nobody wants it any more; else `done`
  transfer* moving;
  piece_transfer* pieces;  ///< the same of data that go in lists
  std::size_t part_bytes;  ///< of each list
  fabric::region_key exposed;
  fabric::region_key remote;  ///< the other side's memory
  std::size_t peer_room;      ///< a send: bytes of the receive
  std::int64_t polls_since_ns;
  std::int64_t copy_since_ns;  ///< a receive within the node: when its copy began; 0: it is not measured
  std::uint64_t
      told_bytes;  ///< a receive that has asked: what the word of its end said, which came before its turn; or 0

  void reset(rendezvous_kind with) noexcept {
    kind = with;
    reason = rendezvous_reason::asked_for;
    step = rendezvous_state::begin;
    is_exposed = is_write = polls = wants_word = changed = has_asked = solicited = false;
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

/// How the data have come or gone, and why so: for the trace.
enum class message_path : std::uint8_t {
  eager,        ///< with the envelope
  ring,         ///< the same, written into a ring
  too_long,     ///< by a rendezvous: longer than what goes eagerly
  no_credit,    ///< the receiver has no memory left for what it does not expect
  synchronous,  ///< the sender wants to know that a receive is there
  requested,    ///< the receive had asked before the message was announced
};

/// A send or a receive. The caller fills in the first part, starts it (`messenger::send`, `messenger::receive`), and
/// leaves record and buffer where they are until it is over. Then it may be started again.
struct message_operation : rendezvous_fields {
  std::uint64_t context = 0;  ///< see message_context
  int peer = any_source;      ///< number in the job of the destination, or of the source
  int tag = 0;
  void* at = nullptr;
  std::size_t bytes = 0;           ///< of a receive: the longest message that it takes
  const Layout* layout = nullptr;  ///< of these bytes, relative to `at`; null: they are contiguous
  /// Runs once, under the progress lock, when an operation is over of which its start said `posted`. May start others,
  /// or this one again; must not wait. Null: whoever waits looks at `ended`.
  void (*over)(message_operation& self) noexcept = nullptr;

  /// How it ended: `done`, `message_too_long` (a receive, whose buffer is as it was), `peer_failed`, `transfer_failed`.
  status result = status::done;
  std::atomic<std::uint32_t> ended = 1;  ///< 0 from its start to its end; `result` is valid when it is not

  // The messenger's.
  bool is_send = false;
  message_path path = message_path::eager;
  std::int64_t begin_ns = 0;  ///< for a trace
  message_state state = message_state::idle;
  int with = any_source;        ///< the other side, once it is known
  std::uint64_t id = 0;         ///< in messages of the other side; 0 while it has none
  std::uint64_t peer_id = 0;    ///< of the other side's operation
  std::byte* marked = nullptr;  ///< the last byte of a receive's buffer, while it has a value by which its end is seen
  std::byte unmarked{};         ///< what it was before
  std::size_t moved = 0;        ///< bytes of data that have left or come
  std::size_t total = 0;        ///< of how many
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

  bool by_message = false;  ///< the messenger's: never by a ring
  bool is_void = false;     ///< the messenger's: its receive has asked, and is not answered by a write
};

struct receive_operation : message_operation, match_entry {
  int source = any_source;        ///< of the message that came, a number in the job
  int message_tag = any_tag;      ///< of that
  std::size_t message_bytes = 0;  ///< of that, also if it was too long
};

}  // namespace rma::detail
