// SPDX-License-Identifier: Apache-2.0
/// \file
/// Queries of a window that do not depend on its element type: the base of every Window<T>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>

#include "rma/detail/window_ops.hpp"
#include "rma/hints.hpp"
#include "rma/team.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The kinds of operations, for `one_sided`.
using call = detail::call;

/// All queries are local, unless their comment says otherwise.
class window_facts {
 public:
  /// The team over which the window was made.
  [[nodiscard]] Team team(std::source_location where = std::source_location::current()) const {
    return detail::team_of(*view_, where);
  }
  /// The window's name, Hints::name.
  [[nodiscard]] std::string_view name() const noexcept { return detail::name_of_window(*view_); }
  /// The mode by which the window's updates are atomic. Never `automatic`.
  [[nodiscard]] accumulate_mode atomicity() const noexcept { return view_->mode; }
  /// Bytes that one lock of mode `striped` guards; 0 in the other modes, which have no such locks.
  [[nodiscard]] std::size_t accumulate_granularity() const noexcept {
    return view_->mode == accumulate_mode::striped ? std::size_t{1} << view_->stripe_shift : 0;
  }
  /// The protocol that carries out locks of this target. `automatic` only for a rank outside the team, or a freed
  /// window.
  [[nodiscard]] lock_protocol locking(int target) const noexcept { return detail::locking(*view_, target); }
  /// Counts of this rank's lock requests on this window, of migrations, and of time. Threads: as for lock().
  [[nodiscard]] LockCounts lock_counts() const noexcept { return detail::counts_of_locks(*view_); }
  /// True if an operation of this kind (call::put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap) to
  /// this target, and the lock that it may need, completes without the target's processor.
  /// Cost       at the first use of a target on another node, a read of the description of its part
  [[nodiscard]] bool one_sided(call kind, int target) const noexcept { return detail::one_sided(*view_, kind, target); }
  /// Bytes of the part of `rank`; 0 in a dynamic window, where the program exchanges what ranks have attached.
  /// Shape      local
  /// Errors     bad_rank, window_freed, window_failed, wrong_thread; unreachable, peer_failed
  /// Threads    as for operations
  /// Cost       at the first use of a target on another node, a read of the description of its part
  [[nodiscard]] std::size_t part_bytes(int rank, std::source_location where = std::source_location::current()) const {
    std::size_t bytes = 0;
    detail::require(*view_, detail::call::size, try_part_bytes(rank, bytes), rank, 0, 0, where);
    return bytes;
  }
  [[nodiscard]] status try_part_bytes(int rank, std::size_t& bytes) const noexcept {
    return detail::part_bytes(*view_, rank, bytes);
  }
  /// Offset of each member's part in its segment of library memory, and the length of the longest part. Returns false,
  /// and sets neither, where the memory is not the library's. See AddressMap.
  [[nodiscard]] bool place_in_segment(std::uint64_t& offset, std::uint64_t& bytes_max) const noexcept {
    return detail::place_in_segment(*view_, offset, bytes_max);
  }
  /// True if a lock, start or post of this rank is open: `free` would be refused with wrong_epoch.
  [[nodiscard]] bool has_open_epoch() const noexcept { return detail::has_open_epoch(*view_); }
  /// True if this rank's user memory was promoted into shared pages; not_promoted_because() gives the reason if not.
  [[nodiscard]] bool promoted() const noexcept { return detail::promotion(*view_).empty(); }
  [[nodiscard]] std::string_view not_promoted_because() const noexcept { return detail::promotion(*view_); }

 protected:
  window_facts() noexcept = default;
  explicit window_facts(detail::window_view* view) noexcept : view_(view) {}
  ~window_facts() = default;

  detail::window_view* view_ = detail::no_window();
};

}  // namespace rma

#pragma GCC visibility pop
