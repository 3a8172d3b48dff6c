// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library functions behind rma/aggregate.hpp.
#pragma once

#include "rma/detail/view.hpp"

#pragma GCC visibility push(default)

namespace rma::detail {

/// Disables the inlined paths of this window: from now on its operations may be held.
void begin_aggregate(window_view& window) noexcept;
/// As issue, but holds a small operation until others to its target join it. `posted` or `done` on success.
status issue_aggregated(window_view& window, const operation_args& args) noexcept;
/// Sends the held operations; with `wait` it returns when all operations of this rank are complete at the origin.
status end_aggregate(window_view& window, bool wait) noexcept;

}  // namespace rma::detail

#pragma GCC visibility pop
