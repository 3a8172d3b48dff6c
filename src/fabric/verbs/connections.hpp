// SPDX-License-Identifier: Apache-2.0
/// \file
/// The connections of a rank by their peers, queue pairs and indices. The connection manager makes them at first use;
/// it or a failed operation marks them broken, and it reconnects them. The caller holds the progress lock.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/verbs/adapter.hpp"
#include "fabric/verbs/connection.hpp"
#include "fabric/verbs/connection_manager.hpp"

namespace rma::verbs {

class connections {
 public:
  /// Throws Error(unreachable).
  connections(adapter& device, int rank, std::string key, const queue_plan& plan);

  [[nodiscard]] connection_manager& manager() noexcept { return manager_; }
  /// The address that other ranks connect to.
  [[nodiscard]] std::string address() const { return text_of(manager_.address()); }
  [[nodiscard]] std::size_t queue_pairs() const { return manager_.queue_pairs(); }
  /// Looks up the addresses of peers in `job`; called before anything is posted.
  void use(fabric::directory& job) noexcept { directory_ = &job; }

  /// Finds the connection to post on: the last one used, if it is ready, or the one of reach_another. It may have
  /// messages to send again first.
  status reach(int peer, connection*& c) noexcept {
    c = last_;
    const bool usable = c != nullptr && c->peer == peer && c->mask != 0 &&
                        c->state.load(std::memory_order_acquire) == connection_state::ready;
    return usable ? status::done : reach_another(peer, c);
  }
  /// Finds the connection with a peer, in any state; asks for it if neither side has done so.
  status look_for(int peer, channel of, connection*& c) noexcept;
  /// Gives the connection the index by which completions find it.
  void list(connection& c) noexcept;
  [[nodiscard]] connection& at(std::uint64_t index) noexcept { return *by_index_[index]; }
  /// The connections by index; null where there is none.
  [[nodiscard]] const std::vector<connection*>& all() const noexcept { return by_index_; }
  /// Null if no connection has this queue pair.
  connection* source_of(std::uint32_t queue_pair) noexcept;

  /// True for a completion of an abandoned queue pair: another one has replaced it or will, or the peer was known to be
  /// dead before.
  static bool is_over(const connection& c, connection_state state, const ibv_wc& done) noexcept {
    return state == connection_state::asking || c.queue_pair == nullptr || done.qp_num != c.queue_pair->qp_num;
  }
  /// Marks an unreachable peer as dead, and reports it.
  void lose(const connection& c, fabric::sink& to) noexcept;

  /// True if connections have broken, or peers have died, since `note_breaks`.
  [[nodiscard]] bool have_broken() const noexcept { return manager_.breaks() != breaks_seen_; }
  void note_breaks() noexcept { breaks_seen_ = manager_.breaks(); }

 private:
  status reach_another(int peer, connection*& c) noexcept;
  void make_ring(connection& c) noexcept;

  const std::uint32_t entries_;  ///< entries of a send queue
  connection_manager manager_;
  fabric::directory* directory_ = nullptr;
  std::unordered_map<int, connection*> by_peer_;
  std::unordered_map<std::uint32_t, connection*> by_queue_pair_;
  std::vector<connection*> by_index_;
  connection* last_ = nullptr;  ///< the last one used
  std::uint32_t breaks_seen_ = 0;
};

}  // namespace rma::verbs
