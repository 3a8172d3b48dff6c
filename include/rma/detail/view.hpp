// SPDX-License-Identifier: Apache-2.0
/// \file
/// The data that the inlined calls of a window read, and the functions to which they fall back.
///
/// The rule: an operation is inlined if its range lies below the target's `limit`. Whatever needs more than a
/// store or a locked instruction (closed epoch, other node, forced protocol, trace) keeps the limit at 0, so
/// that one comparison covers all cases, including misuse. Where several threads share a window
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

/// A stripe's lock: 0 if it is free, else 1 + its holder. It has a cache line of its own.
struct alignas(64) stripe_lock {
  word32 owner;
};

/// State of one rank's part of a striped window: updates of single elements need their stripe only after the first bulk
/// update of the part (docs/decisions/0022-biased-stripes.md). `needed` is final.
inline constexpr std::uint32_t stripes_needed = 0;
inline constexpr std::uint32_t stripes_biased = 1;  ///< not needed: one locked instruction per element
inline constexpr std::uint32_t stripes_ending = 2;  ///< changing: a rank that saw `biased` may still use no stripe

/// The lock of one rank's part of a window. See src/sync/lock_cpu.hpp for its bits.
struct alignas(64) cpu_lock {
  word64 state;
  word32 recoveries;  ///< number of holds of dead ranks that were released
  word32 passes;      ///< number of releases without a handover while a rank slept
};
inline constexpr std::uint64_t lock_readers = 0x3'ffff;  ///< number of counted shared holders
inline constexpr unsigned lock_heir_shift = 18;
inline constexpr std::uint64_t lock_heir_max = 0xfff;
/// The rank of the node that gets the lock next: 1 + its index, 0 for none.
inline constexpr std::uint64_t lock_heir = lock_heir_max << lock_heir_shift;
inline constexpr std::uint64_t lock_counted = std::uint64_t{1} << 30;  ///< shared holders must be counted in the word
inline constexpr std::uint64_t lock_waiters = std::uint64_t{1} << 31;  ///< a rank sleeps until its release
inline constexpr std::uint64_t lock_writer = std::uint64_t{1} << 63;   ///< held exclusively, by the rank in bits 32..59
inline constexpr std::uint64_t lock_proxy = std::uint64_t{1} << 62;    ///< held by the target's lock manager for it
inline constexpr std::uint64_t lock_away = std::uint64_t{1} << 61;     ///< the lock's home is not here: lock_hybrid.hpp
inline constexpr std::uint64_t lock_migrating = std::uint64_t{1} << 60;
/// The word of a lock that world rank `holder` holds exclusively.
constexpr std::uint64_t lock_tag(std::uint32_t holder) noexcept {
  return lock_writer | lock_counted | (std::uint64_t{holder} << 32);
}

/// False for an invalid kind. It costs nothing where the compiler knows the kind.
constexpr bool is_kind(lock_kind kind) noexcept { return kind == lock_kind::shared || kind == lock_kind::exclusive; }

/// False for the assertions that inlined calls leave to the library: no_check and invalid ones.
constexpr bool takes_lock(assertion promises) noexcept {
  return is_assertion(promises) && !has(promises, assertion::no_check);
}

/// A rank's record names the kind of lock that it acquires, for the survivors of its death: a lock_kind. The mark
/// `unsure` means that the lock word may or may not agree; `biased` means that the record itself is the hold.
inline constexpr std::uint8_t record_unsure = 0x10;
inline constexpr std::uint8_t record_biased = 0x20;
inline constexpr std::uint8_t shared_biased = static_cast<std::uint8_t>(lock_kind::shared) | record_biased;
inline constexpr std::uint8_t held_by_lock_all = 4;
inline constexpr std::uint8_t held_unchecked = 5;  ///< by lock() with no_check: there is nothing to release

enum class access_epoch : std::uint8_t {
  none,
  fence,
  start,
  lock_all,
  neighbors,  ///< an epoch of a fence among neighbors
  opening,    ///< a start waits for its targets
  closing,    ///< a request that closes it is pending
};

/// The way in which an inlined call updates a single element.
enum class element_path : std::uint8_t {
  stripe,  ///< under its stripe
  locked,  ///< by a locked instruction
  biased,  ///< by a locked instruction while its target's stripes are biased, as they were at this rank's last look
};

/// One target whose memory is mapped here.
struct alignas(64) target_view {
  std::byte* base = nullptr;       ///< its part of the window, in this process
  std::uint64_t limit = 0;         ///< number of elements that inlined calls may access now
  std::uint64_t atomic_limit = 0;  ///< as limit, for atomic updates
  std::uint64_t limit_open = 0;    ///< value of `limit` while an epoch is open
  std::uint64_t atomic_limit_open = 0;
  stripe_lock* stripes = nullptr;                ///< its stripes
  word32* stripe_bias = nullptr;                 ///< stripes_needed, _biased or _ending
  cpu_lock* lock = nullptr;                      ///< its lock; null if inlined calls cannot take it
  word<std::uint8_t>* record = nullptr;          ///< this rank's hold there, which survivors of its death read
  std::uint8_t held = 0;                         ///< lock_kind that this rank holds by lock(), held_..., or 0 none
  std::uint8_t plain_record = 0;                 ///< writers issue the fence, so a reader's record needs only a store
  std::uint8_t stored = 1;                       ///< there were plain stores: the next flush or unlock needs a fence
  std::uint8_t stored_at_rest = 1;               ///< value of `stored` after a fence; 1 if some stores do not set it
  element_path elements = element_path::stripe;  ///< update path of single elements up to 8 bytes
  std::uint8_t flushable = 0;                    ///< a passive epoch is open and no operation is pending
  std::uint16_t counted_locks = 0;               ///< counted shared locks since the bias of the lock word changed
  std::uint16_t rebias_after = 16;   ///< number of counted locks after which the lock is biased towards readers
  target_view* used_next = nullptr;  ///< see window_view::used_first
};

