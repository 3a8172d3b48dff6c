// SPDX-License-Identifier: Apache-2.0
/// \file
/// Detects ranks that have died or left the job. The platform sees those of the node, the job's server reports the
/// others, and a fabric reports a peer that it cannot reach any more. For any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "boot/boot.hpp"
#include "fabric/fabric.hpp"
#include "fabric/platform.hpp"
#include "rma/detail/word.hpp"

namespace rma::detail {

class gone_ranks {
 public:
  static constexpr std::int64_t look_every_ns = 100'000'000;  ///< deaths are reported within 2 s

  gone_ranks(boot::client& boot, fabric::network& node, fabric::network* wide, platform& around) noexcept
      : boot_(boot), node_(node), wide_(wide), around_(around) {}

  [[nodiscard]] bool dead(int rank) noexcept;
  /// True if the rank has ended its Runtime, and makes no progress any more.
  [[nodiscard]] bool has_left(int rank) noexcept;
  [[nodiscard]] bool gone(int rank) noexcept { return has_left(rank) || dead(rank); }
  [[nodiscard]] std::vector<int> all_dead();
  /// Number of deaths seen so far.
  [[nodiscard]] std::uint32_t deaths() const noexcept { return deaths_.load(); }
  [[nodiscard]] bool job_is_aborted() const noexcept { return aborted_.load() != 0; }

  /// Looks for deaths and departures, if that has not been done for a while.
  void look_around(std::int64_t now_ns) noexcept;
  /// Called when a fabric has found that this rank's process is gone, before the platform has.
  void report_lost(int rank) noexcept;
  /// Called after a revocation: every wait checks whether its condition can still become true.
  void note_revocation() noexcept { revocations_.fetch_add(1); }

  /// Number of deaths and departures.
  [[nodiscard]] std::uint32_t news() const noexcept {
    return deaths_.load(std::memory_order_relaxed) + departures_.load(std::memory_order_relaxed);
  }
  /// Number of deaths, departures, revocations and ends of the job.
  [[nodiscard]] std::uint32_t all_news() const noexcept {
    return deaths_.load() + departures_.load() + aborted_.load() + revocations_.load();
  }

  /// The rank that the last peer_failed was about; -1 if none.
  [[nodiscard]] int last_failed() const noexcept { return last_failed_.load(std::memory_order_relaxed); }
  void set_last_failed(int rank) noexcept { last_failed_.store(rank, std::memory_order_relaxed); }
  /// A readable reason why calls that need `rank` fail.
  [[nodiscard]] std::string why_failed(int rank);
  /// The address of `rank` from the job's store. If the job's server, in the process of rank 0, does not answer, the
  /// rank is lost to this one.
  status look_up(int rank, std::string_view key, std::string& value) noexcept;

 private:
  [[nodiscard]] bool is_dead(int rank) const noexcept;
  void mark_dead(int rank) noexcept;
  void mark_other_nodes_dead() noexcept;

  boot::client& boot_;
  fabric::network& node_;
  fabric::network* const wide_;
  platform& around_;
  std::mutex lock_;  ///< guards the lists and the boot client, which is for one thread at a time
  std::vector<int> dead_;
  std::vector<int> left_;             ///< ranks of other nodes that have left
  std::vector<int> unmet_;            ///< those of dead_ whose address was never received
  status no_address_ = status::done;  ///< the reason
  bool cut_off_ = false;              ///< the job's server cannot be reached
  word32 far_left_{};                 ///< size of left_
  word32 deaths_{};
  word32 aborted_{};
  word32 departures_{};
  word32 revocations_{};
  std::atomic<std::int64_t> looked_ns_ = 0;
  std::atomic<int> last_failed_ = -1;
};

}  // namespace rma::detail
