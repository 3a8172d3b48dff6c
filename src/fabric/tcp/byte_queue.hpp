// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "core/assert.hpp"

namespace rma::tcp {

/// A queue of bytes in one contiguous buffer, which grows and does not shrink.
class byte_queue {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
  [[nodiscard]] bool empty() const noexcept { return end_ == begin_; }
  [[nodiscard]] std::byte* data() noexcept { return bytes_.get() + begin_; }
  /// Returns room for at least `bytes` after the last byte; `append` with the number of bytes used follows.
  std::byte* room(std::size_t bytes) {
    if (capacity_ - end_ < bytes) make_room(bytes);
    return bytes_.get() + end_;
  }
  void append(std::size_t bytes) noexcept {
    RMA_ASSERT(bytes <= capacity_ - end_);
    end_ += bytes;
  }
  void append(const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    std::memcpy(room(bytes), from, bytes);
    append(bytes);
  }
  void consume(std::size_t bytes) noexcept {
    RMA_ASSERT(bytes <= size());
    begin_ += bytes;
    if (begin_ == end_) clear();
  }
  void clear() noexcept { begin_ = end_ = 0; }

 private:
  void make_room(std::size_t bytes) {
    const std::size_t kept = size();
    if (capacity_ - kept < bytes) {
      const std::size_t capacity = std::max(2 * capacity_, kept + bytes);
      auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
      if (kept != 0) std::memcpy(larger.get(), data(), kept);
      bytes_ = std::move(larger);
      capacity_ = capacity;
    } else if (kept != 0) {
      std::memmove(bytes_.get(), data(), kept);
    }
    begin_ = 0;
    end_ = kept;
  }

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace rma::tcp
