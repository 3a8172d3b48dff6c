// SPDX-License-Identifier: Apache-2.0
/// \file
/// The queue of a target: held operations, each with a reason, and the events that issue them.
///
///   put, accumulate, get --> held: fence   --> the closing fence issues them (dissertation, section 6.2)
///                        --> held: unlock  --> sent with the lock request, or after it (dissertation, ch. 4)
///                        --> held: scheduled --> the end of the epoch issues them in another order, or several in one
///                                              message (dissertation, ch. 10)
///                        --> held: gather  --> one system call copies all of them
///   any                  --> held: room    --> progress posts the rest of it when the network has room
///                                              (dissertation, section 4.2)
///
/// A held operation has copies of its layouts, and of values, which are valid only during the call. All in a queue are
/// held for the same reason. After one that is held for room, all operations to its target are held, since operations
/// of one origin on one location keep their order: atomics, and puts after puts. Everything else that must not overtake
/// them (a read that confirms the placement of writes, an unlock after writes, the message that ends a fence) waits
/// until `target_state::queued` is 0.
#pragma once

#include <cstdint>

#include "xfer/operation_record.hpp"

namespace rma::detail {

struct window_core;
struct checked_operation;
struct target_state;
struct request_node;

/// Puts a checked operation into its target's queue. The caller holds the progress lock.
operation_record& hold(window_core& w, const checked_operation& o, hold_reason why);

/// Puts the rest of an operation, after the first `posted` bytes, into its target's queue until there is room.
/// Its record is `op`, whose owner handles its end. The caller holds the progress lock.
void hold_for_room(window_core& w, const checked_operation& o, operation_record& op, std::uint64_t posted,
                   resume_function resume);
/// Queues the signal of an operation without data behind operations that wait for room.
status hold_signal(window_core& w, const checked_operation& o, request_node** request) noexcept;
/// Waits until nothing is held for room towards the target.
status await_room(window_core& w, int target) noexcept;

/// The checked operation of a held record. The result refers to `args`.
checked_operation recall(window_core& w, target_state& state, operation_record& op, operation_args& args) noexcept;

/// Removes and returns the first operation of the target's queue. The caller holds the progress lock.
operation_record& take_held(window_core& w, target_state& state) noexcept;
/// As the other, for scheduled operations, which have a queue of their own.
operation_record& take_scheduled(window_core& w, target_state& state) noexcept;
void drop_scheduled(window_core& w, target_state& state) noexcept;

/// Removes and returns all of them. The caller holds the progress lock.
void take_all_held(window_core& w, target_state& state, operation_record::queue& into) noexcept;

/// Frees the records of operations that will never be issued. The caller holds the progress lock.
void drop_held(window_core& w, target_state& state) noexcept;

}  // namespace rma::detail
