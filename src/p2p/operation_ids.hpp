// SPDX-License-Identifier: Apache-2.0
/// \file
/// Identifiers of operations in messages of other ranks. A generation is part of each, so that a late message finds
/// none.
#pragma once

#include <cstdint>
#include <vector>

#include "core/assert.hpp"
#include "p2p/operation.hpp"

namespace rma::detail {

class operation_ids {
 public:
  /// Assigns an identifier, which is never 0.
  void add(message_operation& op) {
    RMA_ASSERT(op.id == 0);
    if (free_ == none) {
      free_ = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back({nullptr, 1, none});
    }
    const std::uint32_t index = free_;
    slot& s = slots_[index];
    free_ = s.next_free;
    RMA_ASSERT(s.op == nullptr && s.generation != 0);
    s.op = &op;
    op.id = std::uint64_t{s.generation} << 32 | index;
  }
  void remove(message_operation& op) noexcept {
    if (op.id == 0) return;
    const auto index = static_cast<std::uint32_t>(op.id);
    RMA_ASSERT(index < slots_.size() && slots_[index].op == &op);
    slot& s = slots_[index];
    s.op = nullptr;
    if (++s.generation == 0) s.generation = 1;
    s.next_free = free_;
    free_ = index;
    op.id = 0;
  }
  /// Returns null if there is no such operation, or it belongs to another rank.
  [[nodiscard]] message_operation* find(std::uint64_t id, int peer) const noexcept {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= slots_.size()) return nullptr;
    message_operation* const op = slots_[index].op;
    return op != nullptr && op->id == id && op->with == peer ? op : nullptr;
  }
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].op != nullptr) visit(*slots_[i].op);
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct slot {
    message_operation* op;
    std::uint32_t generation;
    std::uint32_t next_free;
  };
  std::vector<slot> slots_;
  std::uint32_t free_ = none;
};

}  // namespace rma::detail
