// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages that no receive has matched yet. They are found by each of the four keys that a receive may use, in order
/// of arrival.
#pragma once

#include <array>
#include <bit>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "p2p/match_table.hpp"
#include "p2p/operation.hpp"

namespace rma::detail {

/// Kinds of keys, as bits.
enum match_class : unsigned { exact = 0, with_any_source = 1, with_any_tag = 2, match_classes = 4 };

constexpr unsigned class_of(int source, int tag) noexcept {
  return (source == any_source ? with_any_source : 0U) | (tag == any_tag ? with_any_tag : 0U);
}
constexpr match_key key_of_class(const match_key& of, unsigned kind) noexcept {
  return {of.context, (kind & with_any_source) != 0 ? any_source : of.source,
          (kind & with_any_tag) != 0 ? any_tag : of.tag};
}

/// The content of an announcement.
struct announced_message {
  std::uint64_t bytes = 0;
  std::uint64_t send = 0;  ///< id of the sender's operation that has the data; 0: they are here
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::uint16_t kind = 0;
  std::uint8_t last = 0;
  std::uint8_t void_request = 0;
  std::uint8_t writable = 0;
  std::uint8_t lists = 0;
};

/// The record of an unexpected message; the data of an eager one follow it.
struct unexpected_message : announced_message {
  struct entry : match_entry {
    unexpected_message* of = nullptr;
  };
  std::array<entry, match_classes> entries{};  ///< one for each kind of key that the list maintains
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> in_order;
  match_key key{};          ///< the actual source and tag
  std::uint32_t units = 0;  ///< units of memory charged to its sender
  std::uint32_t size_class = 0;
  unexpected_message* next_free = nullptr;

  [[nodiscard]] std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

class unexpected_messages {
 public:
  static constexpr std::size_t unit_bytes = 64;
  /// The units of its sender's share for a message with so many bytes after its record.
  [[nodiscard]] static constexpr std::uint32_t units_of(std::size_t bytes) noexcept {
    return std::uint32_t{1} << (class_of_bytes(bytes) - unit_bits);
  }

  /// Allocates a record for that much data; it is in no list yet.
  unexpected_message& make(std::size_t data_bytes);
  /// Frees a record; it must be in no list any more.
  void free(unexpected_message& m) noexcept;
  void add(unexpected_message& m) noexcept;
  void remove(unexpected_message& m) noexcept;
  /// The first message that a receive of this key would get, or null.
  [[nodiscard]] unexpected_message* find(const match_key& key) noexcept;
  [[nodiscard]] bool empty() const noexcept { return in_order_.empty(); }
  /// Calls `visit(message)` for each in the order of arrival; `visit` may remove that one.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto at = in_order_.begin(); at != in_order_.end();) {
      unexpected_message& m = *at++;
      visit(m);
    }
  }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return reserved_bytes_; }

 private:
  static constexpr unsigned unit_bits = 6;
  [[nodiscard]] static constexpr unsigned class_of_bytes(std::size_t data_bytes) noexcept {
    return static_cast<unsigned>(std::bit_width(sizeof(unexpected_message) + data_bytes - 1));
  }
  void look_after(unsigned kind) noexcept;

  std::array<match_table, match_classes> tables_;
  unsigned kinds_ = 1;  ///< a bit for each kind of key that has been used
  boost::intrusive::list<unexpected_message,
                         boost::intrusive::member_hook<unexpected_message, decltype(unexpected_message::in_order),
                                                       &unexpected_message::in_order>,
                         boost::intrusive::constant_time_size<false>>
      in_order_;
  std::array<unexpected_message*, 32> free_{};  ///< free records by the binary logarithm of their size
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::size_t reserved_bytes_ = 0;
};

}  // namespace rma::detail
