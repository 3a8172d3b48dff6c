// SPDX-License-Identifier: Apache-2.0
/// \file
/// The inlined calls of a window read these, and fall back to these functions.
///
/// The rule: an operation is inlined if its range lies below the target's `limit`. Whatever needs more than a
/// store or a locked instruction (closed epoch, other node, forced protocol, trace) keeps the limit at 0, so
/// that one comparison guards everything, misuse included. Where several threads share a window
/// (thread_level::multiple), `mapped` and `inline_sync` stay 0: an inlined call reads nothing that a thread may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

#include "rma/detail/copy.hpp"
#include "rma/detail/word.hpp"
#include "rma/epoch.hpp"
#include "rma/error.hpp"
#include "rma/hints.hpp"
#include "rma/operation.hpp"

#pragma GCC visibility push(default)

namespace rma {
class Layout;
}

namespace rma::detail {

struct request_node;

/// A stripe's lock: 0 free, else 1 + holder. On a line of its own.
struct alignas(64) stripe_lock {
  word32 owner;
};

/// Whether single elements of a striped window need their stripe, for one rank's part: not until somebody updates it in
/// bulk (docs/decisions/0022-biased-stripes.md). Never goes back.
inline constexpr std::uint32_t stripes_needed = 0;
inline constexpr std::uint32_t stripes_biased = 1;  ///< no: a locked instruction each
inline constexpr std::uint32_t stripes_ending = 2;  ///< both: who saw `biased` may still be about to do without

/// The lock of one rank's part of a window. See src/sync/lock_cpu.hpp for its bits.
struct alignas(64) cpu_lock {
  word64 state;
  word32 recoveries;  ///< holds of dead ranks that were given back
  word32 passes;      ///< how often it was given back while somebody slept for it, and not handed over
};
inline constexpr std::uint64_t lock_readers = 0x3'ffff;  ///< how many hold it shared, counted here
inline constexpr unsigned lock_heir_shift = 18;
inline constexpr std::uint64_t lock_heir_max = 0xfff;
/// Whose turn is next, of the node's ranks: 1 + its index, 0 nobody.
inline constexpr std::uint64_t lock_heir = lock_heir_max << lock_heir_shift;
inline constexpr std::uint64_t lock_counted = std::uint64_t{1} << 30;  ///< shared holders must be counted here
inline constexpr std::uint64_t lock_waiters = std::uint64_t{1} << 31;  ///< somebody sleeps for it
inline constexpr std::uint64_t lock_writer = std::uint64_t{1} << 63;   ///< held exclusively, by the rank in bits 32..59
inline constexpr std::uint64_t lock_proxy = std::uint64_t{1} << 62;    ///< by the target's lock manager for that rank
inline constexpr std::uint64_t lock_away = std::uint64_t{1} << 61;     ///< the lock is elsewhere: see lock_hybrid.hpp
inline constexpr std::uint64_t lock_migrating = std::uint64_t{1} << 60;
/// Exclusively held by world rank `holder`.
constexpr std::uint64_t lock_tag(std::uint32_t holder) noexcept {
  return lock_writer | lock_counted | (std::uint64_t{holder} << 32);
}

/// False for a number that is none of the enumeration. Costs nothing where the kind is known to the compiler.
constexpr bool is_kind(lock_kind kind) noexcept { return kind == lock_kind::shared || kind == lock_kind::exclusive; }

/// False for what the inlined calls leave to the others: no_check, and what is no assertion.
constexpr bool takes_lock(assertion promises) noexcept {
  return is_assertion(promises) && !has(promises, assertion::no_check);
}

/// A rank's record says which lock it takes: a lock_kind, for the survivors of its death. It is marked `unsure`
/// while the lock word may or may not say the same; marked `biased` if the record itself is the hold.
inline constexpr std::uint8_t record_unsure = 0x10;
inline constexpr std::uint8_t record_biased = 0x20;
inline constexpr std::uint8_t shared_biased = static_cast<std::uint8_t>(lock_kind::shared) | record_biased;
inline constexpr std::uint8_t held_by_lock_all = 4;
inline constexpr std::uint8_t held_unchecked = 5;  ///< by lock() with no_check: there is nothing to give back

enum class access_epoch : std::uint8_t {
  none,
  fence,
  start,
  lock_all,
  neighbors,  ///< of a fence among neighbors
  opening,    ///< by a start that waits for its targets
  closing,    ///< by a request that has not ended
};

/// How a single element is updated by an inlined call.
enum class element_path : std::uint8_t {
  stripe,  ///< under its stripe
  locked,  ///< by a locked instruction
  biased,  ///< the same while its target's stripes are biased; they were when this rank looked last
};

/// One target whose memory is mapped here.
struct alignas(64) target_view {
  std::byte* base = nullptr;       ///< its part of the window, in this process
  std::uint64_t limit = 0;         ///< elements that the inline path may touch now
  std::uint64_t atomic_limit = 0;  ///< the same for atomic updates
  std::uint64_t limit_open = 0;    ///< what `limit` is while an epoch is open
  std::uint64_t atomic_limit_open = 0;
  stripe_lock* stripes = nullptr;        ///< its stripes
  word32* stripe_bias = nullptr;         ///< stripes_needed, _biased or _ending
  cpu_lock* lock = nullptr;              ///< its lock; null: slow path
  word<std::uint8_t>* record = nullptr;  ///< what I hold there, for survivors to read if I die
  std::uint8_t held = 0;                 ///< lock_kind that this rank holds by lock(), held_..., or 0 none
  std::uint8_t plain_record = 0;         ///< writers fence for readers: a reader's record needs only a store
  std::uint8_t stored = 1;               ///< plain stores went there: a flush or unlock has to be a fence
  std::uint8_t stored_at_rest = 1;       ///< what `stored` is after a fence; 1: not all that stores leaves a mark
  element_path elements = element_path::stripe;  ///< how single elements up to 8 bytes are updated
  std::uint8_t flushable = 0;                    ///< a passive epoch is open and the engine has nothing under way
  std::uint16_t counted_locks = 0;   ///< shared locks that were counted in the lock word since its bias changed
  std::uint16_t rebias_after = 16;   ///< so many of them, and the lock is biased towards readers again
  target_view* used_next = nullptr;  ///< see window_view::used_first
};

/// log2 of the bytes that one stripe guards, where Hints::accumulate_granularity gives no other number.
inline constexpr unsigned stripe_shift_unless_hinted = 13;

/// The part of a window that the inlined calls see. Fixed at creation, but for limits and epoch state.
struct window_view {
  target_view* targets = nullptr;  ///< mapped targets first, first+1, ... first+mapped-1
  std::uint32_t first = 0;
  std::uint32_t mapped = 0;         ///< 0: no call is inlined
  std::uint64_t my_lock_tag = 0;    ///< value of a lock that this rank holds exclusively
  std::uint32_t my_stripe_tag = 0;  ///< value of a stripe that this rank holds
  std::uint32_t stripe_mask = 0;
  word32* updating = nullptr;  ///< 1 while this rank updates an element without its stripe
  accumulate_mode mode = accumulate_mode::handler;
  std::uint8_t stripe_shift = stripe_shift_unless_hinted;  ///< log2 of the bytes that one stripe guards
  std::uint8_t may_lock = 0;                               ///< no epoch other than lock() is open, and inline_sync
  std::uint8_t inline_sync = 0;  ///< locks and flushes may be inlined: they are in memory, and nothing is traced
  std::uint8_t far_open = 0;     ///< this lock_all epoch has used a target that is not in targets
  std::uint8_t unchecked = 0;    ///< the last lock_all was called with no_check: no target's lock is taken
  access_epoch access = access_epoch::none;
  copy_turn turn;                     ///< of long copies
  std::uint32_t locks_open = 0;       ///< targets locked by lock()
  target_view* used_first = nullptr;  ///< those that this lock_all epoch has locked, linked by used_next
};

/// Public calls by number, for messages.
enum class call : std::uint8_t {
  put,
  get,
  accumulate,
  get_accumulate,
  fetch_and_op,
  compare_and_swap,
  fence,
  post,
  start,
  complete,
  wait,
  test,
  lock,
  unlock,
  lock_all,
  unlock_all,
  flush,
  flush_all,
  flush_local,
  flush_local_all,
  sync,
  wait_signal,
  test_signal,
  wait_until,
  test_until,
  free,
  attach,
  detach,
  allocate,
  create,
  allocate_shared,
  create_dynamic,
  pointer_to,
  size,
  lock_range,
  unlock_range,
  neighbors,
  fence_neighbors,
  put_signal,
  get_signal,
  accumulate_signal,
  revoke,
};

/// One operation as the engine sees it. Layouts are null where the data are contiguous.
struct operation_args {
  call kind = call::put;
  operation op = operation::replace;
  element type = element::u8;
  int target = 0;
  std::uint64_t displacement = 0;         ///< in the window's units
  const void* origin = nullptr;           ///< data that goes out
  void* result = nullptr;                 ///< where data that comes in goes
  const void* compare = nullptr;          ///< compare_and_swap: what must be there
  std::uint64_t bytes = 0;                ///< of contiguous data
  const Layout* origin_layout = nullptr;  ///< shape of `origin` (of `result` for a get)
  const Layout* result_layout = nullptr;  ///< shape of `result` of get_accumulate
  const Layout* target_layout = nullptr;  ///< shape at the target, from the displacement on
  int signal = -1;                        ///< raised at the target when the data are there
  bool by_value = false;                  ///< `origin` and `result` are gone when the call returns
};

/// The general path: checks, chooses a protocol, starts it. `done` or `posted` on success. With `request`, it
/// gets a node if and only if the operation has not ended.
status issue(window_view& window, const operation_args& args, request_node** request) noexcept;
/// issue and wait for the result at the origin.
status issue_and_wait(window_view& window, operation_args&& args) noexcept;
/// Updates of one element of a window of bytes, of a type and operator known at run time. False: nothing was done, the
/// general path must do it. `old` may be null.
bool fetch_one(const window_view& window, element type, operation op, const void* value, void* old, int target,
               std::uint64_t at) noexcept;
bool swap_one(const window_view& window, element type, const void* expected, const void* desired, void* old, int target,
              std::uint64_t at) noexcept;

status fence(window_view& window, assertion promises) noexcept;
status post(window_view& window, const int* group, std::size_t count, assertion promises) noexcept;
status start(window_view& window, const int* group, std::size_t count, assertion promises) noexcept;
status complete(window_view& window) noexcept;
status wait(window_view& window) noexcept;
status test(window_view& window) noexcept;
status lock_slow(window_view& window, lock_kind kind, int target, assertion promises) noexcept;
status unlock_slow(window_view& window, int target) noexcept;
status lock_all_slow(window_view& window, assertion promises) noexcept;
status unlock_all_slow(window_view& window) noexcept;
/// A shared holder let go and saw that somebody sleeps for the lock.
[[gnu::cold]] void wake_writer(window_view& window, int target) noexcept;
status flush_slow(window_view& window, int target) noexcept;
status flush_all(window_view& window) noexcept;
status flush_local(window_view& window, int target) noexcept;
status flush_local_all(window_view& window) noexcept;
status sync(window_view& window) noexcept;
status wait_signal(window_view& window, unsigned signal, std::uint64_t count, int from) noexcept;
status test_signal(window_view& window, unsigned signal, std::uint64_t count) noexcept;
/// `which`: the place in the list of the one that was taken, or of one that the window does not have.
status wait_any_signal(window_view& window, std::span<const unsigned> signals, std::uint64_t count, int from,
                       std::size_t& which) noexcept;
status test_any_signal(window_view& window, std::span<const unsigned> signals, std::uint64_t count,
                       std::size_t& which) noexcept;
std::uint64_t signal_value(const window_view& window, unsigned signal) noexcept;
/// A scope left by an exception: closes what is open towards `target` (-1: lock_all) and marks the window failed. Waits
/// for nothing but reads that a network has begun.
void abandon_epoch(window_view& window, int target) noexcept;
/// Ends an epoch that could not be closed, or whose scope an exception leaves: abandons it, unless that is the Error of
/// a refused call.
void leave_epoch(window_view& window, int target) noexcept;

/// Makes the message and throws. `count` is of elements, or of bytes for calls on ranges and words, whose displacement
/// is in bytes if they lock. `where` is the public call's caller.
[[noreturn, gnu::cold, gnu::noinline]] void raise(const window_view& window, call what, status code, int target,
                                                  std::uint64_t displacement, std::uint64_t count,
                                                  const std::source_location& where);
/// The same of an operation whose data lie at the target as `there` says.
[[noreturn, gnu::cold, gnu::noinline]] void raise_layout(const window_view& window, call what, status code, int target,
                                                         std::uint64_t displacement, const Layout& there,
                                                         const std::source_location& where);

/// A freed or moved-from window points to this: no targets, so that every call goes to the slow path and fails.
extern const window_view freed_window;

inline target_view* view_of(const window_view& window, int target) noexcept {
  const std::uint32_t index = static_cast<std::uint32_t>(target) - window.first;
  if (index >= window.mapped) return nullptr;
  target_view* const found = window.targets + index;
  if (found == nullptr) __builtin_unreachable();  // saves the caller's comparison a second branch
  return found;
}

}  // namespace rma::detail

#pragma GCC visibility pop
