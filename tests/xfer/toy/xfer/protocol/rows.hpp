// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rows of the protocol table with one more, as docs/architecture.md ("How to add a protocol") says.
#pragma once

#include "xfer/protocol/protocol.hpp"

namespace rma::detail {

extern const protocol toy_protocol;

inline constexpr const protocol* protocol_rows[] = {
    &direct_protocol,       &device_protocol,  &promised_protocol,      &staged_protocol,  &shared_protocol,
    &fabric_protocol,       &handler_protocol, &generic_protocol,       &multi_w_protocol, &write_gather_protocol,
    &read_scatter_protocol, &sgrs_protocol,    &host_assisted_protocol, &toy_protocol,
};

}  // namespace rma::detail
