// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of messages that found no room, until there is: records with their bytes behind them, which are used again.
#pragma once

#include <array>
#include <boost/intrusive/slist.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/assert.hpp"

namespace rma::detail {

/// Records come in sizes that are powers of two. The pool grows to the most that has waited at once, and does not
/// shrink.
class message_pool {
 public:
  class record {
   public:
    [[nodiscard]] std::uint16_t kind() const noexcept { return kind_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
      return {reinterpret_cast<const std::byte*>(this + 1), size_};
    }

   private:
    friend class message_pool;
    using link = boost::intrusive::link_mode<boost::intrusive::normal_link>;

    boost::intrusive::slist_member_hook<link> in_line_;  ///< of a queue, or of those that are free
    std::uint32_t size_ = 0;
    std::uint16_t kind_ = 0;
    std::uint16_t size_class_ = 0;
  };
  static_assert(sizeof(record) == 16);

  /// Messages to one peer, the first to be sent in front.
  using queue =
      boost::intrusive::slist<record,
                              boost::intrusive::member_hook<record, decltype(record::in_line_), &record::in_line_>,
                              boost::intrusive::cache_last<true>>;

  /// A record with a copy of the message, in no queue.
  record& take(std::uint16_t kind, std::span<const std::byte> header, std::span<const std::byte> payload);
  /// It is in no queue any more.
  void give_back(record& r) noexcept {
    RMA_ASSERT(r.size_class_ < free_.size());
    RMA_ASSERT(free_[r.size_class_].empty() || &free_[r.size_class_].front() != &r);  // a record is free once
    free_[r.size_class_].push_front(r);
  }
  /// Memory that the pool has taken.
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return reserved_bytes_; }

 private:
  using free_list =
      boost::intrusive::slist<record,
                              boost::intrusive::member_hook<record, decltype(record::in_line_), &record::in_line_>,
                              boost::intrusive::constant_time_size<false>>;

  void grow(unsigned size_class);

  std::array<free_list, 33> free_;  ///< by the binary logarithm of a record's size
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::size_t reserved_bytes_ = 0;
};

}  // namespace rma::detail
