// SPDX-License-Identifier: Apache-2.0
/// \file
/// The connections of a rank by their peers, queue pairs and indices: made at first use by the connection manager,
/// broken by it or by an operation that failed, and made anew by it. For who holds the progress lock.
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
  /// Where others find this rank.
  [[nodiscard]] std::string address() const { return text_of(manager_.address()); }
  [[nodiscard]] std::size_t queue_pairs() const { return manager_.queue_pairs(); }
  /// Asks `job` how peers are reached; before anything is posted.
  void use(fabric::directory& job) noexcept { directory_ = &job; }

  /// The connection to post on: the one that was asked for last, if nothing has happened to it, or what reach_another
  /// says. It may have messages to send again first.
  status reach(int peer, connection*& c) noexcept {
    c = last_;
    const bool usable = c != nullptr && c->peer == peer && c->mask != 0 &&
                        c->state.load(std::memory_order_acquire) == connection_state::ready;
    return usable ? status::done : reach_another(peer, c);
  }
  /// The connection with a peer, whatever its state: asks for it if nobody has.
  status look_for(int peer, channel of, connection*& c) noexcept;
  /// Completions find it by its index from now on.
  void list(connection& c) noexcept;
  [[nodiscard]] connection& at(std::uint64_t index) noexcept { return *by_index_[index]; }
  /// By index; null where there is none.
  [[nodiscard]] const std::vector<connection*>& all() const noexcept { return by_index_; }
  /// Null if no connection has this queue pair.
  connection* source_of(std::uint32_t queue_pair) noexcept;

  /// True for a completion of a queue pair that was abandoned: another takes its place, or will, or the peer was known
  /// dead before that.
  static bool is_over(const connection& c, connection_state state, const ibv_wc& done) noexcept {
    return state == connection_state::asking || c.queue_pair == nullptr || done.qp_num != c.queue_pair->qp_num;
  }
  /// Nothing reaches the peer.
  void lose(const connection& c, fabric::sink& to) noexcept;

  /// True if connections have broken, or peers have died, since `note_breaks`.
  [[nodiscard]] bool have_broken() const noexcept { return manager_.breaks() != breaks_seen_; }
  void note_breaks() noexcept { breaks_seen_ = manager_.breaks(); }

 private:
  status reach_another(int peer, connection*& c) noexcept;
  void make_ring(connection& c) noexcept;

  const std::uint32_t entries_;  ///< of a send queue
  connection_manager manager_;
  fabric::directory* directory_ = nullptr;
  std::unordered_map<int, connection*> by_peer_;
  std::unordered_map<std::uint32_t, connection*> by_queue_pair_;
  std::vector<connection*> by_index_;
  connection* last_ = nullptr;  ///< the one that was used last
  std::uint32_t breaks_seen_ = 0;
};

}  // namespace rma::verbs
