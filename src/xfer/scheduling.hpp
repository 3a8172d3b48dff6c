// SPDX-License-Identifier: Apache-2.0
/// \file
/// Scheduling: operations of an epoch are held in their target's queue, and issued in another order (RMA_SCHEDULE), or
/// several in one message (RMA_AGGREGATE).
///
///   put, get, accumulate --> held: scheduled --> issue_scheduled: each by its protocol, in the order of the policy
///                                                small ones: operation_batch, with what ends the epoch
///
/// Every call that completes operations, or that must not overtake them, drains the queue first: flush, flush_local,
/// unlock, complete, fences, signals, operations with a request or a result, and their non-blocking forms at their
/// start. An abandoned epoch drops it. Source: dissertation, chapter 10.
#pragma once

#include <cstdint>
#include <span>

#include "channel/context.hpp"
#include "rma/error.hpp"
#include "rma/hints.hpp"
#include "xfer/operation_record.hpp"

namespace rma::detail {

struct checked_operation;
struct placement;
struct window_core;

/// The schedule of one window.
struct scheduling {
  schedule_order order = schedule_order::in_order;  ///< never automatic
  std::uint64_t aggregate_bytes = 0;                ///< limit of an operation's size; 0: none is aggregated
  const char* why_ordered = "RMA_SCHEDULE";
  const char* why_aggregated = "RMA_AGGREGATE";
  bool handles = false;      ///< an aggregate handle was made
  bool issuing = false;      ///< held operations are being issued: they are not held again
  bool more_follow = false;  ///< further operations to the same target follow the current one
  [[nodiscard]] bool on() const noexcept {
    return order != schedule_order::in_order || aggregate_bytes != 0 || handles;
  }
};

/// Operations that are held for one target.
struct scheduled_operations {
  operation_record::queue held;  ///< separate from the target's other queue; the progress lock guards it, too
  std::uint32_t operations = 0;
  std::uint32_t message_bytes = 0;  ///< bytes of the operations to be aggregated
};

/// A message appended to a batch, which is handled after the operations of the batch.
struct rider {
  message kind;
  std::span<const std::byte> payload;
};

/// Chooses the schedule by the window's hints, else by the settings.
void choose_schedule(window_core& w) noexcept;

/// Holds a checked operation, if it may wait, and returns `posted`. `not_supported` means that the caller issues it
/// now; operations that it must not overtake have been issued.
status schedule(window_core& w, const placement& at, const checked_operation& o, bool requested) noexcept;

/// Issues the operations held for the target (-1: for all). The call that completes the target reports failures.
void issue_scheduled(window_core& w, int target) noexcept;
/// Does the same, except for operations to be aggregated.
void issue_apart(window_core& w, int target) noexcept;
/// Issues the operations held for the target, all of which are to be aggregated, with the rider after the last of them.
/// False if none is held: nothing was done.
bool issue_with_rider(window_core& w, int target, const rider& end) noexcept;
/// True if an operation with a result is held for the target.
[[nodiscard]] bool has_results_held(window_core& w, int target) noexcept;
/// True if an operation to be aggregated is held for the target.
[[nodiscard]] bool has_aggregates(window_core& w, int target) noexcept;

}  // namespace rma::detail
