// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rendezvous "sgrs": noncontiguous data are sent from where they lie to where they belong, by sends of lists of pieces
/// into receives of lists of pieces. Three messages, more if the receiver cannot post all lists at once.
///
///   sender    begin --start: announce--> announced --requested: gather--> moving --finished: end--> over
///   receiver  begin --announced: scatter--> moving --moved: finish, end--> over
///
///   sender                                  receiver
///     | announcement, bytes of a list ------->|  finds the receive, posts lists of its pieces
///     |<------------- request, number of lists|
///     | ===== send of a list of pieces ======>|
///     | ===== ...                            >|
///     |<----------------------------- finished|  all has arrived; else it requests a stream
///
/// Both sides cut the message into the same parts, without knowing each other's pieces: the size of a part guarantees
/// that it has no more pieces than one list takes, on either side. Source: dissertation, section 8.1.1, figure 8.4
/// (SGRS).
#pragma once

#include "p2p/rendezvous/step.hpp"

namespace rma::detail {

struct sgrs_rendezvous {
  static const char* refuses(const fabric::capabilities& of) noexcept {
    return of.bulk_pieces_max != 0 ? nullptr : "the network has no bulk channel";
  }

  static constexpr rendezvous_step_result sender(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::start) return {announced, rendezvous_action::announce};
    if (now == announced && event == rendezvous_event::requested) return {moving, rendezvous_action::gather};
    if ((now == announced || now == moving) && event == rendezvous_event::finished)
      return {over, rendezvous_action::end};
    return unchanged(now);
  }
  static constexpr rendezvous_step_result receiver(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::announced) return {moving, rendezvous_action::scatter};
    if (now == moving && event == rendezvous_event::moved)
      return {over, rendezvous_action::finish | rendezvous_action::end};
    return unchanged(now);
  }
};

inline constexpr rendezvous_protocol sgrs_rendezvous_protocol{
    rendezvous_kind::sgrs,    "sgrs", false, false, false, false, sgrs_rendezvous::refuses, sgrs_rendezvous::sender,
    sgrs_rendezvous::receiver};

}  // namespace rma::detail
