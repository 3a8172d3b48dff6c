// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ends of epochs that go in one message with the small operations that are held for their target.
/// Source: dissertation, 10.2, figures 10.5 and 10.6.
#pragma once

#include <cstdint>

#include "window/window_core.hpp"

namespace rma::detail {

/// Operations that are held for the target go, but for small ones that may go with the end of the epoch.
void issue_all_but_aggregates(window_core& w, int target) noexcept;
/// Tells the target that this rank's access epoch is over, in one message with what is held for it. All else there is
/// complete.
void complete_with_rider(window_core& w, int target) noexcept;
/// True if the lock's end has gone to the target's lock manager, with the small operations that were held; false:
/// nothing is held any more. `failed`: what has gone wrong with what had been issued.
bool unlock_with_aggregates(window_core& w, int target, std::uint8_t held, status& failed) noexcept;
/// The rest of unlock. `notified`: the lock's end has gone to the target.
status close_lock(window_core& w, int target, std::uint8_t held, bool notified) noexcept;

}  // namespace rma::detail
