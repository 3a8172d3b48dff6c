// SPDX-License-Identifier: Apache-2.0
/// \file
/// Virtual time and the queue of its events.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/assert.hpp"

namespace rma::sim {

/// Virtual time in picoseconds: 106 days fit, and so does the byte time of a 400 Gb/s link.
using time_ps = std::int64_t;

inline constexpr time_ps never_ps = std::numeric_limits<time_ps>::max();

/// Pending events run in the order of their times, and those of equal time in the order of posting, so that a run is
/// reproducible.
///
/// A radix heap of base 64. An event waits in the slot of the highest digit in which its time differs from a time that
/// is not after any pending event. When the earliest slot is due and long, its events move to lower digits, in their
/// order; from a short one the earliest event is picked. Equal times always share a slot, which keeps their order.
/// Slots are chains of blocks: at 50 000 pending events, sequential access to memory matters most.
class event_queue {
 public:
  using action = void (*)(void* self, std::uint64_t data) noexcept;

  [[nodiscard]] time_ps now_ps() const noexcept { return now_ps_; }
  /// The time of the next event, `never_ps` if there is none.
  [[nodiscard]] time_ps next_ps() const noexcept {
    if (next_ps_ == unknown_ps) next_ps_ = earliest();
    return next_ps_;
  }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  /// The number of events that have run.
  [[nodiscard]] std::uint64_t ran() const noexcept { return ran_; }

  /// Reserves room for that many pending events; further ones cost an allocation.
  void reserve(std::size_t events) { blocks_.reserve(events / block_entries + levels * slots_per_level); }

  /// Runs `run(self, data)` at that time, which is not before now.
  void at(time_ps when_ps, action run, void* self, std::uint64_t data) {
    RMA_ASSERT(when_ps >= now_ps_);
    append({when_ps, run, self, data});
    ++pending_;
    if (when_ps < next_ps_) next_ps_ = when_ps;  // an unknown time is below all others and stays
  }
  /// Advances the time without an event, at most to the next one.
  void advance(time_ps to_ps) noexcept {
    RMA_ASSERT(to_ps >= now_ps_ && to_ps <= next_ps());
    now_ps_ = to_ps;
  }
  /// Runs the next event; false if there is none.
  bool run_one() {
    if (levels_ == 0) return false;
    const int level = std::countr_zero(levels_);
    const event e = take(level, std::countr_zero(occupied_[at_level(level)]));
    --pending_;
    ++ran_;
    next_ps_ = pending_ == 0 ? never_ps : unknown_ps;
    now_ps_ = e.when_ps;
    e.run(e.self, e.data);
    return true;
  }

 private:
  static constexpr int digit_bits = 6;
  static constexpr int slots_per_level = 1 << digit_bits;
  static constexpr int levels = 11;
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  static constexpr time_ps unknown_ps = -1;

  static constexpr std::uint32_t block_entries = 7;

  struct event {
    time_ps when_ps;
    action run;
    void* self;
    std::uint64_t data;
  };
  struct alignas(64) block {
    std::array<event, block_entries> events;
    std::uint32_t begin, end;  // the range of entries in use
    std::uint32_t next;        // next block of the slot, or of the free list
  };
  struct chain {
    std::uint32_t first = none;
    std::uint32_t last = none;
  };

  static constexpr std::size_t at_level(int level) noexcept { return static_cast<std::size_t>(level); }
  [[nodiscard]] chain& slot(int level, int digit) noexcept {
    return slots_[static_cast<std::size_t>(level * slots_per_level + digit)];
  }
  [[nodiscard]] const chain& slot(int level, int digit) const noexcept {
    return slots_[static_cast<std::size_t>(level * slots_per_level + digit)];
  }

  std::uint32_t new_block() {
    std::uint32_t index = free_;
    if (index == none) {
      index = static_cast<std::uint32_t>(blocks_.size());
      blocks_.emplace_back();
    } else {
      free_ = blocks_[index].next;
    }
    blocks_[index].begin = blocks_[index].end = 0;
    blocks_[index].next = none;
    return index;
  }
  /// Returns the index of the block after it.
  std::uint32_t free_block(std::uint32_t index) noexcept {
    const std::uint32_t next = blocks_[index].next;
    blocks_[index].next = free_;
    free_ = index;
    return next;
  }

