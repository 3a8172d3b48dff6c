// SPDX-License-Identifier: Apache-2.0
/// \file
/// The ways to carry out one operation that was checked; src/xfer/protocol has the table of them.
#pragma once

#include <cstdint>

#include "rma/layout.hpp"
#include "window/window_core.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

inline constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);             ///< of an adapter's atomics
inline constexpr std::uint64_t promised_bytes_max = std::uint64_t{128} << 10;  ///< of pieces in several messages
inline constexpr std::uint64_t copied_bytes_max = 512;  ///< of a value: cheaper to copy than to wait for

class copy_trial;

/// A checked operation.
struct checked_operation {
  const operation_args* args = nullptr;
  int peer = -1;                   ///< the target's rank in the world
  far_target* far = nullptr;       ///< the target, if it is on another node
  target_state* state = nullptr;   ///< what is under way there
  std::uint64_t offset = 0;        ///< bytes from the start of the target's part (dynamic: an address)
  std::uint64_t bytes = 0;         ///< of data
  bool aggregated = false;         ///< by a handle: it may wait for others if it is small
  bool contiguous = true;          ///< everywhere; then the layouts are null
  bool admitted = false;           ///< its epoch need not be asked
  bool put_off = false;            ///< it was held until its epoch let it go, as others behind it may be
  const Layout* origin = nullptr;  ///< shape of what the origin reads (a get: of where it writes)
  const Layout* target = nullptr;
  const Layout* result = nullptr;              ///< of get_accumulate; else null
  mutable operation_record* record = nullptr;  ///< of one that was held; null: none yet, or a protocol has adopted it
  copy_trial* trial = nullptr;                 ///< of a copy between processes that goes by experience; else null
  const char* protocol = "none";               ///< for the trace: what carries it out, and why
  const char* why = "refused";
  void choose(const char* chosen, const char* reason) noexcept {
    protocol = chosen;
    why = reason;
  }
  /// The target's bytes lie in [offset + lower, offset + upper).
  [[nodiscard]] std::ptrdiff_t lower() const noexcept { return contiguous ? 0 : target->lower(); }
  [[nodiscard]] std::ptrdiff_t upper() const noexcept {
    return contiguous ? static_cast<std::ptrdiff_t>(bytes) : target->upper();
  }
  [[nodiscard]] bool fetches() const noexcept { return args->kind != call::put && args->kind != call::accumulate; }
  [[nodiscard]] bool atomic() const noexcept { return args->kind != call::put && args->kind != call::get; }
};

/// The region that a checked operation falls into, as far as is known without asking its target; bytes 0: none is.
fabric::region_key known_region(const window_core& w, const checked_operation& o) noexcept;

/// Whether the operation has to wait behind others that are held for room.
inline bool is_behind_others(const checked_operation& o) noexcept { return o.state->queued.load() != 0; }

/// Whether a contiguous operation lies within the target's part of `limit` bytes; `offset`: how far from its start.
inline bool lies_within(std::uint64_t limit, std::uint64_t unit, const operation_args& a,
                        std::uint64_t& offset) noexcept {
  return !__builtin_mul_overflow(a.displacement, unit, &offset) && offset <= limit && a.bytes <= limit - offset;
}
/// Whether an atomic update of so many bytes, so far from the start of the target's part, may be done.
status check_atomic(const operation_args& a, std::uint64_t offset, std::uint64_t bytes) noexcept;

/// direct: loads, stores and locked instructions on mapped memory, done when it returns.
status run_direct(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept;
/// The same, at a fraction of the cost, for puts and gets with layouts where an inlined call would be allowed, see
/// view.hpp. False: nothing happened, and nothing is said about whether it may.
bool run_plain_layouts(window_core& w, const operation_args& a) noexcept;
/// For the trace: how an atomic update of mapped memory is done, or why another operation is done there.
const char* why_direct(const window_core& w, const target_view& t, const checked_operation& o) noexcept;

/// handler: the target's handler does it; one or more messages.
status run_handler(window_core& w, const checked_operation& o, request_node** request) noexcept;

/// The same if it takes one message only, or few of pieces here and there, and the target is certain to handle each
/// before it leaves the library; else `not_supported`: part of it may have been done, or still be under way.
status run_promised(window_core& w, const checked_operation& o, request_node** request) noexcept;
/// The same for the commonest operations on window_core::last_handler_target, unchecked so far, at a fraction of the
/// cost. `not_supported`: nothing happened, and nothing is said about whether it may.
status run_plain_promised(window_core& w, const operation_args& a, request_node** request) noexcept;

/// shared: a large contiguous put or get, of which the target copies the second half while the origin copies the first;
/// done when it returns. `not_supported` if the target is not certain to take part: nothing happened.
status run_shared(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept;

/// staged: a large contiguous put or get in pieces, through slots that both processes reach; done when it returns.
/// `not_supported` if the target is not certain to take part: nothing happened.
status run_staged(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  copy_trial& trial) noexcept;

/// fabric: the network's own write and read. Puts and gets only.
status run_fabric(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  request_node** request) noexcept;

/// The same where the target's side is in one piece: each write gathers, and each read scatters, as many pieces of the
/// origin's as the network takes in one list.
status run_fabric_lists(window_core& w, const fabric::region_key& region, const checked_operation& o,
                        request_node** request) noexcept;

/// fabric and device for the commonest operations on window_core::last_fabric_target, at a fraction of the cost;
/// `requested`: somebody wants a request. `not_supported`: nothing happened, and nothing is said about whether it may.
status run_plain(window_core& w, const operation_args& a, bool requested) noexcept;
/// False for what `run_plain` never does: its call would cost a tenth of an accumulate's instructions.
constexpr bool has_plain_form(call kind) noexcept { return kind != call::accumulate && kind != call::get_accumulate; }

/// device: the adapter's atomics, for windows whose atomicity it owns.
status run_device(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  request_node** request) noexcept;

/// Atomic update of a contiguous range of mapped memory. `old` may be null; `from` may be null for no_op.
status apply_range(window_core& w, target_view& t, std::byte* base, std::uint64_t offset, const void* from, void* old,
                   std::uint64_t bytes, operation op, element type) noexcept;

/// The same done by a handler, which owns the memory: nothing else is atomic to it but handlers.
status apply_owned(std::byte* at, const void* from, void* old, std::uint64_t bytes, operation op,
                   element type) noexcept;
/// compare_and_swap by a handler.
void swap_owned(std::byte* at, const void* compare, const void* desired, void* old, std::size_t bytes) noexcept;

/// Serves one operation message at the target; the caller holds the progress lock.
void serve_operation(engine& e, int source, std::span<const std::byte> payload) noexcept;

/// The same without an acknowledgement, for an operation that came in an epoch.
void run_operation(engine& e, int source, std::span<const std::byte> payload) noexcept;

/// Carries out an operation that was held, whose record it takes over.
status issue_held(window_core& w, operation_record& op) noexcept;

/// The same for the target's half of a shared copy.
void serve_share(engine& e, int source, std::span<const std::byte> payload) noexcept;

/// Finds the memory of `bytes` at `offset` of this rank's part; null if it is not in the window.
std::byte* local_range(const window_core& w, std::uint64_t offset, std::uint64_t bytes) noexcept;
/// For messages: the range that the target of a dynamic window has attached at an address, as far as is known without
/// asking it; bytes 0 if there is none.
attachment attached_at(const window_core& w, int target, std::uint64_t address) noexcept;

}  // namespace rma::detail
