// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank's connection manager: a thread that replies to connection requests of other ranks, so that the first
/// one-sided operation, too, needs no call of the target's program. It sleeps in the kernel while it is idle. See
/// handshake.hpp for the protocol.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/verbs/adapter.hpp"
#include "fabric/verbs/connection.hpp"
#include "fabric/verbs/handshake.hpp"

namespace rma::verbs {

inline constexpr std::uint32_t inline_bytes_max = 256;  ///< inline data of an entry of a send queue

/// The attributes of every connection's queue pair.
struct queue_plan {
  ibv_cq* completions = nullptr;
  ibv_srq* receives = nullptr;
  std::uint32_t entries = 0;  ///< entries of the send queue
  std::uint32_t gather = 0;
  std::uint32_t inline_bytes = 0;
  std::uint32_t reads = 0;         ///< outstanding reads and atomics, on either side
  std::uint32_t bulk_gather = 0;   ///< pieces of a bulk send or receive
  std::uint32_t bulk_entries = 0;  ///< sends, and receives, of a bulk channel
};

class connection_manager {
 public:
  /// Throws Error(unreachable) if the device lacks a resource.
  connection_manager(adapter& device, int rank, std::string key, const queue_plan& plan);
  ~connection_manager();
  connection_manager(const connection_manager&) = delete;
  connection_manager& operator=(const connection_manager&) = delete;

  [[nodiscard]] const manager_address& address() const noexcept { return mine_; }
  /// Becomes readable when a connection has changed its state; `take_news` resets it.
  [[nodiscard]] int news_fd() const noexcept { return news_; }
  [[nodiscard]] bool take_news() noexcept;

  /// The connection with a rank, if either side has asked for it.
  [[nodiscard]] connection* find(int peer, channel of = channel::control);
  [[nodiscard]] connection* find_queue_pair(std::uint32_t number);
  /// Asks the peer for a connection. Its state shows when it is ready.
  connection* connect(int peer, const manager_address& theirs, channel of = channel::control);
  /// Reconnects a broken connection; its outstanding entries have been ended. The old queue pair stays, in the error
  /// state, until the end: its destruction would discard completions that are still to be taken. `over` is the number
  /// of complete bulk receives.
  void mend(connection& c, std::uint32_t over = 0);
  /// Puts its queue pair into the error state, which flushes all entries.
  void stop(connection& c) noexcept;
  /// A count that grows with each connection that breaks, or whose peer dies.
  [[nodiscard]] std::uint32_t breaks() const noexcept { return breaks_.load(std::memory_order_acquire); }
  /// The connections that are broken now, or whose peers are dead.
  [[nodiscard]] std::vector<connection*> broken();
  /// Marks the connection broken after a failed operation.
  void give_up(connection& c) noexcept;
  /// Marks the connections with a dead peer. For any thread.
  void forget(int peer) noexcept;
  /// The number of connections with a queue pair.
  [[nodiscard]] std::size_t queue_pairs() const;

 private:
  struct sending {
    ibv_ah* way = nullptr;
    bool busy = false;
  };
  void make_own_queue_pair();
  void run() noexcept;
  void post_receive(std::uint32_t slot) noexcept;
  void take_datagrams() noexcept;
  void take_completions() noexcept;
  void say_leave() noexcept;
  void take_device_events() noexcept;
  void hear(const hello& h) noexcept;
  void answer(connection& c, const hello& h) noexcept;
  connection& connection_with(int peer, channel of);
  static void put_in_error(connection& c) noexcept;
  ibv_qp* make_queue_pair(const connection& c, std::uint32_t& inline_bytes) noexcept;
  bool make_ready_to_receive(connection& c, const hello& h) noexcept;
  bool make_ready_to_send(connection& c, std::uint32_t reads) noexcept;
  bool prepare(connection& c) noexcept;
  void complain(const connection& c) noexcept;
  void say_unheard(const connection& c) noexcept;
  void say(connection& c, greeting what) noexcept;
  void say_what_is_due(std::int64_t now_ns) noexcept;
  void set_state(connection& c, connection_state state) noexcept;
  [[nodiscard]] std::int64_t next_due_ns() noexcept;
  void kick(int descriptor) const noexcept;

  adapter& device_;
  const int rank_;
  const std::string key_;
  const queue_plan plan_;
  manager_address mine_;

  mutable std::mutex lock_;  ///< guards the connections' handshakes and the members below
  std::map<std::pair<int, channel>, connection*> by_peer_;
  std::unordered_map<std::uint32_t, connection*> by_queue_pair_;
  std::deque<connection> connections_;
  std::vector<ibv_qp*> retired_;  ///< queue pairs of reconnected connections
  bool complained_ = false;
  bool unheard_said_ = false;
  std::uint32_t next_packet_;

  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_qp* queue_pair_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::vector<std::byte> memory_;
  std::array<sending, 16> sendings_{};
  int kick_ = -1;  ///< wakes the thread
  int news_ = -1;
  std::atomic<std::uint32_t> breaks_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace rma::verbs
