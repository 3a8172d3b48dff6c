// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank's connection to its simulated job, without sockets and server, and the memory of its node.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "boot/boot.hpp"
#include "fabric/shm/board.hpp"
#include "fabric/sim/sim_boot.hpp"
#include "fabric/sim/world.hpp"

namespace rma::sim {

/// Only fibers of the rank may use it; other threads may call `abort`, which then ends the process.
class sim_client final : public boot::client, public shm::segment_provider {
 public:
  /// Waits until all ranks have joined. Throws Error(peer_failed).
  sim_client(world& job, int rank);
  /// A rank that has not left counts as dead.
  ~sim_client() override;

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return job_.size(); }
  status put(std::string_view key, std::string_view value) override;
  status get(std::string_view key, std::string& value) override;
  status fence() override;
  /// Does not return: the job has ended.
  void abort(int code, std::string_view message) noexcept override;
  void finalize() noexcept override;
  void report_death(int) noexcept override {}
  int event_fd() const noexcept override { return -1; }
  status poll_events(std::vector<int>& died) override;

  std::byte* memory(std::size_t bytes) override;
  void give_back() noexcept override;
  bool alive(int world_rank) noexcept override { return job_.alive(world_rank); }
  void wake(int world_rank) noexcept override { job_.wake(world_rank); }

  [[nodiscard]] world& job() noexcept { return job_; }
  [[nodiscard]] sim_boot& round() noexcept { return boot_; }
  /// True if the rank has left the job regularly, on any node.
  [[nodiscard]] bool has_left(int rank) const noexcept { return boot_.has_left(rank); }

 private:
  world& job_;
  int rank_;
  sim_boot& boot_;
  std::size_t deaths_seen_ = 0;
  bool inside_ = true;
};

}  // namespace rma::sim
