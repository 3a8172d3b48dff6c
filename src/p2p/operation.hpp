// SPDX-License-Identifier: Apache-2.0
/// \file
/// Records of messages: what the caller of a send or a receive owns from its start to its end.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "p2p/match_table.hpp"
#include "rma/error.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

/// Of a receive: a message of any member, with any tag. Tags of messages are not negative.
inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;

/// The messages of a team's users and those of its collectives never match each other.
enum class message_user : std::uint8_t { program, collectives };

/// What keeps the messages of a team apart from all others: the same number on all members.
constexpr std::uint64_t message_context(std::uint64_t team_id, message_user user) noexcept {
  return team_id << 1 | static_cast<std::uint64_t>(user);
}

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

/// A send or a receive. The caller fills in the first part, starts it (`messenger::send`, `messenger::receive`), and
/// leaves record and buffer where they are until it is over. Then it may be started again.
struct message_operation {
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
  message_state state = message_state::idle;
  int with = any_source;      ///< the other side, once it is known
  std::uint64_t id = 0;       ///< in messages of the other side; 0 while it has none
  std::uint64_t peer_id = 0;  ///< of the other side's operation
  std::size_t moved = 0;      ///< bytes of data that have left or come
  std::size_t total = 0;      ///< of how many
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> in_list;

  using list = boost::intrusive::list<
      message_operation,
      boost::intrusive::member_hook<
          message_operation,
          boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>,
          &message_operation::in_list>,
      boost::intrusive::constant_time_size<false>>;
};

struct send_operation : message_operation {
  send_mode mode = send_mode::standard;
};

struct receive_operation : message_operation, match_entry {
  int source = any_source;        ///< of the message that came, a number in the job
  int message_tag = any_tag;      ///< of that
  std::size_t message_bytes = 0;  ///< of that, also if it was too long
};

}  // namespace rma::detail
