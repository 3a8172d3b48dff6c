// SPDX-License-Identifier: Apache-2.0
/// \file
/// The table of locks: what lock(), ilock, unlock and the trace do by which. A window's row is chosen when it is made
/// (choose_lock) and kept in window_core::lock_row.
#pragma once

#include <memory>
#include <string_view>

#include "sync/lock_machine.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

/// The lock manager of a window's targets has one of these duties.
enum class manager_duty : std::uint8_t {
  none,
  is_the_lock,    ///< for all ranks alike
  takes_for_far,  ///< takes the CPU lock for ranks that do not map it
  migrates,       ///< the same, and sends the lock to the network
  counts_readers  ///< holds the network word for all of them
};

struct lock_protocol_row {
  /// As traces say it.
  std::string_view name;
  /// lock(): begins, then waits. By a deferral other than none it may be left for later.
  status (*lock)(window_core& w, int target, lock_kind kind, deferral by) noexcept;
  /// ilock: begins. Null, and `failed` says why, if it cannot.
  std::unique_ptr<lock_machine> (*begin)(window_core& w, int target, lock_kind kind, status& failed);
  /// Ends a hold, after what was stored under it.
  status (*release)(window_core& w, int target, lock_kind kind) noexcept;
  /// This rank's hold of that kind is ended by memory, an atomic, or a message to the lock manager.
  lock_path (*path)(const window_core& w, int target, lock_kind kind) noexcept;
  /// A lock_all epoch is one lock, and its end; null: each target is locked at its first use.
  status (*lock_all)(window_core& w) noexcept = nullptr;
  status (*unlock_all)(window_core& w) noexcept = nullptr;
  manager_duty duty = manager_duty::none;
  bool needs_atomics = false;           ///< the fabric must have atomics
  bool release_follows_writes = false;  ///< an atomic that ends a hold may be posted behind the epoch's writes
  /// The names in a trace by the way that the hold was got (lock_path), if it has several.
  const std::string_view* name_by_path = nullptr;
};

/// The row of a window with this lock: the table is in lock_protocol.cpp.
const lock_protocol_row& row_of(lock_protocol locks, lock_scheme scheme, bool defers_far) noexcept;

}  // namespace rma::detail
