// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks that have died or left: how this rank hears of them, and which parts of the library it notifies.
#include <algorithm>
#include <mutex>
#include <vector>

#include "channel/context.hpp"

namespace rma::detail {

void context::tell_news() noexcept {
  news_told_ = news();
  for (const auto& each : news_) each.run(each.self);
  wake_others();
}

void context::look_around(std::int64_t now_ns) noexcept {
  if (now_ns - looked_ns_.load(std::memory_order_relaxed) < look_around_every_ns) return;
  const std::unique_lock guard(news_lock_, std::try_to_lock);
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
  departures_.fetch_add(1);  // departures are looked up, not reported: ask `failed` again
}

bool context::dead(int rank) noexcept {
  if (deaths_.load() == 0) return false;
  const std::lock_guard guard(news_lock_);
  return std::find(dead_.begin(), dead_.end(), rank) != dead_.end();
}

bool context::gone(int rank) noexcept { return has_left(rank) || dead(rank); }

// The ranks of this node see it at once; of others the job's server tells.
bool context::has_left(int rank) noexcept {
  if (around_.has_left(rank)) return true;
  if (far_left_.load() == 0) return false;
  const std::lock_guard guard(news_lock_);
  return std::find(left_.begin(), left_.end(), rank) != left_.end();
}

void context::report_lost(int rank) noexcept {
  set_last_failed(rank);
  const std::lock_guard guard(news_lock_);
  if (std::find(dead_.begin(), dead_.end(), rank) != dead_.end()) return;
  boot_.report_death(rank);
  mark_dead(rank);
}

// The fabrics end transfers of the dead rank first: its locks are free when its death is known, and none of its
// messages arrives afterwards.
void context::mark_dead(int rank) noexcept {
  if (std::find(dead_.begin(), dead_.end(), rank) != dead_.end()) return;
  node_.as_liveness().forget(rank);
  if (wide_ != nullptr) wide_->as_liveness().forget(rank);
  dead_.push_back(rank);
  deaths_.fetch_add(1);
}

// This node is cut off from the job, or the job's first rank is gone: who is elsewhere must be presumed dead. The ranks
// of one node see each other, and go on.
void context::mark_other_nodes_dead() noexcept {
  if (std::exchange(cut_off_, true)) return;
  for (int rank = 0; rank < boot_.size(); ++rank) {
    const bool left = around_.has_left(rank) || std::find(left_.begin(), left_.end(), rank) != left_.end();
    if (!node_.as_facts().reaches(rank) && !left) mark_dead(rank);
  }
}

std::vector<int> context::dead_ranks() {
  const std::lock_guard guard(news_lock_);
  return dead_;
}

// Out of reach is as good as dead; of who has left in good order nothing is expected.
void context::on_broken(int rank) noexcept {
  if (!has_left(rank)) report_lost(rank);
}

}  // namespace rma::detail
