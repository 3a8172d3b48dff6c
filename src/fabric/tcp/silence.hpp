// SPDX-License-Identifier: Apache-2.0
/// \file
/// Distinguishes a dead host from a computing rank: neither accepts data, but the latter's kernel acknowledges.
///
/// The kernel's own time-out (TCP_USER_TIMEOUT) does not: it ends a connection whose peer has had no room for so long,
/// although the peer acknowledges each probe. Its keepalive probes only lines without unsent data. So lines with data
/// are judged here.
#pragma once

#include <cstdint>
#include <utility>

namespace rma::tcp {

/// The kernel's report on a line.
struct line_report {
  std::int64_t heard_ms_ago = 0;        ///< time since the last segment from the peer
  std::uint32_t unanswered_probes = 0;  ///< zero-window and keepalive probes
  std::uint32_t repeated_segments = 0;  ///< retransmissions since the line began
};

/// The silence of one line, which is checked periodically.
class silence {
 public:
  /// True if the peer has sent nothing for the time-out although it was probed twice, and still has not at the next
  /// check. (The time since the last segment does not suffice: for a peer without room the kernel increases the
  /// interval of its probes up to two minutes. Nor does one probe: the reply may be in flight, or one of the two was
  /// lost.)
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
  std::uint32_t answered_ = 0;  ///< segments retransmitted before the last one from the peer
  bool was_overdue_ = false;
};

}  // namespace rma::tcp
