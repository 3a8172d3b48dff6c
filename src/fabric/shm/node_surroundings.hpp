// SPDX-License-Identifier: Apache-2.0
/// \file
/// Waiting on a real machine: the doorbell is a futex in the node's memory, or a socket where descriptors have to be
/// watched as well; deaths are seen by liveness words.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "fabric/shm/board.hpp"
#include "fabric/surroundings.hpp"

namespace rma::shm {

class node_surroundings final : public detail::surroundings {
 public:
  /// `local_ranks`: ranks on this machine if the launcher said so, else 0.
  node_surroundings(board& node, std::size_t local_ranks);

  std::int64_t now_ns() noexcept override;
  void compute(std::int64_t) noexcept override {}
  void inside(bool yes) noexcept override;
  void yield() noexcept override;
  std::uint32_t arm() noexcept override;
  void sleep(std::uint32_t armed, std::int64_t timeout_ns) noexcept override;
  void retract() noexcept override;
  void watch(int descriptor) override;
  void ring(int world_rank) noexcept override;
  void look_for_deaths(std::vector<int>& died) noexcept override;
  bool has_left(int world_rank) noexcept override;
  detail::patience waits(std::int64_t spin_ns) const noexcept override;
  std::unique_ptr<detail::companion> start(std::function<void()> run) override;

 private:
  void sleep_on_descriptors(std::uint32_t rings, std::int64_t timeout_ns) noexcept;
  void poll_descriptors(std::int64_t timeout_ns) noexcept;

  board& board_;
  std::vector<pollfd> watched_;          ///< the bell first; empty: the futex does
  std::atomic<std::uint32_t> arms_ = 0;  ///< how often the doorbell was armed
  std::atomic<bool> polling_ = false;    ///< a thread of this rank watches the descriptors
  std::atomic<unsigned> followers_ = 0;  ///< other threads, which it wakes
  detail::word32 rings_{};               ///< how often it has been back; they sleep on this
  std::vector<bool> reported_;
  bool oversubscribed_;  ///< more ranks than cores: spinning keeps others from running
};

}  // namespace rma::shm
