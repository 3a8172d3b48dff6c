// SPDX-License-Identifier: Apache-2.0
/// \file
/// A list of functions of several users that the context calls at one point.
#pragma once

#include <array>
#include <cstddef>

#include "core/assert.hpp"

namespace rma::detail {

/// At most N functions, each with its user's `self` as the first argument, in the order in which they were added.
template <class Function, std::size_t N = 8>
class hook_list {
 public:
  struct hook {
    Function* run = nullptr;
    void* self = nullptr;
  };

  /// Adds a function; each user has one at most.
  void add(Function* run, void* self) noexcept {
    RMA_ASSERT(count_ < N && index_of(self) == count_);
    hooks_[count_++] = {run, self};
  }
  /// Removes the user's function, if it has one.
  void remove(const void* self) noexcept {
    std::size_t i = index_of(self);
    if (i == count_) return;
    for (--count_; i < count_; ++i) hooks_[i] = hooks_[i + 1];
  }
  [[nodiscard]] const hook* begin() const noexcept { return hooks_.data(); }
  [[nodiscard]] const hook* end() const noexcept { return hooks_.data() + count_; }
  [[nodiscard]] const hook& operator[](std::size_t i) const noexcept { return hooks_[i]; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// The index of the user's function; size() if it has none.
  [[nodiscard]] std::size_t index_of(const void* self) const noexcept {
    std::size_t i = 0;
    while (i < count_ && hooks_[i].self != self) ++i;
    return i;
  }

 private:
  std::array<hook, N> hooks_{};
  std::size_t count_ = 0;
};

}  // namespace rma::detail
