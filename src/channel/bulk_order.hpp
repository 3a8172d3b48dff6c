// SPDX-License-Identifier: Apache-2.0
/// \file
/// The order in which different users post on the fabric's bulk channel: windows (xfer/bulk_streams.hpp) and messages
/// (p2p/pieces.hpp) share one channel for each pair of ranks and direction.
///
/// The fabric gives the n-th send to the n-th receive. That is right if a transfer posts all its receives before the
/// next one does, each in one step with the control message that lets the peer send, and the peer sends in the order of
/// these messages. So each rank has two queues for each peer, of transfers that post receives and of transfers that
/// send, and only the first in a queue posts. A transfer joins the queue of sends when the first such message has come.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/assert.hpp"

namespace rma::detail {

class context;

/// A transfer's place in a queue.
struct bulk_turn {
  enum class progress : std::uint8_t {
    over,     ///< it has posted everything
    waits,    ///< it waits for a message of the peer
    no_room,  ///< the fabric has no room: the next round tries again
  };
  /// Posts as much as the fabric takes.
  progress (*post)(bulk_turn& self) = nullptr;
  /// Called when everything is posted and the transfer has left its queue; the callee may free it and begin others.
  void (*posted)(bulk_turn& self) = nullptr;
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> in_queue;
};

/// Guarded by the progress lock.
class bulk_order {
 public:
  explicit bulk_order(context& ctx);

  void join_receives(int peer, bulk_turn& turn) { join(queues_of(peer).receives, turn); }
  void join_sends(int peer, bulk_turn& turn) { join(queues_of(peer).sends, turn); }
  /// Removes the transfer from its queue, if it is in one. Operations that it has posted continue.
  static void remove(bulk_turn& turn) noexcept { turn.in_queue.unlink(); }
  /// Lets the first transfers of the queues post, then those after them. Called after a join, or when a wait has ended.
  void pump(int peer) { pump(queues_of(peer)); }

 private:
  using queue = boost::intrusive::list<
      bulk_turn,
      boost::intrusive::member_hook<
          bulk_turn, boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>,
          &bulk_turn::in_queue>,
      boost::intrusive::constant_time_size<false>>;
  struct peer_queues {
    queue receives, sends;
    bool blocked = false;  ///< it is in `blocked_`
  };

  static void join(queue& q, bulk_turn& turn) {
    RMA_ASSERT(turn.post != nullptr && turn.posted != nullptr);
    RMA_ASSERT(!turn.in_queue.is_linked());
    q.push_back(turn);
  }
  peer_queues& queues_of(int peer);
  bool post_first(peer_queues& of, queue& q);
  void pump(peer_queues& of);
  static unsigned on_duty(void* self) noexcept;

  context& ctx_;
  std::unordered_map<int, std::unique_ptr<peer_queues>> peers_;
  std::vector<peer_queues*> blocked_;  ///< peers whose first transfer has found no room
  std::vector<peer_queues*> asked_;    ///< room for on_duty
};

}  // namespace rma::detail
