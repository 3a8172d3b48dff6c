// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interface between a window's epochs and the engine, which knows no epoch by name: the terms of the open epoch,
/// and its rules. src/sync implements both.
#pragma once

#include <cstdint>
#include <string>

#include "rma/detail/view.hpp"
#include "rma/error.hpp"
#include "xfer/operation_record.hpp"

namespace rma::detail {

struct window_core;
struct checked_operation;

/// The terms of a window's open epoch.
struct epoch_terms {
  bool open = false;        ///< open to every target
  bool active = false;      ///< active target: its targets serve messages at its end at the latest
  bool asks = false;        ///< epoch_rules::admit is called for each operation, not only for the first to a target
  bool counts = false;      ///< its end announces writes: writes by the network are counted, and need no wait
  bool immediates = false;  ///< a write may have an immediate, see epoch_rules::immediate
};

/// The decision on a checked operation: it is issued, held by the epoch, or refused.
struct admission {
  status refusal = status::done;
  hold_reason reason = hold_reason::none;
  const char* why = "";  ///< for the trace

  static admission go() noexcept { return {}; }
  static admission hold(hold_reason reason, const char* why) noexcept { return {status::done, reason, why}; }
  /// Issues the operation if the preceding work has succeeded, else refuses it.
  static admission after(status s) noexcept { return {s, hold_reason::none, ""}; }
};

struct epoch_rules {
  /// True if an epoch is open to the target, though this rank does not hold it and the epoch is not open to all.
  bool (*permits)(const window_core& w, int target) noexcept;
  /// Decides on a checked operation. Opens the epoch to its target if necessary, and issues operations that must
  /// precede it. `requested`: the caller wants a request.
  admission (*admit)(window_core& w, const checked_operation& o, bool requested) noexcept;
  /// Called when an operation was refused: closes the epoch that it may have opened to the target.
  void (*refused)(window_core& w, int target) noexcept;
  /// The value of the immediate that announces this write to the target. False: it has none.
  bool (*immediate)(const window_core& w, const checked_operation& o, std::uint32_t& value) noexcept;
  /// Called for a put by the network in an epoch that counts; `notified`: with an immediate. Under the progress lock.
  void (*written)(window_core& w, const checked_operation& o, bool notified) noexcept;
  /// Called at the target for the last operation of an origin's epoch; `number` is last_of_epoch minus the signal in
  /// its header. Under the progress lock.
  void (*last_came)(window_core& w, int source, std::uint32_t number) noexcept;
  /// For the trace: the design of a call that is no operation, and the reason. `words`: number of barrier words that it
  /// has written; `text` is a buffer for texts that are not constant.
  void (*explain)(const window_core& w, call what, int target, std::uint64_t words, trace_event& e,
                  std::string& text) noexcept;
};

}  // namespace rma::detail
