// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rendezvous "get": as getcqe, but the receiver detects the end of its read by the last byte of the buffer. Two
/// messages and a read.
///
///   sender    begin --start: announce--> announced --finished: end--> over
///   receiver  begin --announced: prepare, read, poll--> moving --changed or moved: finish, end--> over
///
///   sender                              receiver
///   GS1' | announcement, last byte ----->|
///        |<===== read =================>| GR1' the buffer's last byte becomes another one first
///        |<---------------- finished     | GR2' the last byte is the announced one
///   GS2  over
///
/// The byte's value before the read is the complement of the announced one: the paper's negation is the same byte for
/// 0x00 and 0x80, and would never change. Source: Takagi et al., EuroMPI 2013, section 3.1, figure 3.
#pragma once

#include <cstddef>

#include "p2p/rendezvous/step.hpp"

namespace rma::detail {

/// A byte that differs from the one that the read brings.
constexpr std::byte before_get(std::byte last) noexcept { return ~last; }

struct get_rendezvous {
  static const char* refuses(const fabric::capabilities& of) noexcept {
    const bool polled = of.polls == fabric::polled_end::read || of.polls == fabric::polled_end::both;
    return polled ? nullptr : "the fabric does not promise that the last byte of a read comes last";
  }

  static constexpr rendezvous_step_result sender(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::start) return {announced, rendezvous_action::announce};
    if (now == announced && event == rendezvous_event::finished) return {over, rendezvous_action::end};
    return unchanged(now);
  }
  static constexpr rendezvous_step_result receiver(rendezvous_state now, rendezvous_event event) noexcept {
    using enum rendezvous_state;
    if (now == begin && event == rendezvous_event::announced)
      return {moving, rendezvous_action::prepare | rendezvous_action::read | rendezvous_action::poll};
    if (now == moving && (event == rendezvous_event::changed || event == rendezvous_event::moved))
      return {over, rendezvous_action::finish | rendezvous_action::end};
    return unchanged(now);
  }
};

inline constexpr rendezvous_protocol get_protocol{
    rendezvous_kind::get,    "get", true, false, false, true, get_rendezvous::refuses, get_rendezvous::sender,
    get_rendezvous::receiver};

}  // namespace rma::detail
