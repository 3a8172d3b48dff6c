// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which lock a window has, and the way to it.
#pragma once

#include <memory>
#include <string>

#include "sync/lock_machine.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

/// The lock that the hint or RMA_LOCK asks for.
lock_protocol wished_lock(const Hints& hints, const settings& config) noexcept;
/// Sets window_core::locks and why. `not_supported` if the window cannot have what was asked for; `why_not` says why.
/// The same on every rank. Before the targets are attached.
status choose_lock(window_core& w, std::string& why_not);

/// Takes a deferred lock now and sends what has waited for the end of the epoch.
status send_deferred(window_core& w, int target) noexcept;
/// The same if anything waits; a negative target means all.
status send_waiting(window_core& w, int target) noexcept;
/// Another rank has said that a member died: returns when this rank has heard of it as well, or after a while.
void await_news_of_death(window_core& w) noexcept;
/// lock_all: takes the target's shared lock at its first use.
status touch(window_core& w, int target) noexcept;
/// lock_all: that use was refused. An inlined call may have tried to take the lock, too late.
void take_back_first_use(window_core& w, int target) noexcept;

lock_home wished_home(const window_core& w) noexcept;

/// Letting go of the lock that this rank holds there is a message to the target's lock manager, and no more.
bool is_released_by_message(window_core& w, int target, lock_kind kind) noexcept;
/// The target's CPU lock can be taken by this rank itself.
bool maps_lock(const window_core& w, int target) noexcept;
/// The beginning of a lock_all epoch, and its end, where that locks anything by itself: each target is locked at its
/// first use otherwise.
status acquire_all(window_core& w) noexcept;
status release_all(window_core& w) noexcept;
/// A request of this rank asks for the target's lock.
bool is_wanted(const window_core& w, int target) noexcept;
/// With `by`, the lock may be left for later by the locks that can do so.
status acquire_lock(window_core& w, int target, lock_kind kind, deferral by) noexcept;
/// ilock: begins. Null, and `failed` says why, if it cannot.
std::unique_ptr<lock_machine> begin_lock(window_core& w, int target, lock_kind kind, status& failed);
/// no_check: there is nothing to take.
status go_unchecked(window_core& w, int target) noexcept;
status release_lock(window_core& w, int target, lock_kind kind) noexcept;
/// The lock is let go of by an atomic of the fabric that reaches the target's memory after what this epoch has written
/// there: release_lock need not wait for that.
bool release_follows_writes(window_core& w, int target) noexcept;
/// release_lock of a shared lock on another node in two halves: those of several targets are under way at once.
void start_release(window_core& w, int target) noexcept;
status finish_release(window_core& w, int target) noexcept;

}  // namespace rma::detail
