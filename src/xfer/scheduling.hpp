// SPDX-License-Identifier: Apache-2.0
/// \file
/// Scheduling: operations of an epoch wait in their target's queue, and are issued in another order (RMA_SCHEDULE), or
/// several in one message (RMA_AGGREGATE).
///
///   put, get, accumulate --> held: scheduled --> issue_scheduled: each by its protocol, in the order of the policy
///                                                small ones: operation_batch, with what ends the epoch
///
/// Every call that completes operations, or that must not overtake them, drains the queue first: flush, flush_local,
/// unlock, complete, fences, signals, operations that somebody waits for, and their non-blocking forms at their start.
/// An abandoned epoch drops it. Source: dissertation, chapter 10.
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

/// Of one window.
struct scheduling {
  schedule_order order = schedule_order::in_order;  ///< never automatic
  std::uint64_t aggregate_bytes = 0;                ///< of one operation at most; 0: none is aggregated
  const char* why_ordered = "RMA_SCHEDULE";
  const char* why_aggregated = "RMA_AGGREGATE";
  bool handles = false;      ///< there has been an aggregate handle
  bool issuing = false;      ///< those that were held: they are not held again
  bool more_follow = false;  ///< after the one that is being issued, to the same target
  [[nodiscard]] bool on() const noexcept {
    return order != schedule_order::in_order || aggregate_bytes != 0 || handles;
  }
};

/// Operations that are held for one target.
struct scheduled_operations {
  operation_record::queue held;  ///< apart from the target's other queue; guarded by the progress lock, too
  std::uint32_t operations = 0;
  std::uint32_t message_bytes = 0;  ///< of those that will be aggregated
};

/// A message that goes behind the operations of a batch, and is handled when they are done.
struct rider {
  message kind;
  std::span<const std::byte> payload;
};

/// From the window's hints, else the settings.
void choose_schedule(window_core& w) noexcept;

/// Holds an operation that was checked, if it may wait: `posted`. `not_supported`: it goes on now, and what must not be
/// overtaken has been issued.
status schedule(window_core& w, const placement& at, const checked_operation& o, bool requested) noexcept;

/// Issues what is held for the target (-1: for all). What fails, the call that completes the target reports.
void issue_scheduled(window_core& w, int target) noexcept;
/// The same but for those that will be aggregated.
void issue_apart(window_core& w, int target) noexcept;
/// Issues what is held for the target, all of which will be aggregated, with the rider behind the last of them. False:
/// nothing happened, since nothing is held.
bool issue_with_rider(window_core& w, int target, const rider& end) noexcept;
/// Whether something is held for the target whose result is waited for.
[[nodiscard]] bool has_results_held(window_core& w, int target) noexcept;
/// Whether something is held for the target that will be aggregated.
[[nodiscard]] bool has_aggregates(window_core& w, int target) noexcept;

}  // namespace rma::detail
