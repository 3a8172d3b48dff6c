// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/assert.hpp"

namespace rma::verbs {

/// The completion queue of all queue pairs, and the completion channel that wakes a sleeping rank.
class completion_queue {
 public:
  /// Throws Error(unreachable).
  completion_queue(ibv_context* device, int entries);
  ~completion_queue();
  completion_queue(const completion_queue&) = delete;
  completion_queue& operator=(const completion_queue&) = delete;

  [[nodiscard]] ibv_cq* queue() const noexcept { return queue_; }
  [[nodiscard]] int fd() const noexcept { return channel_->fd; }

  /// The number of completions that have been fetched and not taken; polls the adapter if there are none.
  unsigned fetch() noexcept;
  [[nodiscard]] bool has_fetched() const noexcept { return count_ != 0; }
  /// The next fetched completion; valid until the next `fetch`.
  const ibv_wc& take() noexcept {
    RMA_ASSERT(count_ != 0);
    --count_;
    return fetched_[first_++];
  }
  /// False if the last fetch has emptied the queue.
  [[nodiscard]] bool filled_batch() const noexcept { return first_ + count_ == fetched_.size(); }
  /// Requests an event of the channel for the next completion.
  void arm() noexcept;

 private:
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  std::array<ibv_wc, 32> fetched_;
  unsigned first_ = 0, count_ = 0;
  bool armed_ = false;
};

/// Limits the entries with completions to come: those of all send queues, and bulk receives.
struct completion_budget {
  std::uint32_t under_way = 0;  ///< outstanding entries of all connections
  std::uint32_t max = 0;        ///< reduced by posted bulk receives, which have completions, too

  [[nodiscard]] bool has_room(std::size_t entries = 1) const noexcept { return under_way + entries <= max; }
  /// Unsignaled entries use at most half of the completion queue: if they used all of it, no completion would ever make
  /// room.
  [[nodiscard]] bool half_used() const noexcept { return 2 * under_way > max; }
};

}  // namespace rma::verbs
