// SPDX-License-Identifier: Apache-2.0
/// \file
/// Passive target epochs: lock, lock_all, flush and their ends. The inlined halves are in window_ops.hpp.
#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/refusals.hpp"
#include "rma/detail/window_ops.hpp"
#include "sync/epochs.hpp"
#include "sync/lock_agent.hpp"
#include "sync/locking.hpp"
#include "sync/merged_ends.hpp"
#include "xfer/complete.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/remote.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

/// A fence epoch without operations ends where a lock begins, as in MPI.
status leave_fence(window_core& w) noexcept {
  if (w.access == access_epoch::none) return status::done;
  if (w.access != access_epoch::fence || w.used_since_fence()) return status::wrong_epoch;
  w.close_all();
  set_access(w, access_epoch::none);
  w.allow_locks(true);
  return status::done;
}

void close_target(window_core& w, int target) noexcept {
  if (w.is_far(target)) {
    w.far(target).held = 0;
    return;
  }
  target_view& t = w.views[w.index_of(target)];
  t.held = 0;
  t.flushable = 0;
  window_core::close(t);
}

/// The deferral of a lock() or lock_all() with these assertions.
deferral deferral_of(const window_core& w, assertion promises) noexcept {
  return has(promises, assertion::deferrable) ? deferral::call : w.deferrable;
}

/// Releases the lock of a closed epoch; `held` is the kind of its hold.
status give_back(window_core& w, int target, std::uint8_t held) noexcept {
  if (held != held_unchecked) return release_lock(w, target, static_cast<lock_kind>(held));
  full_fence();  // an unlock is a full fence
  return status::done;
}

/// Ends a lock_all epoch that has taken no lock.
void close_unchecked(window_core& w) noexcept {
  w.far_open = 0;
  for (const int target : std::exchange(w.far_used, {})) w.far(target).held = 0;
  for (target_view* t = std::exchange(w.used_first, nullptr); t != nullptr; t = t->used_next) close_target(*t);
  full_fence();
}

int rank_of(const window_core& w, const target_view& t) noexcept {
  return static_cast<int>(w.first) + static_cast<int>(&t - w.targets);
}

/// Completes operations that must be complete before their target's lock is released.
status complete_unfollowed(window_core& w) noexcept {
  status result = status::done;
  for (const int target : w.dirty) {  // all at once, then wait
    if (!release_follows_writes(w, target)) ask_placed(w, target);
  }
  for (std::size_t i = w.dirty.size(); i-- > 0;) {  // complete targets leave the list
    const int target = w.dirty[i];
    if (release_follows_writes(w, target)) continue;
    if (const status s = complete_target(w, target); s != status::done) result = s;
  }
  return result;
}

status let_go_of_far(window_core& w, int target) noexcept {
  const bool follows = release_follows_writes(w, target);
  const status s = finish_release(w, target);
  const status completed = follows && s == status::done ? complete_followed(w, target) : complete_target(w, target);
  return completed != status::done ? completed : s;
}

/// Ends a lock_all epoch. One memory fence serves all mapped targets.
status let_go_of_all(window_core& w) noexcept {
  status result = status::done;
  if (w.unchecked != 0) {
    close_unchecked(w);
    return result;
  }
  w.far_open = 0;
  const std::vector<int> far_used = std::exchange(w.far_used, {});
  if (!far_used.empty()) full_fence();  // orders the epoch's stores before the adapter's atomic
  for (const int target : far_used) {
    w.far(target).held = 0;
    start_release(w, target);
  }
  for (const int target : far_used) {
    if (const status s = let_go_of_far(w, target); s != status::done) result = s;
  }
  target_view* const first = std::exchange(w.used_first, nullptr);
  for (target_view* t = first; t != nullptr; t = t->used_next) {
    close_target(*t);
    if (t->record->load(std::memory_order_relaxed) == shared_biased) {
      t->record->store(0);
    } else if (const status s = release_lock(w, rank_of(w, *t), lock_kind::shared); s != status::done) {
      result = s;
    }
  }
  full_fence();  // orders the epoch's accesses before the test for waiters
  for (target_view* t = first; t != nullptr; t = t->used_next) {
    if (t->lock != nullptr && (t->lock->state.load(std::memory_order_relaxed) & lock_waiters) != 0) [[unlikely]]
      wake_writer(w, rank_of(w, *t));
  }
  const status all = release_all(w);
  return result != status::done ? result : all;
}

