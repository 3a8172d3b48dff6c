// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a window tells about itself, whatever its elements are: the base of every Window<T>.
#pragma once

#include <string_view>

#include "rma/detail/window_ops.hpp"
#include "rma/hints.hpp"
#include "rma/team.hpp"

namespace rma {

/// The kinds of operations, for `one_sided`.
using call = detail::call;

/// Local: asks nobody, unless it says so.
class window_facts {
 public:
  [[nodiscard]] Team team() const { return detail::team_of(*view_); }
  [[nodiscard]] std::string_view name() const noexcept { return detail::name_of_window(*view_); }
  /// Who makes atomic operations atomic here. Never `automatic`.
  [[nodiscard]] accumulate_mode atomicity() const noexcept { return view_->mode; }
  /// What carries out locks of this target. `automatic` only for a rank that is not in the team, or a freed window.
  [[nodiscard]] lock_protocol locking(int target) const noexcept { return detail::locking(*view_, target); }
  /// Requests for locks of this window by this rank, migrations, time. Threads: as for lock().
  [[nodiscard]] LockCounts lock_counts() const noexcept { return detail::counts_of_locks(*view_); }
  /// True if an operation of this kind (call::put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap) to
  /// this target, and the lock that it may need, completes without the target's processor.
  /// Cost       at the first use of a target on another node, a read of what it says about its part
  [[nodiscard]] bool one_sided(call kind, int target) const noexcept { return detail::one_sided(*view_, kind, target); }
  /// True if this rank's user memory was promoted into shared pages; else why not, in one line.
  [[nodiscard]] bool promoted() const noexcept { return detail::promotion(*view_).empty(); }
  [[nodiscard]] std::string_view not_promoted_because() const noexcept { return detail::promotion(*view_); }

 protected:
  window_facts() noexcept = default;
  explicit window_facts(detail::window_view* view) noexcept : view_(view) {}
  ~window_facts() = default;

  detail::window_view* view_ = detail::no_window();
};

}  // namespace rma
