// SPDX-License-Identifier: Apache-2.0
/// \file
/// The queue of a target: operations that wait, each for a reason, until something makes them go.
///
///   put, accumulate, get --> held: fence   --> the closing fence issues them (dissertation, section 6.2)
///                        --> held: unlock  --> messages that go with the lock, or behind it (dissertation, ch. 4)
///                        --> held: gather  --> one call of the kernel copies all of them
///
/// A held operation's layouts are copies, and so are values, which are gone when the call returns.
#pragma once

#include <cstdint>

#include "xfer/operation_record.hpp"

namespace rma::detail {

struct window_core;
struct checked_operation;
struct target_state;

/// Puts a checked operation into its target's queue. The caller holds the progress lock.
operation_record& hold(window_core& w, const checked_operation& o, hold_reason why);

/// What a held operation asks for, as it was checked. `args` is what the result refers to.
checked_operation recall(window_core& w, operation_record& op, operation_args& args) noexcept;

/// The first operation of the target's queue; it is in none any more. The caller holds the progress lock.
operation_record& take_held(window_core& w, target_state& state) noexcept;

/// Operations that will never go: their records are given back. The caller holds the progress lock.
void drop_held(window_core& w, target_state& state) noexcept;

}  // namespace rma::detail
