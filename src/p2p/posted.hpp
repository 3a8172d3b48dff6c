// SPDX-License-Identifier: Apache-2.0
/// \file
/// Posted receives. A single one is compared with each message directly; the table is for several.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "core/assert.hpp"
#include "p2p/match_table.hpp"
#include "p2p/operation.hpp"
#include "p2p/unexpected.hpp"

namespace rma::detail {

class posted_receives {
 public:
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// True if a receive has a wildcard for its source or tag.
  [[nodiscard]] bool has_wildcards() const noexcept {
    return only_ != nullptr ? class_of(only_->peer, only_->tag) != exact
                            : (by_class_[1] | by_class_[2] | by_class_[3]) != 0;
  }

  /// Adds a receive after the others that match the same messages.
  void add(receive_operation& op) noexcept {
    RMA_ASSERT(only_ != &op);
    RMA_ASSERT(only_ == nullptr || count_ == 1);
    if (count_++ == 0) {
      only_ = &op;
      return;
    }
    if (only_ != nullptr) tabulate(*std::exchange(only_, nullptr));
    tabulate(op);
  }
  void remove(receive_operation& op) noexcept {
    RMA_ASSERT(count_ != 0);
    RMA_ASSERT(only_ == nullptr || only_ == &op);
    --count_;
    if (only_ == &op) {
      only_ = nullptr;
      return;
    }
    RMA_ASSERT(by_class_[class_of(op.peer, op.tag)] != 0);
    --by_class_[class_of(op.peer, op.tag)];
    table_.remove(op);
    RMA_ASSERT(count_ != 0 || table_.empty());
  }
  /// The receive posted first of all that match a message with this key, or null.
  [[nodiscard]] receive_operation* find(const match_key& key) const noexcept {
    if (count_ == 0) return nullptr;
    if (only_ != nullptr) return matches(*only_, key) ? only_ : nullptr;
    match_entry* best = table_.find(key);
    for (unsigned kind = 1; kind < match_classes; ++kind) {
      if (by_class_[kind] == 0) continue;
      match_entry* const found = table_.find(key_of_class(key, kind));
      if (found != nullptr && (best == nullptr || found->number < best->number)) best = found;
    }
    return static_cast<receive_operation*>(best);
  }
  /// The first receive with exactly this source and tag, wildcards included, or null.
  [[nodiscard]] receive_operation* first_of(const match_key& key) const noexcept {
    if (only_ != nullptr) return only_->match_entry::key == key ? only_ : nullptr;
    return static_cast<receive_operation*>(table_.find(key));
  }
  /// Calls `visit(op)` for each, in no order.
  template <class Visit>
  void for_each(Visit&& visit) {
    if (only_ != nullptr) return visit(*only_);
    table_.for_each([&](match_entry& e) { visit(static_cast<receive_operation&>(e)); });
  }

 private:
  static bool matches(const receive_operation& op, const match_key& key) noexcept {
    return op.context == key.context && (op.peer == key.source || op.peer == any_source) &&
           (op.tag == key.tag || op.tag == any_tag);
  }
  void tabulate(receive_operation& op) noexcept {
    op.number = next_number_++;
    ++by_class_[class_of(op.peer, op.tag)];
    table_.add(op);
  }

  receive_operation* only_ = nullptr;  ///< the single receive, which is not in the table
  std::uint32_t count_ = 0;
  std::array<std::uint32_t, match_classes> by_class_{};  ///< number of receives in the table
  std::uint64_t next_number_ = 0;
  match_table table_;
};

}  // namespace rma::detail
