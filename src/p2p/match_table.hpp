// SPDX-License-Identifier: Apache-2.0
/// \file
/// A hash table of receives or messages by context, source and tag. The first entry of a key is found, added and
/// removed in constant time, for any number of entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/assert.hpp"

namespace rma::detail {

struct match_key {
  std::uint64_t context = 0;
  std::int32_t source = 0;
  std::int32_t tag = 0;
  friend bool operator==(const match_key&, const match_key&) = default;
};

/// The base class of entries. An entry is in one table at most.
struct match_entry {
  match_key key;
  match_entry* next_key = nullptr;  ///< in the first entry of a key: the first entry of the next key of the bucket
  match_entry* next = nullptr;      ///< next entry of the same key, in order of arrival; the last entry has the first
  match_entry* previous = nullptr;  ///< the inverse of `next`
  std::uint64_t number = 0;         ///< orders entries of different keys
};

/// A bucket is a list of the first entries of its keys; each heads a ring of the entries of the same key. The table
/// grows when there are more keys than buckets; without memory it does not grow, and only becomes slower.
class match_table {
 public:
  match_table() noexcept : buckets_(&one_bucket_) {}
  match_table(const match_table&) = delete;
  match_table& operator=(const match_table&) = delete;

  [[nodiscard]] bool empty() const noexcept { return keys_ == 0; }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept {
    return memory_ == nullptr ? 0 : (mask_ + 1) * sizeof(void*);
  }

  /// The first entry with this key, or null.
  [[nodiscard]] match_entry* find(const match_key& key) const noexcept {
    match_entry* at = buckets_[hash(key) & mask_];
    while (at != nullptr && !(at->key == key)) at = at->next_key;
    return at;
  }
  /// Adds an entry after the others of its key.
  void add(match_entry& e) noexcept {
    if (match_entry* const first = find(e.key); first != nullptr) {
      RMA_ASSERT(first != &e && first->previous != &e);  // it is in no table yet
      e.next = first;
      e.previous = first->previous;
      first->previous->next = &e;
      first->previous = &e;
      return;
    }
    e.next = e.previous = &e;
    if (keys_ > mask_) grow();
    match_entry*& bucket = buckets_[hash(e.key) & mask_];
    e.next_key = std::exchange(bucket, &e);
    ++keys_;
  }
  void remove(match_entry& e) noexcept {
    RMA_ASSERT(keys_ != 0 && find(e.key) != nullptr);
    RMA_ASSERT(e.next->previous == &e && e.previous->next == &e);
    match_entry** at = &buckets_[hash(e.key) & mask_];
    while (!((*at)->key == e.key)) at = &(*at)->next_key;
    if (*at == &e) {
      if (e.next == &e) {
        *at = e.next_key;
        --keys_;
      } else {
        e.next->next_key = e.next_key;
        *at = e.next;
      }
    }
    e.previous->next = e.next;
    e.next->previous = e.previous;
  }
  /// Calls `visit(entry)` for each, in no order; `visit` may remove that entry.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t b = 0; b <= mask_; ++b) {
      for (match_entry* first = buckets_[b]; first != nullptr;) {
        match_entry* const next_key = first->next_key;
        match_entry* const last = first->previous;
        for (match_entry *e = first, *next = nullptr; e != nullptr; e = next) {
          next = e == last ? nullptr : e->next;
          visit(*e);
        }
        first = next_key;
      }
    }
  }

 private:
  static std::size_t hash(const match_key& key) noexcept {
    const std::uint64_t low =
        static_cast<std::uint32_t>(key.source) | std::uint64_t{static_cast<std::uint32_t>(key.tag)} << 32;
    const std::uint64_t mixed = (low ^ key.context * 0x9E3779B97F4A7C15U) * 0xD6E8FEB86659FD93U;
    return static_cast<std::size_t>(mixed ^ mixed >> 32);
  }
  void grow() noexcept;

  match_entry* one_bucket_ = nullptr;
  match_entry** buckets_;
  std::size_t mask_ = 0;
  std::size_t keys_ = 0;
  std::unique_ptr<match_entry*[]> memory_;
};

}  // namespace rma::detail
