// SPDX-License-Identifier: Apache-2.0
/// \file
/// More synchronization of windows: non-blocking forms with requests, locks of byte ranges, fences among neighbors.
/// The headings of rma/window.hpp hold for all calls.
///
/// A synchronization request advances when it is tested or waited for; wait_any and wait_all advance all requests of
/// their list. Ranks that wait for several, one after the other, must do so in the same order. Dropping one before its
/// end waits for it, except for `ilock`, which is cancelled: the lock is not held then. A request must end before its
/// window does; an `ilock` of a window that is dropped is cancelled, and reports window_freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

#include "rma/detail/synchronization_ops.hpp"
#include "rma/detail/window_ops.hpp"
#include "rma/epoch.hpp"
#include "rma/request.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The calls, as members of every window.
template <class W>
class Synchronization {
  using source = std::source_location;

 public:
  // ---- requests -------------------------------------------------------------------------------------------

  /// As `fence`, without waiting. No epoch is open until the request is complete; then the next one is.
  /// Shape      collective over the window's team: all ranks call ifence, none of them `fence`
  /// Completes  when the request does: the operations that `fence` completes
  /// Errors     as fence; wrong_epoch for operations before the request is complete
  [[nodiscard]] Request ifence(assertion promises = assertion::none, source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::fence, try_ifence(request, promises), -1, 0, 0, where);
    return request;
  }
  /// `request` is empty after an error, and where there is nothing to wait for, in all `try_` forms of this file.
  [[nodiscard]] status try_ifence(Request& request, assertion promises = assertion::none) noexcept {
    return begin(request, [&](auto& node) { return detail::ifence(view(), promises, node); });
  }
  /// As `lock`, without waiting for the holder: the epoch is open when the request is complete.
  /// Errors     as lock; until then wrong_epoch for another lock of the target, lock_all, fence, start and post
  /// Cost       each test is an attempt; between nodes an atomic, in growing intervals
  [[nodiscard]] Request ilock(lock_kind kind, int target, source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::lock, try_ilock(kind, target, request), target, 0, 0, where);
    return request;
  }
  [[nodiscard]] status try_ilock(lock_kind kind, int target, Request& request) noexcept {
    return begin(request, [&](auto& node) { return detail::ilock(view(), kind, target, node); });
  }
  /// As `unlock`, without waiting for the operations of the epoch, which ends now: no more may be issued in it.
  /// Completes  when the request does: operations are complete at origin and target, and the lock is released
  [[nodiscard]] Request iunlock(int target, source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::unlock, try_iunlock(target, request), target, 0, 0, where);
    return request;
  }
  [[nodiscard]] status try_iunlock(int target, Request& request) noexcept {
    return begin(request, [&](auto& node) { return detail::iunlock(view(), target, node); });
  }
  /// As `flush`, without waiting: covers operations issued before this call, and perhaps some issued later.
  [[nodiscard]] Request iflush(int target, source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::flush, try_iflush(target, request), target, 0, 0, where);
    return request;
  }
  [[nodiscard]] status try_iflush(int target, Request& request) noexcept {
    return begin(request,
                 [&](auto& node) { return target < 0 ? status::bad_rank : detail::iflush(view(), target, node); });
  }
  /// An implicit handle: one request for all operations that this rank has issued to the target so far.
  /// Completes  when they are complete at the origin: buffers may be reused, results are available. Not later ones
  /// Errors     wrong_epoch, bad_rank; the request reports transfer_failed, peer_failed
  /// Cost       none where no operation is pending
  [[nodiscard]] Request issued_to(int target, source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::flush_local, try_issued_to(target, request), target, 0, 0, where);
    return request;
  }
  [[nodiscard]] status try_issued_to(int target, Request& request) noexcept {
    return begin(request,
                 [&](auto& node) { return target < 0 ? status::bad_rank : detail::issued_to(view(), target, node); });
  }
  /// As `issued_to`, for all targets.
  [[nodiscard]] Request issued_to_all(source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::flush_local_all, try_issued_to_all(request), -1, 0, 0, where);
    return request;
  }
  [[nodiscard]] status try_issued_to_all(Request& request) noexcept {
    return begin(request, [&](auto& node) { return detail::issued_to(view(), -1, node); });
  }
  /// As `iflush`, for all targets.
  [[nodiscard]] Request iflush_all(source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::flush_all, try_iflush_all(request), -1, 0, 0, where);
    return request;
  }
  [[nodiscard]] status try_iflush_all(Request& request) noexcept {
    return begin(request, [&](auto& node) { return detail::iflush(view(), -1, node); });
  }
  /// As `complete`, without waiting: closes the epoch of `start` now. The targets are notified when the operations are
  /// complete.
  [[nodiscard]] Request icomplete(source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::complete, try_icomplete(request), -1, 0, 0, where);
    return request;
  }
  [[nodiscard]] status try_icomplete(Request& request) noexcept {
    return begin(request, [&](auto& node) { return detail::icomplete(view(), node); });
  }

  // ---- byte ranges of a target ------------------------------------------------------------------------------

  /// Locks bytes [offset, offset + bytes) of the target's part: epochs on disjoint ranges of one target do not exclude
  /// each other, nor do shared ones. Several ranges of a target may be held at once. Operations must stay inside the
  /// range, which is not checked. `lock(exclusive)` of the whole target excludes all ranges.
  /// Errors     bad_rank; bad_argument if `bytes` is 0 or the lock_kind is invalid; out_of_window; wrong_epoch if
  ///            another epoch is open or a range of this rank conflicts; peer_failed if the target is dead, or a rank
  ///            that held a conflicting range: then try again
  /// Fairness   first come, first served among ranges that conflict
  /// Cost       the target's shared lock at its first range, and a message each way; the target's progress is needed
  /// Source     dissertation, "finer-grain locks" (future work); src/sync/range_lock.hpp
  void lock_range(lock_kind kind, int target, std::uint64_t offset, std::uint64_t bytes,
                  source where = source::current()) {
    const status s = lock_range_nothrow(kind, target, offset, bytes);
    detail::require(view(), detail::call::lock_range, s, target, offset, bytes, where);
  }
  [[nodiscard]] status lock_range_nothrow(lock_kind kind, int target, std::uint64_t offset,
                                          std::uint64_t bytes) noexcept {
    return detail::lock_range(view(), kind, target, offset, bytes);
  }
  /// Completes all operations issued to the target, and releases the range.
  /// Errors     not_locked if this rank does not hold exactly this range; also if `unlock` of the target has ended the
  ///            epoch before, which released the range
  void unlock_range(int target, std::uint64_t offset, std::uint64_t bytes, source where = source::current()) {
    const status s = try_unlock_range(target, offset, bytes);
    detail::require(view(), detail::call::unlock_range, s, target, offset, bytes, where);
  }
  [[nodiscard]] status try_unlock_range(int target, std::uint64_t offset, std::uint64_t bytes) noexcept {
    return detail::unlock_range(view(), target, offset, bytes);
  }

  // ---- fences among neighbors -------------------------------------------------------------------------------

  /// Sets the targets of this rank's operations, and the origins of operations on it, for `fence_neighbors`; once.
  /// Shape      local; the ranks' lists must match
  /// Errors     bad_rank; bad_argument if a rank occurs twice, or for a second call
  void neighbors(std::span<const int> targets, std::span<const int> origins, source where = source::current()) {
    detail::require(view(), detail::call::neighbors, try_neighbors(targets, origins), -1, 0, targets.size(), where);
  }
  [[nodiscard]] status try_neighbors(std::span<const int> targets, std::span<const int> origins) noexcept {
    return detail::set_neighbors(view(), targets.data(), targets.size(), origins.data(), origins.size());
  }
  /// A `fence` among neighbors: closes the epoch to `targets` and from `origins`, and opens the next one.
  /// Shape      every rank and its neighbors the same number of times; not collective
  /// Completes  operations of this rank, and those of its origins on it
  /// Cost       one message to each target and one to each origin; no collective
  /// Errors     as fence; peer_failed only for neighbors; bad_argument if `neighbors` was not called
  /// Source     dissertation, "fences for a given pattern" (future work); src/sync/fence_neighbors.hpp
  void fence_neighbors(assertion promises = assertion::none, source where = source::current()) {
    detail::require(view(), detail::call::fence_neighbors, try_fence_neighbors(promises), -1, 0, 0, where);
  }
  [[nodiscard]] status try_fence_neighbors(assertion promises = assertion::none) noexcept {
    return detail::fence_neighbors(view(), promises);
  }

  /// The design of this window's fences. Never `automatic`.
  [[nodiscard]] fence_kind fence_design() const noexcept {
    return detail::fence_of(*static_cast<const W*>(this)->view_);
  }

 private:
  friend W;
  Synchronization() noexcept = default;
  [[nodiscard]] detail::window_view& view() noexcept { return *static_cast<W*>(this)->view_; }

  template <class Begin>
  status begin(Request& request, Begin&& start) noexcept {
    detail::request_node* node = nullptr;
    const status s = start(node);
    request = ok(s) ? Request(node) : Request();
    return s;
  }
};

}  // namespace rma

#pragma GCC visibility pop
