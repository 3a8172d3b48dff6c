// SPDX-License-Identifier: Apache-2.0
/// \file
/// A cache of layouts that two ranks share: each is described once, and then named by its number.
///
///   origin: layout_names, one for each peer         target: layout_table, one for all of its peers
///     define number, description  ----------------->  kept, until others evict it
///     message ... number          ----------------->  found, or requested:
///                                 <-----------------  ask
///     define number, description  ----------------->
///
/// A number is never reused for another layout, so that a stale one is unknown and not wrong. Both sides evict the
/// least recently used layouts, by their number and by the bytes of their descriptions. Numbers end with the peer.
/// layout_exchange.hpp has the messages. Source: dissertation, section 8.1.1 ("layout caching").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <unordered_map>
#include <utility>

#include "core/assert.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

/// The most recently used entries, by key. They are limited in number, and all but the last in their bytes.
template <class Key, class Value, class Hash = std::hash<Key>>
class recent_entries {
 public:
  struct entry {
    Key key;
    Value value;
    std::size_t bytes;
  };

  explicit recent_entries(std::size_t most, std::size_t bytes_max = std::numeric_limits<std::size_t>::max()) noexcept
      : most_(most), bytes_max_(bytes_max) {}

  /// Returns null if there is none; else the entry becomes the most recently used.
  Value* find(const Key& key) noexcept {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return nullptr;
    in_use_order_.splice(in_use_order_.begin(), in_use_order_, at->second);
    return &at->second->value;
  }
  /// True if an entry of so many bytes has no room beside the others.
  [[nodiscard]] bool is_full(std::size_t bytes) const noexcept {
    return size() != 0 && (size() >= most_ || bytes > bytes_max_ - std::min(bytes_, bytes_max_));
  }
  /// Removes the least recently used entry.
  entry take_oldest() {
    RMA_ASSERT(size() != 0);
    entry oldest = std::move(in_use_order_.back());
    bytes_ -= oldest.bytes;
    by_key_.erase(oldest.key);
    in_use_order_.pop_back();
    return oldest;
  }
  void make_room(std::size_t bytes = 0) {
    while (is_full(bytes)) (void)take_oldest();
  }
  /// Adds an entry whose key is not present, whether there is room or not.
  void add(const Key& key, Value value, std::size_t bytes = 0) {
    in_use_order_.push_front({key, std::move(value), bytes});
    by_key_.emplace(key, in_use_order_.begin());
    bytes_ += bytes;
  }
  void remove(const Key& key) noexcept {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return;
    bytes_ -= at->second->bytes;
    in_use_order_.erase(at->second);
    by_key_.erase(at);
  }
  template <class Which>
  void remove_if(Which which) {
    for (auto at = in_use_order_.begin(); at != in_use_order_.end();) {
      const auto next = std::next(at);
      if (which(at->key)) remove(Key(at->key));
      at = next;
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return in_use_order_.size(); }
  /// All of them, the most recently used first.
  [[nodiscard]] const std::list<entry>& all() const noexcept { return in_use_order_; }

 private:
  std::size_t most_, bytes_max_;
  std::size_t bytes_ = 0;
  std::list<entry> in_use_order_;
  std::unordered_map<Key, typename std::list<entry>::iterator, Hash> by_key_;
};

/// The numbers of layouts in messages to one peer. With `most` 0 each use has a new number, and is described. Layouts
/// that were evicted stay known while the peer may ask for them: until it has handled the last message that may name
/// them.
class layout_names {
 public:
  explicit layout_names(std::size_t most) noexcept
      : reuses_(most != 0), known_(std::max<std::size_t>(most, 1), bytes_max) {}

  /// The layout's number; 0 if it has none.
  [[nodiscard]] std::uint32_t find(const Layout& layout) noexcept {
    if (!reuses_) return 0;
    if (known_.size() != 0 && known_.all().front().key == layout) return known_.all().front().value;  // needs no hash
    const std::uint32_t* const known = known_.find(layout);
    return known == nullptr ? 0 : *known;
  }
  /// Gives the layout, whose description has so many bytes, a number. No message after number `last_naming` has named
  /// one so far, and the peer has handled `done` messages.
  std::uint32_t add(const Layout& layout, std::size_t bytes, std::uint64_t last_naming, std::uint64_t done) {
    while (!evicted_.empty() && evicted_.front().last_message <= done) evicted_.pop_front();
    while (known_.is_full(bytes)) {
      auto oldest = known_.take_oldest();
      evicted_.push_back({std::move(oldest.key), oldest.value, last_naming});
    }
    RMA_ASSERT(last_ != std::numeric_limits<std::uint32_t>::max());
    known_.add(layout, ++last_, bytes);
    return last_;
  }
  /// The layout with this number, if the peer may ask for it; else null.
  [[nodiscard]] const Layout* find_number(std::uint32_t number) const noexcept {
    for (const auto& each : known_.all()) {
      if (each.value == number) return &each.key;
    }
    const auto at = std::find_if(evicted_.begin(), evicted_.end(), [=](const auto& e) { return e.number == number; });
    return at == evicted_.end() ? nullptr : &at->layout;
  }

 private:
  static constexpr std::size_t bytes_max = std::size_t{256} << 10;

  struct evicted {
    Layout layout;
    std::uint32_t number;
    std::uint64_t last_message;  ///< that may name it
  };

  bool reuses_;
  std::uint32_t last_ = 0;
  recent_entries<Layout, std::uint32_t> known_;
  std::deque<evicted> evicted_;
};

/// The layouts that peers have described. It holds as many as are needed at the same time, even beyond `most`.
class layout_table {
 public:
  explicit layout_table(std::size_t most) noexcept : known_(std::max(most, least), bytes_max) {}

  const Layout* find(int peer, std::uint32_t number) noexcept { return known_.find(key_of(peer, number)); }
  /// `may_evict` is false while messages wait for several layouts, which must not evict each other.
  void add(int peer, std::uint32_t number, Layout layout, std::size_t bytes, bool may_evict) {
    known_.remove(key_of(peer, number));
    if (may_evict) known_.make_room(bytes);
    known_.add(key_of(peer, number), std::move(layout), bytes);
  }
  void forget(int peer) {
    known_.remove_if([peer](std::uint64_t key) { return key >> 32 == static_cast<std::uint32_t>(peer); });
  }
  [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }

 private:
  static constexpr std::size_t least = 16;
  static constexpr std::size_t bytes_max = std::size_t{4} << 20;
  static std::uint64_t key_of(int peer, std::uint32_t number) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | number;
  }

  recent_entries<std::uint64_t, Layout> known_;
};

}  // namespace rma::detail
