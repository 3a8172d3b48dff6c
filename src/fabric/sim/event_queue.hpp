// SPDX-License-Identifier: Apache-2.0
/// \file
/// Virtual time, and what happens in it.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace rma::sim {

/// Virtual time in picoseconds: 106 days fit, and so does the byte time of a 400 Gb/s link.
using time_ps = std::int64_t;

inline constexpr time_ps never_ps = std::numeric_limits<time_ps>::max();

/// What is going to happen, in order of time; at one time in the order of posting, so that a run repeats itself.
class event_queue {
 public:
  using action = void (*)(void* self, std::uint64_t data) noexcept;

  [[nodiscard]] time_ps now_ps() const noexcept { return now_ps_; }
  /// The time of the next event, `never_ps` if there is none.
  [[nodiscard]] time_ps next_ps() const noexcept { return events_.empty() ? never_ps : events_.top().when_ps; }

  /// Runs `run(self, data)` at that time, which is not before now.
  void at(time_ps when_ps, action run, void* self, std::uint64_t data) {
    events_.push({when_ps, posted_++, run, self, data});
  }
  /// Lets time pass without an event: not beyond the next one.
  void advance(time_ps to_ps) noexcept { now_ps_ = to_ps; }
  /// Runs the next event; false if there is none.
  bool run_one() {
    if (events_.empty()) return false;
    const event e = events_.top();
    events_.pop();
    now_ps_ = e.when_ps;
    e.run(e.self, e.data);
    return true;
  }

 private:
  struct event {
    time_ps when_ps;
    std::uint64_t number;
    action run;
    void* self;
    std::uint64_t data;
    bool operator<(const event& other) const noexcept {
      return when_ps != other.when_ps ? when_ps > other.when_ps : number > other.number;
    }
  };
  std::priority_queue<event> events_;
  time_ps now_ps_ = 0;
  std::uint64_t posted_ = 0;
};

}  // namespace rma::sim
