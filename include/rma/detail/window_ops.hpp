// SPDX-License-Identifier: Apache-2.0
/// \file
/// The inlined parts of a window's calls: one range check, then a store, a load or a locked instruction.
/// The library does everything else (`issue`, `..._slow`).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>

#include "rma/detail/atomic_op.hpp"
#include "rma/detail/view.hpp"
#include "rma/layout.hpp"
#include "rma/request.hpp"
#include "rma/team.hpp"

#pragma GCC visibility push(default)

namespace rma::detail {

/// The parameters of a new window.
struct window_plan {
  call kind;
  void* memory;  ///< memory of the user, for create
  std::size_t count;
  std::size_t element_bytes;
  std::size_t element_alignment;
  std::source_location where{};  ///< place of the public call, for errors
};

window_view* make_window(const Team& team, const window_plan& plan, const Hints& hints);
/// As make_window; sets `made` if the status is done.
status try_make_window(const Team& team, const window_plan& plan, const Hints& hints, window_view*& made) noexcept;
status free_window(window_view* window) noexcept;
void drop_window(window_view* window) noexcept;
status attach(window_view& window, void* memory, std::size_t bytes, std::uint64_t& displacement) noexcept;
status detach(window_view& window, void* memory) noexcept;
status revoke(window_view& window) noexcept;
void* local_base(const window_view& window) noexcept;
std::size_t local_bytes(const window_view& window) noexcept;
status part_bytes(window_view& window, int rank, std::size_t& bytes) noexcept;
void* mapped_base(const window_view& window, int rank) noexcept;
Team team_of(const window_view& window, const std::source_location& where);
/// Offset of the members' parts in their segments, and the length of the longest. False if they are not in segments.
bool place_in_segment(const window_view& window, std::uint64_t& offset, std::uint64_t& bytes_max) noexcept;
std::string_view name_of_window(const window_view& window) noexcept;
bool one_sided(window_view& window, call kind, int target) noexcept;
/// room[i] = factor * element i of `from` in `layout`. bad_type if it splits one, bad_size if `room` is too short.
status scale(element type, const void* factor, const void* from, const Layout& layout,
             std::span<std::byte> room) noexcept;
lock_protocol locking(const window_view& window, int target) noexcept;
LockCounts counts_of_locks(const window_view& window) noexcept;
bool has_open_epoch(window_view& window) noexcept;
std::string_view promotion(const window_view& window) noexcept;

/// A type without values: a parameter std::initializer_list<nothing> accepts only `{}`, and wins over all other
/// overloads. `{}` could mean a value (of zeros) or an empty range, so calls that take both delete that overload.
class nothing {
  explicit nothing(int, int) noexcept;
};

inline window_view* no_window() noexcept { return const_cast<window_view*>(&freed_window); }

// ---- arguments of the general path ------------------------------------------------------------------------------

inline operation_args put_args(const void* from, std::uint64_t bytes, int target, std::uint64_t at) noexcept {
  operation_args a;
  a.kind = call::put;
  a.origin = from;
  a.bytes = bytes;
  a.target = target;
  a.displacement = at;
  return a;
}

inline operation_args get_args(void* to, std::uint64_t bytes, int target, std::uint64_t at) noexcept {
  operation_args a;
  a.kind = call::get;
  a.result = to;
  a.bytes = bytes;
  a.target = target;
  a.displacement = at;
  return a;
}

inline operation_args accumulate_args(const void* from, std::uint64_t bytes, element type, operation op, int target,
                                      std::uint64_t at) noexcept {
  operation_args a = put_args(from, bytes, target, at);
  a.kind = call::accumulate;
  a.type = type;
  a.op = op;
  return a;
}

inline operation_args get_accumulate_args(const void* from, void* result, std::uint64_t bytes, element type,
                                          operation op, int target, std::uint64_t at) noexcept {
  operation_args a = accumulate_args(from, bytes, type, op, target, at);
  a.kind = call::get_accumulate;
  a.result = result;
  return a;
}

/// The origin's operand of get_accumulate: none for no_op.
inline const void* operand(operation op, const void* from) noexcept { return op == operation::no_op ? nullptr : from; }

/// The signal as operation_args::signal; numbers beyond int, which no window has, stay out of range.
constexpr int signal_number(unsigned signal) noexcept {
  return signal > static_cast<unsigned>(INT_MAX) ? INT_MAX : static_cast<int>(signal);
}

inline operation_args layout_args(call kind, const void* from, void* to, const Layout& origin_layout, int target,
                                  std::uint64_t at, const Layout& target_layout) noexcept {
  operation_args a;
  a.kind = kind;
  a.origin = from;
  a.result = to;
  a.origin_layout = &origin_layout;
  a.target_layout = &target_layout;
  a.target = target;
  a.displacement = at;
  return a;
}

inline operation_args accumulate_args(const void* from, const Layout& from_layout, element type, operation op,
                                      int target, std::uint64_t at, const Layout& to_layout) noexcept {
  operation_args a = layout_args(call::accumulate, from, nullptr, from_layout, target, at, to_layout);
  a.type = type;
  a.op = op;
  return a;
}

inline operation_args get_accumulate_args(const void* from, const Layout& from_layout, void* result,
                                          const Layout& result_layout, element type, operation op, int target,
                                          std::uint64_t at, const Layout& target_layout) noexcept {
  operation_args a = accumulate_args(operand(op, from), from_layout, type, op, target, at, target_layout);
  a.kind = call::get_accumulate;
  a.result = result;
  a.result_layout = &result_layout;
  return a;
}

inline operation_args fetch_args(element type, operation op, const void* value, void* old, int target,
                                 std::uint64_t at) noexcept {
  operation_args a = get_accumulate_args(value, old, bytes_of(type), type, op, target, at);
  a.kind = call::fetch_and_op;
  return a;
}

inline operation_args swap_args(element type, const void* expected, const void* desired, void* old, int target,
                                std::uint64_t at) noexcept {
  operation_args a = get_accumulate_args(desired, old, bytes_of(type), type, operation::replace, target, at);
  a.kind = call::compare_and_swap;
  a.compare = expected;
  return a;
}

inline status with_request(window_view& window, const operation_args& args, Request& request) noexcept {
  request_node* node = nullptr;
  const status s = issue(window, args, &node);
  request = ok(s) ? Request(node) : Request();
  return s;
}

// ---- the inlined parts: true if done ---------------------------------------------------------------------------

/// Only the first store writes the flag, so that the line is read only afterwards.
inline void mark_stored(target_view& t) noexcept {
  const std::atomic_ref<std::uint8_t> stored(t.stored);
  if (stored.load(std::memory_order_relaxed) == 0) [[unlikely]]
    stored.store(1, std::memory_order_relaxed);
}
inline bool has_stored(target_view& t) noexcept {
  return std::atomic_ref<std::uint8_t>(t.stored).load(std::memory_order_relaxed) != 0;
}

template <class T>
inline bool fast_put(const window_view& window, const T& value, int target, std::uint64_t at) noexcept {
  target_view* const t = view_of(window, target);
  if (t == nullptr || at >= t->limit) [[unlikely]]
    return false;
  store_value(t->base + at * sizeof(T), value);
  mark_stored(*t);
  return true;
}

template <class T>
inline bool fast_get(const window_view& window, T& value, int target, std::uint64_t at) noexcept {
  target_view* const t = view_of(window, target);
  if (t == nullptr || at >= t->limit) [[unlikely]]
    return false;
  value = load_value<T>(t->base + at * sizeof(T));
  return true;
}

/// The address of `count` elements at `at` if inlined calls may access them now, else null; null for no elements.
inline std::byte* fast_range(const window_view& window, std::uint64_t count, std::size_t element_bytes, int target,
                             std::uint64_t at) noexcept {
  target_view* const t = view_of(window, target);
  if (t == nullptr || count - 1 >= t->limit || at > t->limit - count) [[unlikely]]
    return nullptr;
  mark_stored(*t);
  return t->base + at * element_bytes;
}

inline bool try_lock_stripe(const window_view& window, stripe_lock& stripe) noexcept {
  std::uint32_t free = 0;
  return stripe.owner.compare_exchange(free, window.my_stripe_tag);
}

/// Sets `updating` before it reads the bias. The rank that ends the bias does the opposite, and fences for both sides.
inline bool begin_unstriped(const window_view& window, const target_view& t) noexcept {
  window.updating->store(1, std::memory_order_relaxed);
  compiler_fence();
  return t.stripe_bias->load() == stripes_biased;
}
inline void end_unstriped(const window_view& window) noexcept { window.updating->store(0); }

/// Updates one element atomically in the window's mode: calls `locked(element)` for a locked instruction, or
/// `owned(element)` under its stripe.
template <class T, class Locked, class Owned>
[[gnu::always_inline]] inline bool fast_update(const window_view& window, int target, std::uint64_t at, Locked&& locked,
                                               Owned&& owned) noexcept {
  target_view* const t = view_of(window, target);
  if (t == nullptr || at >= t->atomic_limit) [[unlikely]]
    return false;
  std::byte* const element = t->base + at * sizeof(T);
  if constexpr (has_atomics<T>) {
    const auto update_locked = [&]() noexcept {
      explore_point();
      locked(reinterpret_cast<T*>(element));
    };
    if (t->elements != element_path::stripe) {
      if (t->elements == element_path::locked) {
        update_locked();
        return true;
      }
      const bool unstriped = begin_unstriped(window, *t);
      if (unstriped) [[likely]]
        update_locked();
      end_unstriped(window);
      return unstriped;
    }
  }
  prefetch_for_write(element);  // its line comes while the stripe's does
  stripe_lock& stripe = t->stripes[((at * sizeof(T)) >> window.stripe_shift) & window.stripe_mask];
  if (!try_lock_stripe(window, stripe)) [[unlikely]]
    return false;
  owned(element);
  stripe.owner.store(0);
  if constexpr (!has_atomics<T>) mark_stored(*t);  // where others come here, `stored` is set for good
  return true;
}

template <operation Op, class T>
[[gnu::always_inline]] inline bool fast_fetch(const window_view& window, const T& value, T& old, int target,
                                              std::uint64_t at) noexcept {
  return fast_update<T>(
      window, target, at, [&](auto* element) noexcept { old = fetch_apply_atomic<Op>(element, value); },
      [&](std::byte* element) noexcept {
        const T found = load_value<T>(element);
        store_value(element, apply<Op>(found, value));
        old = found;
      });
}

template <operation Op, class T>
[[gnu::always_inline]] inline bool fast_accumulate(const window_view& window, const T& value, int target,
                                                   std::uint64_t at) noexcept {
  return fast_update<T>(
      window, target, at, [&](auto* element) noexcept { apply_atomic<Op>(element, value); },
      [&](std::byte* element) noexcept { store_value(element, apply<Op>(load_value<T>(element), value)); });
}

template <class T>
[[gnu::always_inline]] inline bool fast_swap(const window_view& window, const T& expected, const T& desired, T& old,
                                             int target, std::uint64_t at) noexcept {
  return fast_update<T>(
      window, target, at, [&](auto* element) noexcept { old = compare_swap_atomic(element, expected, desired); },
      [&](std::byte* element) noexcept {
        const T found = load_value<T>(element);
        if (found == expected) store_value(element, desired);
        old = found;
      });
}

/// Takes a shared lock (src/sync/lock_cpu.hpp). While the lock is biased towards readers, this rank's record is the
/// hold, and no two ranks write the same line; else holders are counted in the lock word. If it returns false, the
/// record may claim a hold, which the slow path takes back.
inline bool take_shared(target_view& t) noexcept {
  std::uint64_t found = t.lock->state.load(std::memory_order_relaxed);
  if ((found & lock_counted) == 0) {
    // The store must precede the load of the lock word. A writer does the opposite, and can fence for both sides.
    if (t.plain_record != 0) {
      t.record->store(shared_biased);
      compiler_fence();
    } else {
      t.record->exchange(shared_biased);
    }
    return (t.lock->state.load() & lock_counted) == 0;
  }
  if ((found & lock_writer) != 0 || t.counted_locks >= t.rebias_after) return false;
  ++t.counted_locks;
  constexpr auto hold = static_cast<std::uint8_t>(lock_kind::shared);
  t.record->store(hold | record_unsure);  // before the lock: a survivor must find it
  if (!t.lock->state.compare_exchange(found, found + 1)) return false;
  t.record->store(hold);
  return true;
}

inline bool take_exclusive(const window_view& window, target_view& t) noexcept {
  constexpr auto hold = static_cast<std::uint8_t>(lock_kind::exclusive);
  t.record->store(hold | record_unsure);
  std::uint64_t free = lock_counted;
  if (!t.lock->state.compare_exchange(free, window.my_lock_tag)) return false;
  t.record->store(hold);
  return true;
}

inline bool fast_lock(window_view& window, lock_kind kind, int target) noexcept {
  target_view* const t = view_of(window, target);
  if (t == nullptr || t->lock == nullptr || t->held != 0 || window.may_lock == 0 || !is_kind(kind)) [[unlikely]]
    return false;
  if (!(kind == lock_kind::shared ? take_shared(*t) : take_exclusive(window, *t))) [[unlikely]]
    return false;
  t->held = static_cast<std::uint8_t>(kind);
  t->limit = t->limit_open;
  t->atomic_limit = t->atomic_limit_open;
  t->flushable = 1;
  ++window.locks_open;
  return true;
}

/// Releases a lock. False means that nothing happened: the slow path must release it.
inline bool let_go(window_view& window, target_view& t, lock_kind kind, int target) noexcept {
  std::uint64_t found = window.my_lock_tag;
  std::uint64_t wanted = lock_counted;
  if (kind == lock_kind::shared) {
    if (t.record->load(std::memory_order_relaxed) == shared_biased) {
      // Orders the epoch's accesses before the load, and its plain stores before accesses after the epoch; atomic
      // updates need no fence. A writer that is about to sleep fences for both sides.
      if (!has_stored(t)) {
        t.record->store(0);
        compiler_fence();
      } else {
        t.record->exchange(0);
        t.stored = t.stored_at_rest;
      }
      if ((t.lock->state.load(std::memory_order_relaxed) & lock_waiters) != 0) [[unlikely]]
        wake_writer(window, target);
      return true;
    }
    found = t.lock->state.load(std::memory_order_relaxed) & ~lock_waiters;
    wanted = found - 1;
  }
  t.record->store(static_cast<std::uint8_t>(kind) | record_unsure);
  if (!t.lock->state.compare_exchange(found, wanted)) [[unlikely]]
    return false;
  t.record->store(0);
  return true;
}

/// Stops inlined calls to the target.
inline void close_target(target_view& t) noexcept {
  t.held = 0;
  t.limit = 0;
  t.atomic_limit = 0;
  t.flushable = 0;
}

inline bool fast_unlock(window_view& window, int target) noexcept {
  target_view* const t = view_of(window, target);
  if (t == nullptr || t->flushable == 0 || t->held >= held_by_lock_all) [[unlikely]]
    return false;
  if (!let_go(window, *t, static_cast<lock_kind>(t->held), target)) [[unlikely]]
    return false;
  close_target(*t);
  --window.locks_open;
  return true;
}

/// Adds the target to those that this lock_all epoch holds.
inline void use_target(window_view& window, target_view& t) noexcept {
  t.held = held_by_lock_all;
  t.flushable = window.inline_sync;
  t.limit = t.limit_open;
  t.atomic_limit = t.atomic_limit_open;
  t.used_next = window.used_first;
  window.used_first = &t;
}

/// In a lock_all epoch, takes the target's lock if it is mapped and used for the first time. True if it did.
inline bool open_at_first_use(window_view& window, int target) noexcept {
  target_view* const t = view_of(window, target);
  if (t == nullptr || window.access != access_epoch::lock_all) return false;
  if (t->lock == nullptr || t->held != 0 || window.unchecked != 0 || !take_shared(*t)) return false;
  use_target(window, *t);
  return true;
}

inline bool fast_lock_all(window_view& window) noexcept {
  if (window.may_lock == 0 || window.locks_open != 0) [[unlikely]]
    return false;
  window.access = access_epoch::lock_all;
  window.may_lock = 0;
  window.unchecked = 0;
  return true;
}

/// Releases the mapped targets of a lock_all epoch. If it returns false, the slow path releases those still in the
/// list. It is not inlined, so that the scope of a single lock stays small enough to be inlined.
[[gnu::noinline]] inline bool let_go_of_used(window_view& window) noexcept {
  while (target_view* const t = window.used_first) {
    const int target = static_cast<int>(window.first + static_cast<std::uint32_t>(t - window.targets));
    if (t->flushable == 0 || !let_go(window, *t, lock_kind::shared, target)) [[unlikely]]
      return false;
    close_target(*t);
    window.used_first = t->used_next;
  }
  return true;
}

/// Ends a lock_all epoch that used mapped targets only, or none.
inline bool fast_unlock_all(window_view& window) noexcept {
  if (window.inline_sync == 0 || window.access != access_epoch::lock_all || window.far_open != 0) [[unlikely]]
    return false;
  if (window.used_first != nullptr && !let_go_of_used(window)) [[unlikely]]
    return false;
  window.access = access_epoch::none;
  window.may_lock = 1;
  return true;
}

inline bool fast_flush(const window_view& window, int target) noexcept {
  target_view* const t = view_of(window, target);
  if (t == nullptr || t->flushable == 0) [[unlikely]]
    return false;
  if (t->stored == 0) return true;  // updates by locked instructions were fences themselves
  full_fence();
  t->stored = t->stored_at_rest;
  return true;
}

// ---- inlined and general path, returning statuses ----------------------------------------------------------------

inline status lock(window_view& window, lock_kind kind, int target, assertion promises) noexcept {
  const bool done = takes_lock(promises) && fast_lock(window, kind, target);
  return done ? status::done : lock_slow(window, kind, target, promises);
}
inline status unlock(window_view& window, int target) noexcept {
  return fast_unlock(window, target) ? status::done : unlock_slow(window, target);
}
inline status lock_all(window_view& window, assertion promises) noexcept {
  return takes_lock(promises) && fast_lock_all(window) ? status::done : lock_all_slow(window, promises);
}
inline status unlock_all(window_view& window) noexcept {
  return fast_unlock_all(window) ? status::done : unlock_all_slow(window);
}
inline status flush(window_view& window, int target) noexcept {
  return fast_flush(window, target) ? status::done : flush_slow(window, target);
}

// ---- general paths of the throwing forms: out of line, with arguments in registers, so that the inlined part saves
// ---- no registers and errors cost nothing until they happen -------------------------------------------------------

inline void require(const window_view& window, call what, status s, int target, std::uint64_t at, std::uint64_t count,
                    const std::source_location& where) {
  if (!ok(s)) [[unlikely]]
    raise(window, what, s, target, at, count, where);
}
inline void require(const window_view& window, call what, status s, int target, std::uint64_t at, const Layout& there,
                    const std::source_location& where) {
  if (!ok(s)) [[unlikely]]
    raise_layout(window, what, s, target, at, there, where);
}

template <class T>
[[gnu::noinline]] void put_or_raise(window_view& window, T value, int target, std::uint64_t at,
                                    std::source_location where) {
  if (open_at_first_use(window, target) && fast_put(window, value, target, at)) return;
  require(window, call::put, issue_and_wait(window, put_args(&value, sizeof(T), target, at)), target, at, 1, where);
}
template <class T>
[[gnu::noinline]] T get_or_raise(window_view& window, int target, std::uint64_t at, std::source_location where) {
  T value{};
  if (open_at_first_use(window, target) && fast_get(window, value, target, at)) return value;
  require(window, call::get, issue_and_wait(window, get_args(&value, sizeof(T), target, at)), target, at, 1, where);
  return value;
}
template <class T>
[[gnu::noinline]] void accumulate_or_raise(window_view& window, T value, int target, std::uint64_t at, operation op,
                                           std::source_location where) {
  const auto args = accumulate_args(&value, sizeof(T), element_of<T>, op, target, at);
  require(window, call::accumulate, issue(window, args, nullptr), target, at, 1, where);
}
template <class T>
[[gnu::noinline]] T fetch_or_raise(window_view& window, T value, int target, std::uint64_t at, operation op,
                                   std::source_location where) {
  T old{};
  require(window, call::fetch_and_op, issue_and_wait(window, fetch_args(element_of<T>, op, &value, &old, target, at)),
          target, at, 1, where);
  return old;
}
template <class T>
[[gnu::noinline]] T swap_or_raise(window_view& window, T expected, T desired, int target, std::uint64_t at,
                                  std::source_location where) {
  T old{};
  require(window, call::compare_and_swap,
          issue_and_wait(window, swap_args(element_of<T>, &expected, &desired, &old, target, at)), target, at, 1,
          where);
  return old;
}
void lock_or_raise(window_view& window, lock_kind kind, int target, assertion promises, std::source_location where);
void unlock_or_raise(window_view& window, int target, std::source_location where);
void flush_or_raise(window_view& window, int target, std::source_location where);

}  // namespace rma::detail

#pragma GCC visibility pop
