// SPDX-License-Identifier: Apache-2.0
/// \file
/// Virtual time, and what happens in it.
#pragma once

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

/// What is going to happen, in order of time; at one time in the order of posting, so that a run repeats itself.
///
/// A radix heap of base 64. An event waits in the slot of the highest digit in which its time differs from that of the
/// last event that ran. When the earliest slot is due, its events move to lower digits, in their order; that happens to
/// an event twice or three times. Equal times always share a slot, so that nothing else is needed for their order.
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
  /// Events that ran so far.
  [[nodiscard]] std::uint64_t ran() const noexcept { return ran_; }

  /// Room for that many pending events; more are possible, but cost an allocation.
  void reserve(std::size_t events) { pool_.reserve(events); }

  /// Runs `run(self, data)` at that time, which is not before now.
  void at(time_ps when_ps, action run, void* self, std::uint64_t data) {
    RMA_ASSERT(when_ps >= now_ps_);
    std::uint32_t index = free_;
    if (index == none) {
      index = static_cast<std::uint32_t>(pool_.size());
      pool_.emplace_back();
    } else {
      free_ = pool_[index].next;
    }
    event& e = pool_[index];
    e.when_ps = when_ps;
    e.run = run;
    e.self = self;
    e.data = data;
    append(index, e);
    ++pending_;
    if (when_ps < next_ps_) next_ps_ = when_ps;  // an unknown time is below all others and stays
  }
  /// Lets time pass without an event: not beyond the next one.
  void advance(time_ps to_ps) noexcept {
    RMA_ASSERT(to_ps >= now_ps_ && to_ps <= next_ps());
    now_ps_ = to_ps;
  }
  /// Runs the next event; false if there is none.
  bool run_one() noexcept {
    if (levels_ == 0) return false;
    const int level = std::countr_zero(levels_);
    const std::uint32_t index = take(level, std::countr_zero(occupied_[at_level(level)]));
    const event e = pool_[index];
    pool_[index].next = free_;
    free_ = index;
    --pending_;
    ++ran_;
    next_ps_ = pending_ == 0 ? never_ps : unknown_ps;
    now_ps_ = last_ps_ = e.when_ps;
    e.run(e.self, e.data);
    return true;
  }

 private:
  static constexpr int digit_bits = 6;
  static constexpr int slots_per_level = 1 << digit_bits;
  static constexpr int levels = 11;
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  static constexpr time_ps unknown_ps = -1;

  struct event {
    time_ps when_ps;
    action run;
    void* self;
    std::uint64_t data;
    std::uint32_t next;
  };
  struct list {
    std::uint32_t first = none;
    std::uint32_t last = none;
  };

  static constexpr std::size_t at_level(int level) noexcept { return static_cast<std::size_t>(level); }
  [[nodiscard]] list& slot(int level, int digit) noexcept {
    return slots_[static_cast<std::size_t>(level * slots_per_level + digit)];
  }
  [[nodiscard]] const list& slot(int level, int digit) const noexcept {
    return slots_[static_cast<std::size_t>(level * slots_per_level + digit)];
  }

  void append(std::uint32_t index, event& e) noexcept {
    const auto differs = static_cast<std::uint64_t>(e.when_ps ^ last_ps_) | 1;
    const int level = (63 - std::countl_zero(differs)) / digit_bits;
    const int digit = static_cast<int>(e.when_ps >> (level * digit_bits)) & (slots_per_level - 1);
    list& into = slot(level, digit);
    e.next = none;
    if (into.first == none) {
      into.first = index;
      occupied_[at_level(level)] |= std::uint64_t{1} << digit;
      levels_ |= 1U << level;
    } else {
      pool_[into.last].next = index;
    }
    into.last = index;
  }

  /// Removes all of a slot and returns its first event.
  std::uint32_t clear(int level, int digit) noexcept {
    list& from = slot(level, digit);
    const std::uint32_t first = from.first;
    from = {};
    occupied_[at_level(level)] &= ~(std::uint64_t{1} << digit);
    if (occupied_[at_level(level)] == 0) levels_ &= ~(1U << level);
    return first;
  }

  [[nodiscard]] time_ps minimum(std::uint32_t index) const noexcept {
    time_ps least = never_ps;
    for (; index != none; index = pool_[index].next)
      least = least < pool_[index].when_ps ? least : pool_[index].when_ps;
    return least;
  }

  /// Removes the earliest event, which is in this slot.
  std::uint32_t take(int level, int digit) noexcept {
    if (slot(level, digit).first == slot(level, digit).last) return clear(level, digit);
    if (level > 0) {
      std::uint32_t index = clear(level, digit);
      last_ps_ = minimum(index);
      while (index != none) {
        event& e = pool_[index];
        const std::uint32_t next = e.next;
        append(index, e);
        index = next;
      }
      digit = static_cast<int>(last_ps_) & (slots_per_level - 1);
    }
    list& from = slot(0, digit);
    if (from.first == from.last) return clear(0, digit);
    const std::uint32_t first = from.first;
    from.first = pool_[first].next;
    return first;
  }

  [[nodiscard]] time_ps earliest() const noexcept {
    if (levels_ == 0) return never_ps;
    const int level = std::countr_zero(levels_);
    const list& due = slot(level, std::countr_zero(occupied_[at_level(level)]));
    return level == 0 ? pool_[due.first].when_ps : minimum(due.first);
  }

  std::array<list, std::size_t{levels} * slots_per_level> slots_{};
  std::array<std::uint64_t, levels> occupied_{};  // by level: slots that are not empty
  std::uint32_t levels_ = 0;                      // levels that are not empty
  std::uint32_t free_ = none;
  std::vector<event> pool_{};
  time_ps now_ps_ = 0;
  time_ps last_ps_ = 0;  // of the last event that ran: slots are relative to it
  mutable time_ps next_ps_ = never_ps;
  std::size_t pending_ = 0;
  std::uint64_t ran_ = 0;
};

}  // namespace rma::sim
