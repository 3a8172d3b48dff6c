// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of messages that wait for room in the fabric: records followed by their bytes, which are reused.
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

/// The sizes of records are powers of two. The pool grows to the largest number of messages that have waited at once,
/// and never shrinks.
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

    boost::intrusive::slist_member_hook<link> in_line_;  ///< in a queue, or in a list of free records
    std::uint32_t size_ = 0;
    std::uint16_t kind_ = 0;
    std::uint16_t size_class_ = 0;
  };
  static_assert(sizeof(record) == 16);

  /// The queued messages to one peer, in the order of sending.
  using queue =
      boost::intrusive::slist<record,
                              boost::intrusive::member_hook<record, decltype(record::in_line_), &record::in_line_>,
                              boost::intrusive::cache_last<true>>;

  /// Takes a record with a copy of the message; it is in no queue.
  record& take(std::uint16_t kind, std::span<const std::byte> header, std::span<const std::byte> payload);
  /// Frees a record, which must be in no queue.
  void give_back(record& r) noexcept {
    free_list& others = free_of(r.size_class_);
    RMA_ASSERT(others.empty() || &others.front() != &r);  // a record is free once
    others.push_front(r);
  }
  /// Bytes of memory that the pool has allocated.
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return reserved_bytes_; }

 private:
  using free_list =
      boost::intrusive::slist<record,
                              boost::intrusive::member_hook<record, decltype(record::in_line_), &record::in_line_>,
                              boost::intrusive::constant_time_size<false>>;

  void grow(unsigned size_class);

  static constexpr unsigned size_class_min = 6;   ///< binary logarithm of the smallest record's size
  static constexpr unsigned size_class_max = 24;  ///< more than any fabric's longest message
  [[nodiscard]] free_list& free_of(unsigned size_class) noexcept {
    RMA_ASSERT(size_class >= size_class_min && size_class <= size_class_max);
    return free_[size_class - size_class_min];
  }

  std::array<free_list, size_class_max - size_class_min + 1> free_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::size_t reserved_bytes_ = 0;
};

}  // namespace rma::detail
