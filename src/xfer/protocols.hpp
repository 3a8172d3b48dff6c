// SPDX-License-Identifier: Apache-2.0
/// \file
/// The protocols by which a checked operation is carried out; src/xfer/protocol has the table of them.
#pragma once

#include <cstdint>

#include "rma/layout.hpp"
#include "window/window_core.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

inline constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);             ///< size of an adapter's atomics
inline constexpr std::uint64_t promised_bytes_max = std::uint64_t{128} << 10;  ///< limit of several messages
inline constexpr std::uint64_t copied_bytes_max = 512;  ///< limit of a value that is copied rather than waited for

class copy_trial;

/// A checked operation.
struct checked_operation {
  const operation_args* args = nullptr;
  int peer = -1;                        ///< the target's rank in the world
  far_target* far = nullptr;            ///< the target's state, if it is on another node
  target_state* state = nullptr;        ///< the target's pending operations
  const window_block* block = nullptr;  ///< the target's description of its part, if it is on this node
  std::uint64_t offset = 0;             ///< bytes from the start of the target's part (dynamic: an address)
  std::uint64_t bytes = 0;              ///< bytes of data
  bool aggregated = false;              ///< called on an aggregate handle: it may be held if it is small
  bool contiguous = true;               ///< on all sides; then the layouts are null
  bool admitted = false;                ///< the epoch has admitted it
  bool put_off = false;                 ///< it was held until its epoch admitted it, as later ones may be
  const Layout* origin = nullptr;       ///< layout of the data that the origin reads (of a get: writes)
  const Layout* target = nullptr;
  const Layout* result = nullptr;              ///< only of get_accumulate
  mutable operation_record* record = nullptr;  ///< record of a held operation, until a protocol adopts it
  copy_trial* trial = nullptr;                 ///< only of a copy between processes with a measured choice
  const char* protocol = "none";               ///< for the trace: the protocol and the reason
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

/// The region that contains a checked operation's range, if it is known without asking the target; else bytes is 0.
fabric::region_key known_region(const window_core& w, const checked_operation& o) noexcept;

/// True if the operation has to wait for others that are held for room.
inline bool is_behind_others(const checked_operation& o) noexcept { return o.state->queued.load() != 0; }

/// True if a contiguous operation lies within the target's part of `limit` bytes; `offset` becomes its distance from
/// the start.
inline bool lies_within(std::uint64_t limit, std::uint64_t unit, const operation_args& a,
                        std::uint64_t& offset) noexcept {
  return !__builtin_mul_overflow(a.displacement, unit, &offset) && offset <= limit && a.bytes <= limit - offset;
}
/// Checks the type and the alignment of an atomic update of `bytes` at `offset` of the target's part.
status check_atomic(const window_core& w, const operation_args& a, std::uint64_t offset, std::uint64_t bytes) noexcept;

/// direct: loads, stores and locked instructions on mapped memory; complete when it returns.
status run_direct(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept;
/// Fast path of `direct` for puts and gets with layouts where an inlined call would be allowed, see view.hpp. False
/// means that nothing was done, which does not imply an error.
bool run_plain_layouts(window_core& w, const operation_args& a) noexcept;
/// For the trace: the method of an atomic update of mapped memory, or the reason why another operation is `direct`.
const char* why_direct(const window_core& w, const target_view& t, const checked_operation& o) noexcept;

/// handler: the target's handler carries out the operation, sent in one or more messages.
status run_handler(window_core& w, const checked_operation& o, request_node** request) noexcept;

/// Does the same if one message suffices, or a few for scattered pieces, and the target is certain to handle each
/// before it leaves the library; else returns `not_supported`: part of it may have been done, or still be pending.
status run_promised(window_core& w, const checked_operation& o, request_node** request) noexcept;
/// Fast path of run_promised for the most frequent operations on window_core::last_handler_target. It checks what it
/// needs itself; `not_supported` means that nothing was done, which does not imply an error.
status run_plain_promised(window_core& w, const operation_args& a, request_node** request) noexcept;

/// shared: a large contiguous put or get, of which the target copies the second half while the origin copies the first;
/// complete when it returns. `not_supported` if the target is not certain to take part: nothing was done.
status run_shared(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept;

/// staged: a large contiguous put or get in pieces, through slots that both processes map; complete when it returns.
/// `not_supported` if the target is not certain to take part: nothing was done.
status run_staged(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  copy_trial& trial) noexcept;

/// fabric: the network's own write and read. Puts and gets only.
status run_fabric(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  request_node** request) noexcept;

/// The variant for contiguous memory at the target: each write gathers, and each read scatters, as many pieces of the
/// origin as the network takes in one list.
status run_fabric_lists(window_core& w, const fabric::region_key& region, const checked_operation& o,
                        request_node** request) noexcept;

/// Fast path of fabric and device for the most frequent operations on window_core::last_fabric_target; `requested` if
/// the caller wants a request. `not_supported` means that nothing was done, which does not imply an error.
status run_plain(window_core& w, const operation_args& a, bool requested) noexcept;
/// False for operations that `run_plain` never carries out: its call would be a tenth of an accumulate's instructions.
constexpr bool has_plain_form(call kind) noexcept { return kind != call::accumulate && kind != call::get_accumulate; }

/// device: the adapter's atomics, for windows whose atomicity it owns.
status run_device(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  request_node** request) noexcept;

/// Atomically updates a contiguous range of mapped memory. `old` may be null; `from` may be null for no_op.
status apply_range(window_core& w, target_view& t, std::byte* base, std::uint64_t offset, const void* from, void* old,
                   std::uint64_t bytes, operation op, element type) noexcept;

/// Does the same in a handler, which owns the memory: only handlers are atomic with respect to each other.
status apply_owned(std::byte* at, const void* from, void* old, std::uint64_t bytes, operation op,
                   element type) noexcept;
/// compare_and_swap in a handler.
void swap_owned(std::byte* at, const void* compare, const void* desired, void* old, std::size_t bytes) noexcept;

/// Serves one operation message at the target; the caller holds the progress lock.
void serve_operation(engine& e, int source, std::span<const std::byte> payload) noexcept;

/// True if the target knows the layout that the operation names, if any. Else it asks for it.
bool knows_layout(engine& e, int source, std::span<const std::byte> payload);

/// Does the same as serve_operation without an acknowledgement, for an operation of a batch or an epoch that counts. An
/// unknown layout makes it malformed.
void run_operation(engine& e, int source, std::span<const std::byte> payload) noexcept;

/// Carries out a held operation, whose record it takes over.
status issue_held(window_core& w, operation_record& op) noexcept;

/// Serves a message about the target's part of a shared or staged copy.
void serve_share(engine& e, int source, std::span<const std::byte> payload) noexcept;

/// Finds the memory of `bytes` at `offset` of this rank's part; null if it is not in the window.
std::byte* local_range(const window_core& w, std::uint64_t offset, std::uint64_t bytes) noexcept;
/// For messages: the range that the target of a dynamic window has attached at an address, if it is known without
/// asking the target; else bytes is 0.
attachment attached_at(const window_core& w, int target, std::uint64_t address) noexcept;

}  // namespace rma::detail
