// SPDX-License-Identifier: Apache-2.0
/// \file
/// The queue of a target: operations that wait, each for a reason, until something makes them go.
///
///   put, accumulate, get --> held: fence   --> the closing fence issues them (dissertation, section 6.2)
///                        --> held: unlock  --> messages that go with the lock, or behind it (dissertation, ch. 4)
///                        --> held: scheduled --> the end of the epoch issues them in another order, or several in one
///                                              message (dissertation, ch. 10)
///                        --> held: gather  --> one call of the kernel copies all of them
///   any                  --> held: room    --> the rest of it goes when the network takes more; whoever makes progress
///                                              sees to that (dissertation, section 4.2)
///
/// A held operation's layouts are copies, and so are values, which are gone when the call returns. All in a queue are
/// held for the same reason. Behind one that is held for room everything to its target is held, since operations of one
/// origin on one place keep their order: atomics, and puts behind puts. Whatever else must not overtake them (a read
/// that says that writes are placed, an unlock behind writes, a signal, a fence that counts) waits until
/// `target_state::queued` is 0.
#pragma once

#include <cstdint>

#include "xfer/operation_record.hpp"

namespace rma::detail {

struct window_core;
struct checked_operation;
struct target_state;

/// Puts a checked operation into its target's queue. The caller holds the progress lock.
operation_record& hold(window_core& w, const checked_operation& o, hold_reason why);

/// Puts what is left of an operation, of which `posted` bytes have gone, into its target's queue until there is room.
/// Its record is `op`, whose user decides what becomes of it at its end. The caller holds the progress lock.
void hold_for_room(window_core& w, const checked_operation& o, operation_record& op, std::uint64_t posted,
                   resume_function resume);
/// Waits until nothing is held for room towards the target.
status await_room(window_core& w, int target) noexcept;

/// A held operation asks for this, as it was checked. The result refers to `args`.
checked_operation recall(window_core& w, target_state& state, operation_record& op, operation_args& args) noexcept;

/// The first operation of the target's queue; it is in none any more. The caller holds the progress lock.
operation_record& take_held(window_core& w, target_state& state) noexcept;
/// The same of those that are scheduled, which have a queue of their own.
operation_record& take_scheduled(window_core& w, target_state& state) noexcept;
void drop_scheduled(window_core& w, target_state& state) noexcept;

/// All of them. The caller holds the progress lock.
void take_all_held(window_core& w, target_state& state, operation_record::queue& into) noexcept;

/// Operations that will never go: their records are given back. The caller holds the progress lock.
void drop_held(window_core& w, target_state& state) noexcept;

}  // namespace rma::detail
