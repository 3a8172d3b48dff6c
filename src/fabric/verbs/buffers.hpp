// SPDX-License-Identifier: Apache-2.0
/// \file
/// Registered memory of the fabric's own: buffers of one size for messages, and for data from and to memory that is not
/// registered.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rma::verbs {

class buffer_pool {
 public:
  /// Throws Error(out_of_memory).
  buffer_pool(ibv_pd* domain, std::size_t count, std::size_t bytes);
  ~buffer_pool();
  buffer_pool(const buffer_pool&) = delete;
  buffer_pool& operator=(const buffer_pool&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t free() const noexcept { return free_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t key() const noexcept { return region_->lkey; }
  [[nodiscard]] std::byte* at(std::int32_t index) const noexcept {
    return memory_ + static_cast<std::size_t>(index) * bytes_;
  }
  /// Returns -1 if no buffer is free.
  [[nodiscard]] std::int32_t take() noexcept {
    if (free_.empty()) return -1;
    const std::int32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void give_back(std::int32_t index) noexcept { free_.push_back(index); }

 private:
  std::size_t count_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::vector<std::int32_t> free_;
};

/// The shared receive queue of all connections.
class receive_queue {
 public:
  /// Throws Error(out_of_memory, unreachable).
  receive_queue(ibv_pd* domain, std::size_t count, std::size_t bytes);
  ~receive_queue();
  receive_queue(const receive_queue&) = delete;
  receive_queue& operator=(const receive_queue&) = delete;

  [[nodiscard]] ibv_srq* queue() const noexcept { return queue_; }
  [[nodiscard]] std::byte* at(std::int32_t index) const noexcept { return pool_.at(index); }
  /// Returns a buffer whose message has been handled. It is posted again with a batch, or by `replenish`.
  void give_back(std::int32_t index) noexcept;
  void replenish() noexcept;
  [[nodiscard]] bool has_handled() const noexcept { return !handled_.empty(); }

 private:
  buffer_pool pool_;
  ibv_srq* queue_ = nullptr;
  std::vector<std::int32_t> handled_;
  std::vector<ibv_recv_wr> requests_;
  std::vector<ibv_sge> places_;
};

}  // namespace rma::verbs