status send_to_one(window_core& w, int target) noexcept {
  const auto& epoch = w.state_of(target).epoch;
  return epoch == nullptr || epoch->count == 0 ? status::done : send_deferred(w, target);
}

/// Notes an epoch with a flush, which is not suited to be sent as a whole.
void keep_apart(window_core& w, int target) noexcept {
  if (w.defers_far) w.state_of(target).epoch_bytes += deferral_bytes_max + 1;
}

status flush_one(window_core& w, int target) noexcept {
  if (const status s = send_waiting(w, target); s != status::done) return s;
  const status s = complete_target(w, target);
  keep_apart(w, target);
  full_fence();
  target_view* const t = w.view_at(target);
  if (t != nullptr && t->held != 0) t->flushable = w.inline_sync;
  return s;
}

// The handler protocol copies outgoing data, so that only results must be waited for; they arrive with the
// acknowledgement that a flush waits for. Placement at the target is not requested.
status flush_one_locally(window_core& w, int target) noexcept {
  const status s = complete_locally(w, target);
  if (target_view* const t = w.view_at(target); t != nullptr && t->held != 0) t->flushable = w.inline_sync;
  return s;
}

bool open_towards(const window_core& w, int target) noexcept {
  return w.access == access_epoch::lock_all || w.held(target) != 0;
}

}  // namespace

bool unlock_with_aggregates(window_core& w, int target, std::uint8_t held, status& failed) noexcept {
  const bool by_message = held != held_unchecked && w.block_of(target) == nullptr &&
                          is_released_by_message(w, target, static_cast<lock_kind>(held));
  if (!by_message || !has_aggregates(w, target)) {
    issue_scheduled(w, target);
    return false;
  }
  issue_apart(w, target);
  failed = complete_issued(w, target);
  if (failed != status::done || !has_aggregates(w, target)) {
    issue_scheduled(w, target);
    return false;
  }
  const lock_header header = leave_message(w, target);
  w.state_of(target).path = lock_path::cpu;  // the path of inlined locks, which do not set it
  return issue_with_rider(w, target, {message::lock, std::as_bytes(std::span(&header, 1))});
}

bool is_wanted(const window_core& w, int target) noexcept {
  return std::find(w.wanted.begin(), w.wanted.end(), target) != w.wanted.end();
}

// Sends deferred epochs. One without operations has nothing to send.
status send_waiting(window_core& w, int target) noexcept {
  if (w.deferred.empty()) return status::done;
  if (target >= 0) return send_to_one(w, target);
  status result = status::done;
  for (const int t : std::vector<int>(w.deferred)) {
    if (const status s = send_to_one(w, t); s != status::done) result = s;
  }
  return result;
}

status lock_slow(window_view& view, lock_kind kind, int target, assertion promises) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::lock, target);
  if (target < 0 || target >= w.size()) return status::bad_rank;
  if (!is_kind(kind) || !is_assertion(promises)) return status::bad_argument;
  if (const status s = leave_fence(w); s != status::done) return s;
  if (open_towards(w, target) || is_claimed(w, target) || is_wanted(w, target)) return status::wrong_epoch;
  const lock_in_transition mine(w, target);
  const bool checked = !has(promises, assertion::no_check);
  ++w.locks_open;  // before other threads are let in
  const status s = checked ? acquire_lock(w, target, kind, deferral_of(w, promises)) : go_unchecked(w, target);
  if (s != status::done) {
    --w.locks_open;
    return s;
  }
  RMA_ASSERT(w.held(target) == 0 && w.locks_open != 0);
  const std::uint8_t held = checked ? static_cast<std::uint8_t>(kind) : held_unchecked;
  if (w.is_far(target)) {
    w.far(target).held = held;
    return status::done;
  }
  target_view& t = w.views[w.index_of(target)];
  t.held = held;
  t.flushable = w.inline_sync;
  window_core::open(t);
  return status::done;
}