/// log2 of the bytes that one stripe guards, where Hints::accumulate_granularity gives no other number.
inline constexpr unsigned stripe_shift_unless_hinted = 13;

/// The part of a window that inlined calls use. It is constant after creation, except limits and epoch state.
struct window_view {
  target_view* targets = nullptr;  ///< mapped targets first, first+1, ... first+mapped-1
  std::uint32_t first = 0;
  std::uint32_t mapped = 0;         ///< 0: no call is inlined
  std::uint64_t my_lock_tag = 0;    ///< lock word while this rank holds it exclusively
  std::uint32_t my_stripe_tag = 0;  ///< stripe word while this rank holds it
  std::uint32_t stripe_mask = 0;
  word32* updating = nullptr;  ///< 1 while this rank updates an element without its stripe
  accumulate_mode mode = accumulate_mode::handler;
  std::uint8_t stripe_shift = stripe_shift_unless_hinted;  ///< log2 of the bytes that one stripe guards
  std::uint8_t may_lock = 0;                               ///< no epoch other than lock() is open, and inline_sync
  std::uint8_t inline_sync = 0;  ///< locks and flushes may be inlined: all are in memory, and there is no trace
  std::uint8_t far_open = 0;     ///< this lock_all epoch has used a target that is not in targets
  std::uint8_t unchecked = 0;    ///< the last lock_all was called with no_check: no target's lock is taken
  access_epoch access = access_epoch::none;
  copy_turn turn;                     ///< direction of long copies
  std::uint32_t locks_open = 0;       ///< targets locked by lock()
  target_view* used_first = nullptr;  ///< targets locked by this lock_all epoch, linked by used_next
};

/// The public calls, for messages.
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
  set_signal,
};

/// One operation as the engine sees it. Layouts are null where the data are contiguous.
struct operation_args {
  call kind = call::put;
  operation op = operation::replace;
  element type = element::u8;
  int target = 0;
  std::uint64_t displacement = 0;         ///< in the window's units
  const void* origin = nullptr;           ///< data of the origin
  void* result = nullptr;                 ///< buffer for data of the target
  const void* compare = nullptr;          ///< compare_and_swap: the expected value
  std::uint64_t bytes = 0;                ///< length of contiguous data
  const Layout* origin_layout = nullptr;  ///< shape of `origin` (of `result` for a get)
  const Layout* result_layout = nullptr;  ///< shape of `result` of get_accumulate
  const Layout* target_layout = nullptr;  ///< shape at the target, from the displacement on
  int signal = -1;                        ///< raised at the target when the data are in its memory; -1: none
  bool by_value = false;                  ///< `origin` and `result` are valid only during the call
};

/// The general path: checks the arguments, chooses a protocol and starts it. `done` or `posted` on success.
/// `*request`, if given, gets a node if and only if the operation has not ended.
status issue(window_view& window, const operation_args& args, request_node** request) noexcept;
/// Issues the operation and waits for the result at the origin.
status issue_and_wait(window_view& window, operation_args&& args) noexcept;
/// Updates one element of an untyped window, with type and operator known at run time. Returns false if it did nothing:
/// the general path must carry out the update. `old` may be null.
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
/// Called when a shared holder has released the lock while a rank sleeps for it.
[[gnu::cold]] void wake_writer(window_view& window, int target) noexcept;
status flush_slow(window_view& window, int target) noexcept;
status flush_all(window_view& window) noexcept;
status flush_local(window_view& window, int target) noexcept;
status flush_local_all(window_view& window) noexcept;
status sync(window_view& window) noexcept;
status wait_signal(window_view& window, unsigned signal, std::uint64_t count, int from) noexcept;
status test_signal(window_view& window, unsigned signal, std::uint64_t count) noexcept;
/// `which`: the index of the signal that was taken, or of an invalid one.
status wait_any_signal(window_view& window, std::span<const unsigned> signals, std::uint64_t count, int from,
                       std::size_t& which) noexcept;
status test_any_signal(window_view& window, std::span<const unsigned> signals, std::uint64_t count,
                       std::size_t& which) noexcept;
std::uint64_t signal_value(const window_view& window, unsigned signal) noexcept;
/// `before`: the count that was replaced.
status set_signal(window_view& window, unsigned signal, std::uint64_t value, std::uint64_t& before) noexcept;
/// Abandons the epoch of a scope that an exception leaves: closes the epoch to `target` (-1: lock_all) and marks the
/// window failed. It waits only for reads that the network has begun.
void abandon_epoch(window_view& window, int target) noexcept;
/// Ends an epoch that could not be closed, or whose scope an exception leaves. Abandons it, unless the exception is the
/// Error of a refused call.
void leave_epoch(window_view& window, int target) noexcept;

/// Composes the message and throws. `count` is in elements, or in bytes for calls on ranges and words; displacements of
/// range locks are in bytes. `where` is the place of the public call.
[[noreturn, gnu::cold, gnu::noinline]] void raise(const window_view& window, call what, status code, int target,
                                                  std::uint64_t displacement, std::uint64_t count,
                                                  const std::source_location& where);
/// As `raise`, for an operation with layout `there` at the target.
[[noreturn, gnu::cold, gnu::noinline]] void raise_layout(const window_view& window, call what, status code, int target,
                                                         std::uint64_t displacement, const Layout& there,
                                                         const std::source_location& where);

/// The view of freed and moved-from windows: it has no targets, so every call takes the slow path and fails.
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
