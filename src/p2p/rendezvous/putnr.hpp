// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rendezvous "putnr": the receiver sends a request as soon as the receive is posted, the sender writes, and the
/// receiver detects the end by the last byte of its buffer, which was a constant before. One message and a write; two
/// messages if the message ends in that constant.
///
///   receiver  begin --start or announced: prepare, request, poll--> asked --changed or finished: end--> over
///   sender    begin --requested: write--> moving --moved: finish if unseen, end--> over
///             begin --start: announce--> announced --requested: write--> moving
///
///   receiver                            sender
///   PR1 | request, the byte ------------>|
///       |<================ write =======| PS1 finds the send
///       |<---- finished, if unseen ------| PS2 the message ends in that byte, or is shorter than the receive
///   PR2 the byte has changed, or this     PS3 completion of the write
///
/// If the sender is first, it announces the message: for receives with wildcards, probes, and messages that no receive
/// requests; a receive that has sent a request takes the announcement for the requested message. Source: Takagi et al.,
/// EuroMPI 2013, section 2.2, figure 2.
#pragma once

#include <cstddef>

#include "p2p/rendezvous/step.hpp"

namespace rma::detail {

inline constexpr std::byte putnr_byte{0};

struct putnr_rendezvous {
  static const char* refuses(const fabric::capabilities& of) noexcept {
    const bool polled = of.polls == fabric::polled_end::write || of.polls == fabric::polled_end::both;
    return polled ? nullptr : "the fabric does not promise that the last byte of a write comes last";
  }

  static constexpr rendezvous_step_result sender(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::start) return {announced, rendezvous_action::announce};
    if ((now == begin || now == announced) && event == rendezvous_event::requested)
      return {moving, rendezvous_action::write};
    if (now == moving && event == rendezvous_event::moved)
      return {over, rendezvous_action::finish_if_unseen | rendezvous_action::end};
    if (now == announced && event == rendezvous_event::finished) return {over, rendezvous_action::end};
    return unchanged(now);
  }
  static constexpr rendezvous_step_result receiver(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    constexpr std::uint32_t request_and_poll =
        rendezvous_action::prepare | rendezvous_action::request | rendezvous_action::poll;
    if (now == begin && (event == rendezvous_event::start || event == rendezvous_event::announced))
      return {asked, request_and_poll};
    if (now == asked && (event == rendezvous_event::changed || event == rendezvous_event::finished))
      return {over, rendezvous_action::end};
    return unchanged(now);
  }
};

inline constexpr rendezvous_protocol putnr_protocol{
    rendezvous_kind::putnr,    "putnr", false, true, true, true, putnr_rendezvous::refuses, putnr_rendezvous::sender,
    putnr_rendezvous::receiver};

}  // namespace rma::detail
