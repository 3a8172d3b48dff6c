// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/assert.hpp"

namespace rma::verbs {

/// The completion queue of all queue pairs, and the channel that tells of it while the rank sleeps.
class completion_queue {
 public:
  /// Throws Error(unreachable).
  completion_queue(ibv_context* device, int entries);
  ~completion_queue();
  completion_queue(const completion_queue&) = delete;
  completion_queue& operator=(const completion_queue&) = delete;

  [[nodiscard]] ibv_cq* queue() const noexcept { return queue_; }
  [[nodiscard]] int fd() const noexcept { return channel_->fd; }

  /// How many completions have been fetched and not been taken; asks the adapter if there are none.
  unsigned fetch() noexcept;
  [[nodiscard]] bool has_fetched() const noexcept { return count_ != 0; }
  /// The next one that was fetched; valid until the next `fetch`.
  const ibv_wc& take() noexcept {
    RMA_ASSERT(count_ != 0);
    --count_;
    return fetched_[first_++];
  }
  /// False if there was nothing more when the last batch was fetched.
  [[nodiscard]] bool filled_batch() const noexcept { return first_ + count_ == fetched_.size(); }
  /// The channel tells of the next completion from here on.
  void arm() noexcept;

 private:
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  std::array<ibv_wc, 32> fetched_;
  unsigned first_ = 0, count_ = 0;
  bool armed_ = false;
};

/// How many entries may have completions to come: those of all send queues, and bulk receives.
struct completion_budget {
  std::uint32_t under_way = 0;  ///< entries posted and not over, of all connections
  std::uint32_t max = 0;        ///< less when bulk receives, which have completions too, are posted

  [[nodiscard]] bool has_room(std::size_t entries = 1) const noexcept { return under_way + entries <= max; }
  /// Entries that say nothing fill at most half of the completion queue: were it all of it, nothing would ever make
  /// room.
  [[nodiscard]] bool half_used() const noexcept { return 2 * under_way > max; }
};

}  // namespace rma::verbs
