// SPDX-License-Identifier: Apache-2.0
#include "channel/gone_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

bool is_in(const std::vector<int>& ranks, int rank) noexcept {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

void gone_ranks::look_around(std::int64_t now_ns) noexcept {
  if (now_ns - looked_ns_.load(std::memory_order_relaxed) < look_every_ns) return;
  const std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard) return;
  looked_ns_.store(now_ns, std::memory_order_relaxed);
  std::vector<int> died;
  around_.look_for_deaths(died);
  for (const int rank : died) boot_.report_death(rank);
  const status job = boot_.poll_events(died);
  for (const int rank : died) mark_dead(rank);
  std::vector<int> left;
  boot_.take_departures(left);
  left_.insert(left_.end(), left.begin(), left.end());
  far_left_.store(static_cast<std::uint32_t>(left_.size()));
  if (job == status::fabric_lost && boot_.rank_0_serves()) {
    mark_other_nodes_dead();
  } else if (!ok(job)) {
    aborted_.store(1);
  }
  departures_.fetch_add(1);  // departures are looked up, not reported: waits test `failed` again
}

bool gone_ranks::is_dead(int rank) const noexcept { return is_in(dead_, rank); }

bool gone_ranks::dead(int rank) noexcept {
  if (deaths_.load() == 0) return false;
  const std::lock_guard guard(lock_);
  return is_dead(rank);
}

// Departures of ranks of this node are visible at once; the job's server reports those of others.
bool gone_ranks::has_left(int rank) noexcept {
  if (around_.has_left(rank)) return true;
  if (far_left_.load() == 0) return false;
  const std::lock_guard guard(lock_);
  return is_in(left_, rank);
}

std::vector<int> gone_ranks::all_dead() {
  const std::lock_guard guard(lock_);
  return dead_;
}

void gone_ranks::report_lost(int rank) noexcept {
  set_last_failed(rank);
  const std::lock_guard guard(lock_);
  if (is_dead(rank)) return;
  boot_.report_death(rank);
  mark_dead(rank);
}

// The fabrics end transfers of the dead rank first: its locks are free when its death is known, and none of its
// messages arrives afterwards.
void gone_ranks::mark_dead(int rank) noexcept {
  if (is_dead(rank)) return;
  node_.as_liveness().forget(rank);
  if (wide_ != nullptr) wide_->as_liveness().forget(rank);
  dead_.push_back(rank);
  deaths_.fetch_add(1);
  RMA_ASSERT(deaths_.load() == dead_.size());
}

// Called when this node is cut off from the job, or the job's first rank has gone: ranks of other nodes must be
// presumed dead. The ranks of one node see each other, and continue.
void gone_ranks::mark_other_nodes_dead() noexcept {
  if (std::exchange(cut_off_, true)) return;
  for (int rank = 0; rank < boot_.size(); ++rank) {
    const bool left = around_.has_left(rank) || is_in(left_, rank);
    if (!node_.as_facts().reaches(rank) && !left) mark_dead(rank);
  }
}

status gone_ranks::look_up(int rank, std::string_view key, std::string& value) noexcept {
  const std::lock_guard guard(lock_);
  const status s = boot_.get(key, value);
  const bool nobody_answers = s == status::bad_boot || s == status::fabric_lost;
  if (!nobody_answers || !boot_.rank_0_serves()) return s;
  if (!is_dead(rank)) {
    unmet_.push_back(rank);
    no_address_ = s;
    mark_dead(rank);
  }
  set_last_failed(rank);
  return status::peer_failed;
}

std::string gone_ranks::why_failed(int rank) {
  const std::lock_guard guard(lock_);
  if (!is_in(unmet_, rank)) return fmt::format("world rank {} is dead or has left the job", rank);
  return fmt::format(
      "world rank {} cannot be met for the first time: its address is with the job's server in the process of rank 0, "
      "which {}; let rank 0 stay until all have met, or start the ranks with rmarun",
      rank,
      no_address_ == status::fabric_lost ? "has ended"
                                         : "has not answered for RMA_BOOT_TIMEOUT_MS (is that process stopped?)");
}

}  // namespace rma::detail
