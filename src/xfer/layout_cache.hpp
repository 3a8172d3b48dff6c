// SPDX-License-Identifier: Apache-2.0
/// \file
/// A cache of layouts that two ranks share: each is described once, and then named by its number.
///
///   origin: layout_names, one for each peer         target: layout_table, one for all of its peers
///     define number, description  ----------------->  kept, until others evict it
///     request ... number          ----------------->  found, or requested:
///                                 <-----------------  ask
///     define number, description  ----------------->
///
/// A number is never reused for another layout, so that a stale one is unknown and not wrong. Both sides evict the
/// least recently used layouts. Numbers end with the peer. Source: dissertation, section 8.1.1 ("layout caching").
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

#include "rma/layout.hpp"

namespace rma::detail {

/// The most recently used entries, by key.
template <class Key, class Value, class Hash = std::hash<Key>>
class recent_entries {
 public:
  explicit recent_entries(std::size_t most) noexcept : most_(most) {}

  /// Returns null if there is none; else the entry becomes the most recently used.
  Value* find(const Key& key) noexcept {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return nullptr;
    in_use_order_.splice(in_use_order_.begin(), in_use_order_, at->second);
    return &at->second->second;
  }
  /// Adds an entry whose key is not present.
  void add(const Key& key, Value value) {
    while (!in_use_order_.empty() && in_use_order_.size() >= most_) {
      by_key_.erase(in_use_order_.back().first);
      in_use_order_.pop_back();
    }
    in_use_order_.emplace_front(key, std::move(value));
    by_key_.emplace(key, in_use_order_.begin());
  }
  void remove(const Key& key) noexcept {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return;
    in_use_order_.erase(at->second);
    by_key_.erase(at);
  }
  template <class Which>
  void remove_if(Which which) {
    for (auto at = in_use_order_.begin(); at != in_use_order_.end();) {
      const auto next = std::next(at);
      if (which(at->first)) remove(Key(at->first));
      at = next;
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return in_use_order_.size(); }

 private:
  using entries = std::list<std::pair<Key, Value>>;

  std::size_t most_;
  entries in_use_order_;
  std::unordered_map<Key, typename entries::iterator, Hash> by_key_;
};

/// The numbers of layouts in messages to one peer. With `most` 0 each use has a new number, and is described.
class layout_names {
 public:
  explicit layout_names(std::size_t most) noexcept : most_(most), known_(most) {}

  struct name {
    std::uint32_t number;
    bool is_new;  ///< it has to be described
  };
  name of(const Layout& layout) {
    if (const std::uint32_t* const known = most_ == 0 ? nullptr : known_.find(layout)) return {*known, false};
    const std::uint32_t number = ++last_;
    if (most_ != 0) known_.add(layout, number);
    return {number, true};
  }

 private:
  std::size_t most_;
  std::uint32_t last_ = 0;
  recent_entries<Layout, std::uint32_t> known_;
};

/// The layouts that peers have described. It holds as many as are needed at the same time, even beyond `most`.
class layout_table {
 public:
  explicit layout_table(std::size_t most) noexcept : known_(most < least ? least : most) {}

  const Layout* find(int peer, std::uint32_t number) noexcept { return known_.find(key_of(peer, number)); }
  void add(int peer, std::uint32_t number, Layout layout) {
    known_.remove(key_of(peer, number));
    known_.add(key_of(peer, number), std::move(layout));
  }
  void forget(int peer) {
    known_.remove_if([peer](std::uint64_t key) { return key >> 32 == static_cast<std::uint32_t>(peer); });
  }
  [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }

 private:
  static constexpr std::size_t least = 16;
  static std::uint64_t key_of(int peer, std::uint32_t number) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | number;
  }

  recent_entries<std::uint64_t, Layout> known_;
};

}  // namespace rma::detail
