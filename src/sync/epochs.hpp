// SPDX-License-Identifier: Apache-2.0
/// \file
/// The open epoch of a window, and what it says to the engine.
#pragma once

#include "window/window_core.hpp"

namespace rma::detail {

/// The window has this epoch from now on. All but lock_all's inlined beginning and end go through here.
void set_access(window_core& w, access_epoch epoch) noexcept;

/// The rules by which the epochs of all windows answer the engine.
const epoch_rules& rules_of_epochs() noexcept;

/// For the trace: see epoch_rules::explain.
void explain_call(const window_core& w, call what, int target, std::uint64_t words, trace_event& e,
                  std::string& text) noexcept;

}  // namespace rma::detail
