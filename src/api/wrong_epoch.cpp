// SPDX-License-Identifier: Apache-2.0
#include "api/wrong_epoch.hpp"

#include <fmt/format.h>

#include "sync/locking.hpp"
#include "xfer/entry_scope.hpp"

namespace rma::detail {
namespace {

bool is_locked(const window_core& w, int target) noexcept {
  const std::uint8_t held = w.held(target);
  return held != 0 && held != held_by_lock_all;
}

/// The lowest rank that this rank has locked, or no_rank.
int first_locked(const window_core& w) noexcept {
  for (int rank = 0; rank < w.size(); ++rank) {
    if (is_locked(w, rank)) return rank;
  }
  return no_rank;
}

std::string unlock_first(int rank) { return fmt::format("rank {0} is locked; call unlock({0}) first", rank); }

std::string request_first(int rank) {
  return fmt::format("the request of ilock({}) is not complete; wait for it first", rank);
}

/// Says how to end the access epoch that is open, or "".
std::string end_access_first(const window_core& w) {
  switch (w.access) {
    case access_epoch::none: return "";
    case access_epoch::fence:
      return w.used_since_fence() ? "a fence epoch with operations is open; call fence(rma::no_succeed) first" : "";
    case access_epoch::start: return "an epoch of start() is open; call complete() first";
    case access_epoch::lock_all: return "an epoch of lock_all() is open; call unlock_all() first";
    case access_epoch::neighbors:
      return "an epoch of fence_neighbors() is open; call fence_neighbors(rma::no_succeed) first";
    case access_epoch::opening: return "another thread is in start(); let it return first";
    case access_epoch::closing: return "a request that ends an epoch is not complete; wait for it first";
  }
  return "";
}

/// For calls that no lock of any rank allows. "" if nothing is open.
std::string end_all_first(const window_core& w) {
  if (!w.wanted.empty()) return request_first(w.wanted.front());
  if (const int locked = first_locked(w); locked != no_rank) return unlock_first(locked);
  const std::string access = end_access_first(w);
  if (!access.empty()) return access;
  return w.exposed ? "this rank has posted; call wait() first" : "";
}

std::string before_fence(const window_core& w) {
  const std::string open = w.access == access_epoch::fence ? "" : end_all_first(w);
  return open.empty() ? "the epoch that this call has ended had operations; leave out rma::no_precede" : open;
}

std::string before_neighbors_fence(const window_core& w) {
  const std::string open = w.access == access_epoch::neighbors ? "" : end_all_first(w);
  return open.empty() ? before_fence(w) : open;
}

std::string before_post(const window_core& w) {
  return w.exposed ? "this rank has posted; call wait() first" : end_all_first(w);
}

std::string before_lock(const window_core& w, int target) {
  if (is_wanted(w, target)) return request_first(target);
  if (is_locked(w, target)) return unlock_first(target);
  if (is_claimed(w, target)) return fmt::format("another thread is in lock({}); let it return first", target);
  return end_access_first(w);
}

std::string before_lock_range(const window_core& w, const misplaced_call& c) {
  for (const own_range& each : w.ranges.held) {
    const range_entry& held = each.entry;
    if (each.target != c.target || held.offset >= c.offset + c.bytes || c.offset >= held.offset + held.bytes) continue;
    return fmt::format("the range of {} bytes from byte {} on of rank {} is locked; call unlock_range() for it first",
                       held.bytes, held.offset, c.target);
  }
  return before_lock(w, c.target);
}

/// In epochs without locks the call that ends the epoch completes its operations, and flush is not needed.
std::string before_flush(const window_core& w, int target) {
  switch (w.access) {
    case access_epoch::fence: return "a fence epoch is open, whose operations fence() completes; call fence() instead";
    case access_epoch::start:
      return "an epoch of start() is open, whose operations complete() completes; call complete() instead";
    case access_epoch::neighbors:
      return "an epoch of fence_neighbors() is open, whose operations it completes; call fence_neighbors() instead";
    case access_epoch::opening:
    case access_epoch::closing: return end_access_first(w);
    default: break;
  }
  if (target < 0) return "no rank is locked; call lock_all() first";
  return is_wanted(w, target) ? request_first(target)
                              : fmt::format("rank {0} is not locked; call lock({0}) first", target);
}

std::string before_operation(const window_core& w, int target) {
  switch (w.access) {
    case access_epoch::start:
      return fmt::format("the epoch of start() does not include rank {}; add it to the list of start()", target);
    case access_epoch::neighbors:
      return fmt::format("rank {} is not a target of this rank's fence_neighbors(); add it to the list of neighbors()",
                         target);
    case access_epoch::opening:
    case access_epoch::closing: return end_access_first(w);
    default: break;
  }
  if (is_wanted(w, target)) return request_first(target);
  return fmt::format("no epoch is open to rank {0}; call lock({0}) first", target);
}

/// "" if nothing stands in the way any more.
std::string reason_of(const window_core& w, const misplaced_call& c) {
  switch (c.what) {
    case call::fence: return before_fence(w);
    case call::fence_neighbors: return before_neighbors_fence(w);
    case call::lock: return before_lock(w, c.target);
    case call::lock_range: return before_lock_range(w, c);
    case call::lock_all:
    case call::start:
    case call::free: return end_all_first(w);
    case call::post: return before_post(w);
    case call::complete:
      return w.access == access_epoch::closing ? end_access_first(w)
                                               : "no epoch of start() is open; call start() first";
    case call::wait:
    case call::test: return "this rank has not posted; call post() first";
    case call::flush:
    case call::flush_all:
    case call::flush_local:
    case call::flush_local_all: return before_flush(w, c.target);
    default: return before_operation(w, c.target);
  }
}

}  // namespace

std::string wrong_epoch_reason(const window_core& w, const misplaced_call& c) {
  const std::string reason = reason_of(w, c);
  return reason.empty() ? "another thread had an epoch open, which has ended; call again" : reason;
}

}  // namespace rma::detail
