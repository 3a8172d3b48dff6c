// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace rma::fabric {

/// Ranks whose deaths are news. Any thread adds them, which may hold locks of its own; the next poll takes them, before
/// anything else.
class death_notes {
 public:
  void add(int rank) noexcept {
    const std::lock_guard guard(lock_);
    ranks_.push_back(rank);
    any_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  [[nodiscard]] std::vector<int> take() noexcept {
    const std::lock_guard guard(lock_);
    any_.store(false, std::memory_order_relaxed);
    return std::exchange(ranks_, {});
  }

 private:
  std::mutex lock_;
  std::vector<int> ranks_;  ///< guarded by lock_
  std::atomic<bool> any_ = false;
};

}  // namespace rma::fabric
