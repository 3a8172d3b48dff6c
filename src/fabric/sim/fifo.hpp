// SPDX-License-Identifier: Apache-2.0
/// \file
/// A queue that takes memory only while it grows beyond what it has ever held. (A std::deque allocates and frees a
/// block for every few entries that pass through it.)
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace rma::sim {

template <class T>
class fifo {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == entries_.size(); }
  [[nodiscard]] T& front() noexcept { return entries_[first_]; }
  void push_back(T&& entry) {
    if (first_ != 0 && entries_.size() == entries_.capacity()) compact();
    entries_.push_back(std::move(entry));
  }
  T pop_front() {
    T entry = std::move(entries_[first_++]);
    if (empty()) {
      entries_.clear();
      first_ = 0;
    }
    return entry;
  }
  template <class Is>
  void erase_if(Is&& is) {
    compact();
    std::erase_if(entries_, is);
  }

 private:
  void compact() {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  std::vector<T> entries_{};
  std::size_t first_ = 0;
};

}  // namespace rma::sim
