// SPDX-License-Identifier: Apache-2.0
/// \file
/// Waits in virtual time: a sleeping rank lets others run, and the work of its processor is charged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/platform.hpp"
#include "fabric/shm/board.hpp"
#include "fabric/sim/sim_client.hpp"

namespace rma::sim {

class sim_platform final : public detail::platform {
 public:
  sim_platform(sim_client& boot, shm::board& node);

  [[nodiscard]] world& job() const noexcept { return job_; }

  std::int64_t now_ns() noexcept override;
  std::int64_t read_clock_ns() noexcept override;
  void compute(std::int64_t work_ns) noexcept override;
  void inside(bool yes) noexcept override;
  void yield() noexcept override;
  std::uint32_t arm(bool serves) noexcept override;
  void sleep(std::uint32_t armed, std::int64_t timeout_ns) noexcept override;
  void retract() noexcept override;
  void ring(int world_rank) noexcept override;
  void look_for_deaths(std::vector<int>& died) noexcept override;
  bool has_left(int world_rank) noexcept override;
  detail::patience waits(std::int64_t spin_ns) const noexcept override;
  std::string why_waits(std::int64_t) const override { return "pass virtual time"; }
  std::unique_ptr<detail::helper_thread> start(std::function<void()> run) override;
  std::uintptr_t thread() noexcept override;
  void take(detail::small_lock& lock) noexcept override;

  bool keeps_accounts() const noexcept override;
  bool is_simulated() const noexcept override { return true; }
  void charge(detail::cost_kind what, std::uint64_t bytes) noexcept override;
  void pass_charged_time() noexcept override;
  void enter(std::string_view call, int target) noexcept override;
  void exit() noexcept override;

 private:
  void show(shm::whereabouts where) noexcept;

  sim_client& boot_;
  world& job_;
  int rank_;
  shm::board& board_;
};

}  // namespace rma::sim