status unlock_slow(window_view& view, int target) noexcept {
  if (const status s = closable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::unlock, target);
  if (target < 0 || target >= w.size()) return status::bad_rank;
  if (const status s = await_claim(w, target); s != status::done) return s;  // another thread may be acquiring it now
  const std::uint8_t held = w.held(target);
  if (held == 0 || held == held_by_lock_all) return status::not_locked;
  status failed = status::done;
  const bool notified = unlock_with_aggregates(w, target, held, failed);
  const status closed = close_lock(w, target, held, notified);
  return failed != status::done ? failed : closed;
}

status close_lock(window_core& w, int target, std::uint8_t held, bool notified) noexcept {
  RMA_ASSERT(held != 0 && held != held_by_lock_all && w.locks_open != 0);
  target_state& state = w.state_of(target);
  state.experience.writes = state.dirty && only_writes(w, target);
  const bool follows = release_follows_writes(w, target);
  status flushed = follows ? status::done : complete_target(w, target);
  const lock_in_transition mine(w, target);
  close_target(w, target);
  --w.locks_open;
  const status released = notified ? status::done : give_back(w, target, held);
  if (follows) flushed = released == status::done ? complete_followed(w, target) : complete_target(w, target);
  w.ctx->poll_occasionally();  // not before: another rank may wait for the lock
  return flushed != status::done ? flushed : released;
}

status lock_all_slow(window_view& view, assertion promises) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::lock_all);
  if (!is_assertion(promises)) return status::bad_argument;
  if (w.locks_open != 0 || w.access == access_epoch::lock_all) return status::wrong_epoch;
  if (const status s = leave_fence(w); s != status::done) return s;
  const bool checked = !has(promises, assertion::no_check);
  if (const status s = checked ? acquire_all(w) : status::done; s != status::done) return s;
  if (w.locks_open != 0 || w.access != access_epoch::none) {  // another thread has opened an epoch meanwhile
    if (checked) (void)release_all(w);
    return status::wrong_epoch;
  }
  RMA_ASSERT(w.far_used.empty() && w.used_first == nullptr);
  set_access(w, access_epoch::lock_all);
  w.unchecked = checked ? 0 : 1;
  w.far_open = w.unchecked;  // prevents an inlined unlock_all
  w.all_deferrable = deferral_of(w, promises);
  w.allow_locks(false);
  return status::done;
}

status touch(window_core& w, int target) noexcept {
  if (w.held(target) != 0) return status::done;
  if (const status s = await_claim(w, target); s != status::done) return s;
  if (w.held(target) != 0) return status::done;  // another thread has used it first
  const lock_in_transition mine(w, target);
  const status s =
      w.unchecked != 0 ? go_unchecked(w, target) : acquire_lock(w, target, lock_kind::shared, w.all_deferrable);
  if (s != status::done) return s;
  if (w.is_far(target)) {
    w.far(target).held = held_by_lock_all;
    w.far_used.push_back(target);
    w.far_open = 1;
  } else {
    use_target(w, w.views[w.index_of(target)]);
  }
  return status::done;
}

namespace {

/// Releases the locks of other nodes' ranks whose releases are sent with the operations held for them: unlock_all need
/// not release these.
status unlock_far_with_aggregates(window_core& w) noexcept {
  if (w.unchecked != 0 || !w.schedule.on()) return status::done;
  status result = status::done;
  const auto held = static_cast<std::uint8_t>(lock_kind::shared);
  for (const int target : w.far_used) {
    issue_all_but_aggregates(w, target);
    ask_placed(w, target);  // all at once
  }
  std::erase_if(w.far_used, [&](int target) {
    status failed = status::done;
    if (!has_aggregates(w, target) || !unlock_with_aggregates(w, target, held, failed)) {
      if (failed != status::done) result = failed;
      return false;
    }
    w.far(target).held = 0;
    return true;
  });
  return result;
}

}  // namespace

