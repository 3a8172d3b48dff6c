// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rendezvous "stream": the data are sent in messages, for memory that no fabric can access and for layouts.
///
///   sender    begin --start: announce--> announced --requested: stream--> moving --moved: end--> over
///   receiver  begin --announced: request--> asked --finished: end--> over
///
///   sender                         receiver
///     | announcement -------------->|  finds the receive
///     |<-------------- request      |
///     | data, data, data ---------->|  the last one: finished
///
/// Every other protocol falls back to this one. Source: the two-copy rendezvous of MPICH's and Open MPI's shared
/// memory.
#pragma once

#include "p2p/rendezvous/step.hpp"

namespace rma::detail {

struct stream_rendezvous {
  static const char* refuses(const fabric::capabilities&) noexcept { return nullptr; }

  static constexpr rendezvous_step_result sender(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::start) return {announced, rendezvous_action::announce};
    if (now == announced && event == rendezvous_event::requested) return {moving, rendezvous_action::stream};
    if (now == moving && event == rendezvous_event::moved) return {over, rendezvous_action::end};
    if (now == announced && event == rendezvous_event::finished) return {over, rendezvous_action::end};
    return unchanged(now);
  }
  static constexpr rendezvous_step_result receiver(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::announced) return {asked, rendezvous_action::request};
    if (now == asked && event == rendezvous_event::finished) return {over, rendezvous_action::end};
    return unchanged(now);
  }
};

inline constexpr rendezvous_protocol stream_protocol{rendezvous_kind::stream,
                                                     "stream",
                                                     false,
                                                     false,
                                                     false,
                                                     false,
                                                     stream_rendezvous::refuses,
                                                     stream_rendezvous::sender,
                                                     stream_rendezvous::receiver};

}  // namespace rma::detail
