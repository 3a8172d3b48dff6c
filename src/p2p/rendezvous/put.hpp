// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rendezvous "put": as putnr, but the last byte of the buffer has a random value before, so that the message seldom
/// ends in it. One message and a write; two messages in one of 256 transfers, whatever the data are.
///
///   receiver  begin --start or announced: prepare, request, poll--> asked --changed or finished: end--> over
///   sender    begin --requested: write--> moving --moved: finish if unseen, end--> over
///             begin --start: announce--> announced --requested: write--> moving
///
///   receiver                            sender
///   PR1' | request, a random byte ------>|
///        |<================ write =======| PS1
///        |<---- finished, if unseen -----| PS2
///   PR2  the byte has changed             PS3
///
/// Source: Takagi et al., EuroMPI 2013, section 3.2, figure 4.
#pragma once

#include "p2p/rendezvous/putnr.hpp"

namespace rma::detail {

inline constexpr rendezvous_protocol put_protocol{
    rendezvous_kind::put,      "put", false, true, true, true, putnr_rendezvous::refuses, putnr_rendezvous::sender,
    putnr_rendezvous::receiver};

}  // namespace rma::detail
