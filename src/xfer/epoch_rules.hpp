// SPDX-License-Identifier: Apache-2.0
/// \file
/// A window's epochs tell the engine, which knows none of them by name: the terms of the open one, and answers to
/// questions. src/sync has both.
#pragma once

#include <cstdint>
#include <string>

#include "rma/detail/view.hpp"
#include "rma/error.hpp"
#include "xfer/operation_record.hpp"

namespace rma::detail {

struct window_core;
struct checked_operation;

/// Of the open epoch of a window.
struct epoch_terms {
  bool open = false;        ///< towards every target
  bool active = false;      ///< its targets take part in its end: they serve messages then, at the latest
  bool asks = false;        ///< epoch_rules::admit is asked about each operation, not only the first to a target
  bool counts = false;      ///< its end says what was written in it: writes by the network are told, and do not wait
  bool immediates = false;  ///< a write may tell its target of itself, see epoch_rules::immediate
};

/// The answer to an operation that was checked: it goes, is held until the epoch lets it go, or is refused.
struct admission {
  status refusal = status::done;
  hold_reason reason = hold_reason::none;
  const char* why = "";  ///< for the trace

  static admission go() noexcept { return {}; }
  static admission hold(hold_reason reason, const char* why) noexcept { return {status::done, reason, why}; }
  /// It goes if what had to be done before has succeeded, else it is refused.
  static admission after(status s) noexcept { return {s, hold_reason::none, ""}; }
};

struct epoch_rules {
  /// Whether an epoch is open towards the target that does not hold it yet, nor is open to all.
  bool (*permits)(const window_core& w, int target) noexcept;
  /// An operation that was checked. Opens the epoch towards its target if that is to be done; sees to it that what was
  /// held before goes before it. `requested`: somebody wants a request.
  admission (*admit)(window_core& w, const checked_operation& o, bool requested) noexcept;
  /// An operation was refused: what it may have opened towards the target is closed.
  void (*refused)(window_core& w, int target) noexcept;
  /// The value of an immediate that tells the target of this write. False: none does.
  bool (*immediate)(const window_core& w, const checked_operation& o, std::uint32_t& value) noexcept;
  /// A put went by the network, in an epoch that counts. `told`: with an immediate. The caller holds the progress lock.
  void (*written)(window_core& w, const checked_operation& o, bool told) noexcept;
  /// At the target: the last operation of an origin's epoch has come. `number` was last_of_epoch minus the signal in
  /// its header. The caller holds the progress lock.
  void (*last_came)(window_core& w, int source, std::uint32_t number) noexcept;
  /// For the trace: what carries out a call that is no operation, and why. `words`: how many words of barriers were
  /// written in it; `text` is room for what is not constant.
  void (*explain)(const window_core& w, call what, int target, std::uint64_t words, trace_event& e,
                  std::string& text) noexcept;
};

}  // namespace rma::detail
