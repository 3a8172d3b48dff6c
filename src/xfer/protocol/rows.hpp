// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rows of the protocol table: one line for each protocol.
#pragma once

#include "xfer/protocol/protocol.hpp"

namespace rma::detail {

inline constexpr const protocol* protocol_rows[] = {
    &direct_protocol,        &device_protocol,
    &promised_protocol,      &staged_protocol,
    &shared_protocol,        &fabric_protocol,
    &handler_protocol,       &generic_protocol,
    &multi_w_protocol,       &write_gather_protocol,
    &read_scatter_protocol,  &sgrs_protocol,
    &host_assisted_protocol, &lock_get_modify_put_protocol,
};

}  // namespace rma::detail
