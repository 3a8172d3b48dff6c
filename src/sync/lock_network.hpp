// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lock "network": the same state word as "cpu", taken by the fabric's compare-and-swap alone. The target does
/// nothing. Contenders try again with growing pauses (the dissertation names the back-off as the missing piece).
/// Source: dissertation ch. 4, direct passive.
#pragma once

#include "rma/epoch.hpp"
#include "xfer/window_core.hpp"

namespace rma::detail {

status acquire_network(window_core& w, int target, lock_kind kind) noexcept;
status release_network(window_core& w, int target, lock_kind kind) noexcept;

}  // namespace rma::detail
