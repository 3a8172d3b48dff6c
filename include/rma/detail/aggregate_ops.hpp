// SPDX-License-Identifier: Apache-2.0
/// \file
/// The calls of rma/aggregate.hpp are carried out here.
#pragma once

#include "rma/detail/view.hpp"

#pragma GCC visibility push(default)

namespace rma::detail {

/// From now on operations of this window may wait for others: none takes a short way.
void begin_aggregate(window_view& window) noexcept;
/// issue, but an operation that is small waits for others to its target. `posted` or `done` on success.
status issue_aggregated(window_view& window, const operation_args& args) noexcept;
/// Sends what waits; `wait`: returns when all that this rank has issued is complete here.
status end_aggregate(window_view& window, bool wait) noexcept;

}  // namespace rma::detail

#pragma GCC visibility pop
