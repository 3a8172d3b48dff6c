// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks that have died or left the job: how this rank hears of them. The platform sees those of the node, the job's
/// server tells of the others, and a fabric reports a peer that it does not reach any more. For any thread.
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
  static constexpr std::int64_t look_every_ns = 100'000'000;  ///< deaths are news within 2 s

  gone_ranks(boot::client& boot, fabric::network& node, fabric::network* wide, platform& around) noexcept
      : boot_(boot), node_(node), wide_(wide), around_(around) {}

  [[nodiscard]] bool dead(int rank) noexcept;
  /// Has ended its Runtime, and serves nobody any more.
  [[nodiscard]] bool has_left(int rank) noexcept;
  [[nodiscard]] bool gone(int rank) noexcept { return has_left(rank) || dead(rank); }
  [[nodiscard]] std::vector<int> all_dead();
  /// Number of deaths seen so far.
  [[nodiscard]] std::uint32_t deaths() const noexcept { return deaths_.load(); }
  [[nodiscard]] bool job_is_aborted() const noexcept { return aborted_.load() != 0; }

  /// Looks for deaths and departures, if that has not been done for a while.
  void look_around(std::int64_t now_ns) noexcept;
  /// A fabric found out that this rank's process is gone, before the platform was looked at.
  void report_lost(int rank) noexcept;
  /// Something was revoked: every wait asks whether it can go on.
  void note_revocation() noexcept { revocations_.fetch_add(1); }

  /// Deaths and departures, counted together.
  [[nodiscard]] std::uint32_t news() const noexcept {
    return deaths_.load(std::memory_order_relaxed) + departures_.load(std::memory_order_relaxed);
  }
  /// The same with revocations and the end of the job.
  [[nodiscard]] std::uint32_t all_news() const noexcept {
    return deaths_.load() + departures_.load() + aborted_.load() + revocations_.load();
  }

  /// The rank that the last peer_failed was about; -1 if none.
  [[nodiscard]] int last_failed() const noexcept { return last_failed_.load(std::memory_order_relaxed); }
  void set_last_failed(int rank) noexcept { last_failed_.store(rank, std::memory_order_relaxed); }
  /// Why calls that need `rank` fail, for people.
  [[nodiscard]] std::string why_failed(int rank);
  /// A value of the job's store that says where `rank` is. Without an answer from the process of rank 0, where the
  /// job's server is, the rank is lost to this one.
  status look_up(int rank, std::string_view key, std::string& value) noexcept;

 private:
  [[nodiscard]] bool is_dead(int rank) const noexcept;
  void mark_dead(int rank) noexcept;
  void mark_other_nodes_dead() noexcept;

  boot::client& boot_;
  fabric::network& node_;
  fabric::network* const wide_;
  platform& around_;
  std::mutex lock_;  ///< of the ranks, and of the boot client, which is for one thread at a time
  std::vector<int> dead_;
  std::vector<int> left_;             ///< of other nodes
  std::vector<int> unmet_;            ///< of dead_: those that nobody has said the address of
  status no_address_ = status::done;  ///< why
  bool cut_off_ = false;              ///< from the job
  word32 far_left_{};                 ///< how many are in left_
  word32 deaths_{};
  word32 aborted_{};
  word32 departures_{};
  word32 revocations_{};
  std::atomic<std::int64_t> looked_ns_ = 0;
  std::atomic<int> last_failed_ = -1;
};

}  // namespace rma::detail
