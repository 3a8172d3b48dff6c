// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rendezvous "getcqe": the receiver reads from the sender's buffer, and the completion queue reports the end of the
/// read. Two messages and a read.
///
///   sender    begin --start: announce--> announced --finished: end--> over
///   receiver  begin --announced: read--> moving --moved: finish, end--> over
///
///   sender                         receiver
///   GS1 | announcement ------------>|
///       |<===== read ==============>| GR1 finds the receive
///       |<------------ finished     | GR2 completion of the read
///   GS2 over
///
/// Source: Takagi et al., EuroMPI 2013, section 2.1, figure 1; Sur et al., PPoPP 2006.
#pragma once

#include "p2p/rendezvous/step.hpp"

namespace rma::detail {

struct getcqe_rendezvous {
  static const char* refuses(const fabric::capabilities&) noexcept { return nullptr; }

  static constexpr rendezvous_step_result sender(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::start) return {announced, rendezvous_action::announce};
    if (now == announced && event == rendezvous_event::finished) return {over, rendezvous_action::end};
    return unchanged(now);
  }
  static constexpr rendezvous_step_result receiver(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::announced) return {moving, rendezvous_action::read};
    if (now == moving && event == rendezvous_event::moved)
      return {over, rendezvous_action::finish | rendezvous_action::end};
    return unchanged(now);
  }
};

inline constexpr rendezvous_protocol getcqe_protocol{rendezvous_kind::getcqe,
                                                     "getcqe",
                                                     true,
                                                     false,
                                                     false,
                                                     false,
                                                     getcqe_rendezvous::refuses,
                                                     getcqe_rendezvous::sender,
                                                     getcqe_rendezvous::receiver};

}  // namespace rma::detail