status unlock_all_slow(window_view& view) noexcept {
  if (const status s = closable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::unlock_all);
  if (w.access != access_epoch::lock_all) return status::not_locked;
  status result = unlock_far_with_aggregates(w);
  issue_scheduled(w, -1);
  if (!w.dirty.empty()) {
    if (const status s = complete_unfollowed(w); s != status::done) result = s;
  }
  const status released = let_go_of_all(w);
  if (const status followed = complete_all(w); result == status::done) result = followed;
  if (result == status::done) result = released;
  set_access(w, access_epoch::none);
  w.allow_locks(true);
  w.ctx->poll_occasionally();
  return result;
}

status flush_slow(window_view& view, int target) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::flush, target);
  if (complete_plain(w, target)) {
    keep_apart(w, target);
    full_fence();
    return status::done;
  }
  if (target < 0 || target >= w.size()) return status::bad_rank;
  w.ctx->poll_occasionally();
  return open_towards(w, target) ? flush_one(w, target) : status::wrong_epoch;
}

status flush_all(window_view& view) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::flush_all);
  if (w.access != access_epoch::lock_all && w.locks_open == 0) return status::wrong_epoch;
  w.ctx->poll_occasionally();
  status result = send_waiting(w, -1);
  issue_scheduled(w, -1);
  for (const int target : w.dirty) ask_placed(w, target);  // all at once, then wait
  while (!w.dirty.empty()) {
    const status s = flush_one(w, w.dirty.back());
    if (s != status::done) result = s;
  }
  full_fence();
  return result;
}

status flush_local(window_view& view, int target) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::flush_local, target);
  if (target < 0 || target >= w.size()) return status::bad_rank;
  if (!open_towards(w, target)) return status::wrong_epoch;
  w.ctx->poll_occasionally();
  if (const status s = send_waiting(w, target); s != status::done) return s;
  return flush_one_locally(w, target);
}

status flush_local_all(window_view& view) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::flush_local_all);
  if (w.access != access_epoch::lock_all && w.locks_open == 0) return status::wrong_epoch;
  w.ctx->poll_occasionally();
  status result = send_waiting(w, -1);
  for (const int target : std::vector<int>(w.dirty)) {
    if (const status s = flush_one_locally(w, target); s != status::done) result = s;
  }
  return result;
}

status sync(window_view& view) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  const entry_scope in(core_of(view), call::sync);
  core_of(view).ctx->poll_occasionally();
  full_fence();
  return status::done;
}

namespace {

/// False if the window's own unlock has closed it.
bool is_epoch_open(const window_core& w, int target) noexcept {
  return target < 0 ? w.access == access_epoch::lock_all : w.held(target) != 0;
}

}  // namespace

void abandon_epoch(window_view& view, int target) noexcept {
  if (is_freed(view)) return;
  window_core& w = core_of(view);
  const window_guard in(w);
  if (!is_epoch_open(w, target)) return;
  if (!w.failed()) w.left_by_exception = std::uncaught_exceptions() != 0;
  w.blocked_by.fetch_or(window_core::window_failed, std::memory_order_relaxed);
  w.allow_locks(false);
  w.my_block().failed.store(1);
  leave_results(w, target);
  if (target >= 0) {
    const std::uint8_t held = w.held(target);
    close_target(w, target);
    --w.locks_open;
    (void)give_back(w, target, held);
    return;
  }
  (void)let_go_of_all(w);
  set_access(w, access_epoch::none);
}

// Pending operations are completed before the lock is released: others see the epoch's operations after the release or
// never.
void leave_epoch(window_view& view, int target) noexcept {
  if (!is_left_by_refusal()) return abandon_epoch(view, target);
  if (is_freed(view)) return;
  window_core& w = core_of(view);
  {
    const window_guard in(w);
    if (!is_epoch_open(w, target)) return;
    leave_results(w, target);
  }
  const status s = target < 0 ? unlock_all_slow(view) : unlock_slow(view, target);
  if (s != status::done) abandon_epoch(view, target);
}

}  // namespace rma::detail
