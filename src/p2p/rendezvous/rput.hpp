// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rendezvous "rput": the sender writes to the receiver's buffer. Three messages and a write.
///
///   sender    begin --start: announce--> announced --requested: write--> moving --moved: finish, end--> over
///   receiver  begin --announced: request--> asked --finished: end--> over
///
///   sender                         receiver
///   (1) | announcement ------------>|
///       |<------------ request      | (2) finds the receive
///   (3) | ===== write =============>|
///   (5) | completion of the write   |
///       | finished ---------------->| (4) over
///
/// The paper's sender sends its finished message behind the write, before the completion. Here a broken connection
/// repeats messages but not writes, so that the message could overtake data that were lost.
///
/// Source: Liu et al., ICS 2003, section 3 (zero-copy rendezvous); Takagi et al., EuroMPI 2013, section 4.3, steps (1)
/// to (5).
#pragma once

#include "p2p/rendezvous/step.hpp"

namespace rma::detail {

struct rput_rendezvous {
  static const char* refuses(const fabric::capabilities&) noexcept { return nullptr; }

  static constexpr rendezvous_step_result sender(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::start) return {announced, rendezvous_action::announce};
    if (now == announced && event == rendezvous_event::requested) return {moving, rendezvous_action::write};
    if (now == moving && event == rendezvous_event::moved)
      return {over, rendezvous_action::finish | rendezvous_action::end};
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

inline constexpr rendezvous_protocol rput_protocol{
    rendezvous_kind::rput,    "rput", false, true, false, false, rput_rendezvous::refuses, rput_rendezvous::sender,
    rput_rendezvous::receiver};

}  // namespace rma::detail