  void append(const event& e) {
    const auto differs = static_cast<std::uint64_t>(e.when_ps ^ base_ps_) | 1;
    const int level = (63 - std::countl_zero(differs)) / digit_bits;
    const int digit = static_cast<int>(e.when_ps >> (level * digit_bits)) & (slots_per_level - 1);
    chain& into = slot(level, digit);
    if (into.first == none) {
      into.first = into.last = new_block();
      occupied_[at_level(level)] |= std::uint64_t{1} << digit;
      levels_ |= 1U << level;
    } else if (blocks_[into.last].end == block_entries) {
      const std::uint32_t added = new_block();
      blocks_[into.last].next = added;
      into.last = added;
    }
    block& tail = blocks_[into.last];
    tail.events[tail.end++] = e;
  }

  void mark_empty(int level, int digit) noexcept {
    slot(level, digit) = {};
    occupied_[at_level(level)] &= ~(std::uint64_t{1} << digit);
    if (occupied_[at_level(level)] == 0) levels_ &= ~(1U << level);
  }

  [[nodiscard]] time_ps minimum(const chain& of) const noexcept {
    time_ps least = never_ps;
    for (std::uint32_t i = of.first; i != none; i = blocks_[i].next) {
      const block& one = blocks_[i];
      for (std::uint32_t k = one.begin; k < one.end; ++k) least = std::min(least, one.events[k].when_ps);
    }
    return least;
  }

  /// Removes the earliest event, which is in this slot.
  event take(int level, int digit) {
    if (level > 0 && slot(level, digit).first != slot(level, digit).last) {
      spread(level, digit);
      level = 0;
      digit = static_cast<int>(base_ps_) & (slots_per_level - 1);
    }
    return level == 0 ? take_first(digit) : pick(level, digit);
  }

  /// Moves a slot's events to lower levels; the earliest ones move to level 0.
  void spread(int level, int digit) {
    const chain from = slot(level, digit);
    mark_empty(level, digit);
    base_ps_ = minimum(from);
    for (std::uint32_t i = from.first; i != none; i = free_block(i)) {
      const std::uint32_t end = blocks_[i].end;
      for (std::uint32_t k = blocks_[i].begin; k < end; ++k) append(event(blocks_[i].events[k]));
    }
  }

  /// Removes the first event of a slot of level 0, whose events have equal times.
  event take_first(int digit) noexcept {
    chain& from = slot(0, digit);
    block& head = blocks_[from.first];
    const event e = head.events[head.begin++];
    if (head.begin == head.end) {
      from.first = free_block(from.first);
      if (from.first == none) mark_empty(0, digit);
    }
    return e;
  }

  /// Removes the earliest event of a slot of one block. The base does not change, and so neither does the order of
  /// slots.
  event pick(int level, int digit) noexcept {
    const std::uint32_t index = slot(level, digit).first;
    block& only = blocks_[index];
    std::uint32_t least = only.begin;
    for (std::uint32_t k = least + 1; k < only.end; ++k) {
      if (only.events[k].when_ps < only.events[least].when_ps) least = k;
    }
    const event e = only.events[least];
    if (least == only.begin) {
      ++only.begin;
    } else {
      --only.end;
      for (std::uint32_t k = least; k < only.end; ++k) only.events[k] = only.events[k + 1];
    }
    if (only.begin == only.end) {
      free_block(index);
      mark_empty(level, digit);
    }
    return e;
  }

  [[nodiscard]] time_ps earliest() const noexcept {
    if (levels_ == 0) return never_ps;
    const int level = std::countr_zero(levels_);
    const chain& due = slot(level, std::countr_zero(occupied_[at_level(level)]));
    const block& head = blocks_[due.first];
    return level == 0 ? head.events[head.begin].when_ps : minimum(due);
  }

  std::array<chain, std::size_t{levels} * slots_per_level> slots_{};
  std::array<std::uint64_t, levels> occupied_{};  // by level: slots that are not empty
  std::uint32_t levels_ = 0;                      // levels that are not empty
  std::uint32_t free_ = none;
  std::vector<block> blocks_{};
  time_ps now_ps_ = 0;
  time_ps base_ps_ = 0;  // not after any pending event: slots are relative to it
  mutable time_ps next_ps_ = never_ps;
  std::size_t pending_ = 0;
  std::uint64_t ran_ = 0;
};

}  // namespace rma::sim
