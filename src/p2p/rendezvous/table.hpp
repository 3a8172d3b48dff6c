// SPDX-License-Identifier: Apache-2.0
/// \file
/// All rendezvous protocols, by their numbers.
#pragma once

#include <cstddef>
#include <iterator>

#include "p2p/rendezvous/get.hpp"
#include "p2p/rendezvous/getcqe.hpp"
#include "p2p/rendezvous/put.hpp"
#include "p2p/rendezvous/putnr.hpp"
#include "p2p/rendezvous/rput.hpp"
#include "p2p/rendezvous/sgrs.hpp"
#include "p2p/rendezvous/stream.hpp"

namespace rma::detail {

inline constexpr const rendezvous_protocol* rendezvous_rows[] = {
    &stream_protocol, &rput_protocol, &getcqe_protocol,          &get_protocol,
    &putnr_protocol,  &put_protocol,  &sgrs_rendezvous_protocol,
};
static_assert(std::size(rendezvous_rows) == static_cast<std::size_t>(rendezvous_kind::count_));

constexpr const rendezvous_protocol& rendezvous_of(rendezvous_kind kind) noexcept {
  return *rendezvous_rows[static_cast<std::size_t>(kind)];
}

}  // namespace rma::detail
