// SPDX-License-Identifier: Apache-2.0
/// \file
/// Searches all states that a small model can reach, one step of one actor at a time, and says what is wrong: a broken
/// invariant, or a state from which the end cannot be reached any more (a deadlock, a lost wake-up).
///
/// Exact: a state is kept as its key, from which it is made again, in the order in which the states were found. With
/// it goes the list of the states that follow it; 16 bytes of key and six followers make 50 bytes a state.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace rma::test {

/// The fields of a state in so many words, one after the other. The same list of `field(value, bits)` fills a key and
/// is filled from one.
template <std::size_t Words>
class packed_key {
 public:
  using words = std::array<std::uint64_t, Words>;

  class writer {
   public:
    /// Appends so many bits of the value, from `shift` on.
    template <class T>
    void operator()(const T& value, unsigned bits, unsigned shift = 0) noexcept {
      const std::uint64_t v = (static_cast<std::uint64_t>(value) >> shift) & ((std::uint64_t{1} << bits) - 1);
      key[at_ / 64] |= v << (at_ % 64);
      if (at_ % 64 + bits > 64) key[at_ / 64 + 1] |= v >> (64 - at_ % 64);
      at_ += bits;
    }
    words key{};

   private:
    unsigned at_ = 0;
  };

  class reader {
   public:
    explicit reader(const words& key) noexcept : key_(key) {}
    /// The value's other bits stay.
    template <class T>
    void operator()(T& value, unsigned bits, unsigned shift = 0) noexcept {
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      std::uint64_t v = key_[at_ / 64] >> (at_ % 64);
      if (at_ % 64 + bits > 64) v |= key_[at_ / 64 + 1] << (64 - at_ % 64);
      at_ += bits;
      value = static_cast<T>((static_cast<std::uint64_t>(value) & ~(mask << shift)) | (v & mask) << shift);
    }

   private:
    const words& key_;
    unsigned at_ = 0;
  };
};

/// A word of which any bit may be set.
template <class Field, class Word>
void whole_word(Field& field, Word& word) {
  field(word, 32);
  field(word, 32, 32);
}

/// The key of a state that has `fields(self, field)` and `packed`.
template <class State>
typename State::packed::words key_of(const State& s) {
  typename State::packed::writer to;
  State::fields(s, to);
  return to.key;
}
/// The state with this key; what is no field of it is as in `like`.
template <class State>
State made_of(const State& like, const typename State::packed::words& key) {
  State made = like;
  typename State::packed::reader from(key);
  State::fields(made, from);
  return made;
}

struct search_result {
  std::size_t states = 0;
  std::size_t steps = 0;
  std::string failure;  ///< empty: nothing is wrong
};

/// State: equality; `key() const`, an array of 64-bit words; `State with(key) const`, the state of the same model that
/// has this key; `std::string wrong() const` (empty: the invariant holds); `bool finished() const`; `template <class F>
/// void successors(F&& emit) const`.
template <class State>
class state_search {
 public:
  using key_type = decltype(std::declval<const State&>().key());

  search_result run(const State& first, std::size_t states_max = 4'000'000) {
    states_max_ = states_max;
    keys_.reserve(states_max);
    (void)number_of(first, first);
    for (std::size_t at = 0; at < keys_.size() && failure_.empty(); ++at) {
      const State now = first.with(keys_[at]);
      const std::size_t before = followers_.size();
      now.successors([&](const State& next) {
        if (failure_.empty()) followers_.push_back(number_of(first, next));
      });
      degrees_.push_back(static_cast<std::uint8_t>(followers_.size() - before));
      can_finish_.push_back(now.finished());
    }
    if (failure_.empty() && !all_can_finish()) failure_ = "a state from which the end cannot be reached";
    return {keys_.size(), followers_.size(), failure_};
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t number_of(const State& first, const State& s) {
    if (2 * keys_.size() >= slots_.size()) grow();
    const key_type key = s.key();
    std::uint32_t& slot = slots_[slot_of(key)];
    if (slot != none) return slot;
    slot = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back(key);
    failure_ = s.wrong();
    if (failure_.empty() && !(first.with(key) == s)) failure_ = "a state that its key does not hold";
    if (failure_.empty() && keys_.size() >= states_max_) failure_ = "too many states";
    return slot;
  }
  /// Where the key is, or belongs.
  std::size_t slot_of(const key_type& key) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : key) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 32;
    }
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at] != none && keys_[slots_[at]] != key) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(std::max<std::size_t>(2 * slots_.size(), 1024), none);
    for (std::size_t i = 0; i < keys_.size(); ++i) slots_[slot_of(keys_[i])] = static_cast<std::uint32_t>(i);
  }
  /// Most steps lead to states that were found later: a few rounds from the last state to the first settle it.
  bool all_can_finish() {
    for (bool again = true; again;) {
      again = false;
      auto follower = followers_.cend();
      for (std::size_t at = keys_.size(); at-- > 0;) {
        const auto last = std::exchange(follower, follower - degrees_[at]);
        if (can_finish_[at]) continue;
        if (std::none_of(follower, last, [&](std::uint32_t to) { return can_finish_[to]; })) continue;
        can_finish_[at] = again = true;
      }
    }
    return std::find(can_finish_.begin(), can_finish_.end(), false) == can_finish_.end();
  }

  std::size_t states_max_ = 0;
  std::vector<key_type> keys_;        ///< never moved: its memory is touched as it fills
  std::vector<std::uint32_t> slots_;  ///< numbers of keys by their hash, half of them free
  std::deque<std::uint32_t> followers_;
  std::vector<std::uint8_t> degrees_;  ///< how many followers each state has
  std::vector<bool> can_finish_;
  std::string failure_;
};

}  // namespace rma::test
