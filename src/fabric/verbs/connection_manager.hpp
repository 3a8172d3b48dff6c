// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank's connection manager: a thread that answers when another rank wants to connect, so that the first one-sided
/// operation needs no call of the target's program either. Idle, it sleeps in the kernel. See handshake.hpp for what is
/// said.
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

inline constexpr std::uint32_t inline_bytes_max = 256;  ///< that an entry of a send queue carries itself

/// Every connection's queue pair is made with a queue_plan.
struct queue_plan {
  ibv_cq* completions = nullptr;
  ibv_srq* receives = nullptr;
  std::uint32_t entries = 0;  ///< of the send queue
  std::uint32_t gather = 0;
  std::uint32_t inline_bytes = 0;
  std::uint32_t reads = 0;         ///< and atomics outstanding, on either side
  std::uint32_t bulk_gather = 0;   ///< pieces of each of these
  std::uint32_t bulk_entries = 0;  ///< sends, and receives, of a bulk channel
};

class connection_manager {
 public:
  /// Throws Error(unreachable) if the device refuses.
  connection_manager(adapter& device, int rank, std::string key, const queue_plan& plan);
  ~connection_manager();
  connection_manager(const connection_manager&) = delete;
  connection_manager& operator=(const connection_manager&) = delete;

  [[nodiscard]] const manager_address& address() const noexcept { return mine_; }
  /// Becomes readable when a connection has changed its state; `take_news` silences it.
  [[nodiscard]] int news_fd() const noexcept { return news_; }
  [[nodiscard]] bool take_news() noexcept;

  /// The connection with a rank, if either side has asked for it.
  [[nodiscard]] connection* find(int peer, channel of = channel::control);
  [[nodiscard]] connection* find_queue_pair(std::uint32_t number);
  /// Asks for one. Whether it is there is seen by its state.
  connection* ask(int peer, const manager_address& theirs, channel of = channel::control);
  /// Makes a connection anew that is broken; what was under way on it is over. The old queue pair stays, in error,
  /// until the end: with it would go completions that are still to be taken. `over`: bulk receives.
  void mend(connection& c, std::uint32_t over = 0);
  /// Its queue pair gives everything back.
  void stop(connection& c) noexcept;
  /// Connections that have broken, ever, or whose peers have died: grows.
  [[nodiscard]] std::uint32_t breaks() const noexcept { return breaks_.load(std::memory_order_acquire); }
  /// Those that are so now.
  [[nodiscard]] std::vector<connection*> broken();
  /// An operation failed: the connection is of no use any more.
  void give_up(connection& c) noexcept;
  /// The peer is dead. From any thread.
  void forget(int peer) noexcept;
  /// Connections that have a queue pair now.
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
  void settle(connection& c, connection_state state) noexcept;
  [[nodiscard]] std::int64_t next_due_ns() noexcept;
  void kick(int descriptor) const noexcept;

  adapter& device_;
  const int rank_;
  const std::string key_;
  const queue_plan plan_;
  manager_address mine_;

  mutable std::mutex lock_;  ///< of the connections' handshakes and of what follows
  std::map<std::pair<int, channel>, connection*> by_peer_;
  std::unordered_map<std::uint32_t, connection*> by_queue_pair_;
  std::deque<connection> connections_;
  std::vector<ibv_qp*> retired_;  ///< of connections that were made anew
  bool complained_ = false;
  bool unheard_said_ = false;
  std::uint32_t next_packet_;

  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_qp* queue_pair_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::vector<std::byte> memory_;
  std::array<sending, 16> sendings_{};
  int kick_ = -1;  ///< the thread shall look around
  int news_ = -1;
  std::atomic<std::uint32_t> breaks_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace rma::verbs
