// SPDX-License-Identifier: Apache-2.0
/// \file
/// Waits on a real machine: the doorbell is a futex in the node's memory, or a socket if descriptors have to be watched
/// as well; liveness words show deaths.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "fabric/platform.hpp"
#include "fabric/shm/board.hpp"

namespace rma::shm {

/// The numbers of ranks and of the processors that they share.
struct node_load {
  std::size_t ranks = 1;
  std::size_t cores = 1;
  std::size_t turn = 0;  ///< number of these ranks before this one
};

class node_platform final : public detail::platform {
 public:
  node_platform(board& node, node_load load);

  void begin() override;
  std::int64_t now_ns() noexcept override;
  void compute(std::int64_t) noexcept override {}
  void inside(bool yes) noexcept override;
  void yield() noexcept override;
  std::uint32_t arm(bool serves) noexcept override;
  void sleep(std::uint32_t armed, std::int64_t timeout_ns) noexcept override;
  void retract() noexcept override;
  void watch(int descriptor) override;
  void say_where(std::string_view call) noexcept override;
  void tell_stall(std::int64_t waited_ns, std::int64_t every_ns) noexcept override;
  void ring(int world_rank) noexcept override;
  void look_for_deaths(std::vector<int>& died) noexcept override;
  bool has_left(int world_rank) noexcept override;
  detail::patience waits(std::int64_t spin_ns) const noexcept override;
  std::string why_waits(std::int64_t spin_ns) const override;
  std::unique_ptr<detail::helper_thread> start(std::function<void()> run) override;

 private:
  void sleep_on_descriptors(std::uint32_t rings, std::int64_t timeout_ns) noexcept;
  [[nodiscard]] std::string place_of(std::size_t index) const;
  void poll_descriptors(std::int64_t timeout_ns) noexcept;

  board& board_;
  std::vector<pollfd> polled_;           ///< the bell is the first; empty: the futex suffices
  std::atomic<std::uint32_t> arms_ = 0;  ///< number of armings of the doorbell
  std::atomic<bool> polling_ = false;    ///< a thread of this rank watches the descriptors
  std::atomic<unsigned> followers_ = 0;  ///< other sleeping threads, which it wakes
  detail::word32 rings_{};               ///< number of its returns; the other threads sleep on this word
  bool fences_ = false;                  ///< it executes fences for others before it sleeps
  std::vector<bool> reported_;
  node_load load_;
};

}  // namespace rma::shm
