// SPDX-License-Identifier: Apache-2.0
/// \file
/// The open epoch of a window, and its rules for the engine.
#pragma once

#include "window/window_core.hpp"

namespace rma::detail {

/// Sets the open epoch of the window. All changes use it, except lock_all's inlined beginning and end.
void set_access(window_core& w, access_epoch epoch) noexcept;

/// The rules of the epochs of all windows for the engine.
const epoch_rules& rules_of_epochs() noexcept;

/// See epoch_rules::explain; for the trace.
void explain_call(const window_core& w, call what, int target, std::uint64_t words, trace_event& e,
                  std::string& text) noexcept;

}  // namespace rma::detail
