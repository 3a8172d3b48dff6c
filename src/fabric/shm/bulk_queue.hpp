// SPDX-License-Identifier: Apache-2.0
/// \file
/// The bulk sends or receives of one peer that wait for each other, the oldest first. The queue takes memory only while
/// it grows beyond what it has held, and its entries keep the memory of their lists for later ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rma::shm {

template <class Slice>
class bulk_queue {
 public:
  struct entry {
    std::vector<Slice> list;
    std::uint64_t token = 0;
  };

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] entry& operator[](std::size_t i) noexcept { return ring_[(first_ + i) % ring_.size()]; }
  [[nodiscard]] entry& front() noexcept { return (*this)[0]; }
  /// Adds an entry, whose list is that of an earlier one: the caller replaces it.
  entry& add() {
    if (size_ == ring_.size()) grow();
    return (*this)[size_++];
  }
  void drop_first() noexcept {
    first_ = (first_ + 1) % ring_.size();
    --size_;
  }

 private:
  void grow() {
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(first_), ring_.end());
    first_ = 0;
    ring_.resize(std::max<std::size_t>(8, 2 * ring_.size()));
  }

  std::vector<entry> ring_;
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace rma::shm
