// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tells a host that is gone from a rank that computes: both take no data, but the latter's kernel answers.
///
/// The kernel's own time-out (TCP_USER_TIMEOUT) does not: it ends a connection whose peer has no room for so long,
/// however often that says so. Its keepalive asks only where nothing waits to be sent. So lines with data are judged
/// here.
#pragma once

#include <cstdint>
#include <utility>

namespace rma::tcp {

/// The kernel says this of a line.
struct line_report {
  std::int64_t heard_ms_ago = 0;        ///< the last segment from the peer
  std::uint32_t unanswered_probes = 0;  ///< whether it has room again, or is there at all
  std::uint32_t repeated_segments = 0;  ///< since the line began
};

/// Of one line, which is looked at now and then.
class silence {
 public:
  /// True if the peer has not been heard of for the time-out although it was asked twice, and still has not at the next
  /// look. (How long ago it was heard does not suffice: where there is no room the kernel asks every two minutes in the
  /// end. Nor does one question: the answer may be on its way, or one of the two was lost.)
  bool lasts(const line_report& line, std::int64_t now_ms, std::int64_t timeout_ms) noexcept {
    const bool heard = line.heard_ms_ago <= now_ms - looked_ms_ + tick_ms;
    looked_ms_ = now_ms;
    if (heard) answered_ = line.repeated_segments;
    const std::uint32_t asked = line.unanswered_probes + (line.repeated_segments - answered_);
    const bool is_overdue = asked >= 2 && line.heard_ms_ago > timeout_ms;
    return std::exchange(was_overdue_, is_overdue) && is_overdue;
  }

 private:
  static constexpr std::int64_t tick_ms = 20;  // the kernel counts in steps of up to 10 ms

  std::int64_t looked_ms_ = 0;
  std::uint32_t answered_ = 0;  ///< segments that were repeated before the peer was last heard
  bool was_overdue_ = false;
};

}  // namespace rma::tcp
