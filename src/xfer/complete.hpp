// SPDX-License-Identifier: Apache-2.0
/// \file
/// Waits for the engine's pending operations, and counters of their progress.
#pragma once

#include <cstdint>

#include "window/window_core.hpp"

namespace rma::detail {

/// Completes all operations on `target` (by the fabric and by handlers). Used by flush and by calls that close epochs.
status complete_target(window_core& w, int target) noexcept;
/// As complete_target for issued operations: scheduled ones stay held.
status complete_issued(window_core& w, int target) noexcept;
/// Fast path of complete_target: only plain operations (plain.cpp) on the last used target, in an epoch that holds it.
/// False means that complete_target must be called, which may find everything done.
[[nodiscard]] bool complete_plain(window_core& w, int target) noexcept;
/// Completes operations at the origin only: buffers are free and results are available, but writes may still be in
/// flight. The same as complete_target where the fabric's completions imply that writes are in the target's memory.
status complete_locally(window_core& w, int target) noexcept;
/// Called after an epoch was abandoned (to one target; -1: to all), or a window dropped, when buffers may be gone.
/// Outstanding results are not written, or waited for where the fabric writes them, except those of
/// requests.
void leave_results(window_core& w, int target) noexcept;
/// Waits for the pending operations with a reserved delivery, which operations on other paths must not overtake.
status complete_promised(window_core& w, int target) noexcept;
inline bool promised_are_over(const target_state& state) noexcept {
  return state.peer == nullptr || state.peer->operations_done.load() >= state.last_promised;
}
/// True if only writes of the fabric are pending to the target: an atomic that is posted now takes effect after them
/// (fabric.hpp).
bool only_writes(window_core& w, int target) noexcept;
/// As complete_target, after such an atomic has completed: the writes are in the target's memory.
status complete_followed(window_core& w, int target) noexcept;
/// As complete_target without waiting: `not_yet` if operations are pending.
status try_complete_target(window_core& w, int target) noexcept;
/// As try_complete_target for issued operations: scheduled ones stay held.
status try_complete_issued(window_core& w, int target) noexcept;
/// A mark of the operations issued to a target so far.
struct issued_mark {
  int target = -1;
  bool set = false;  ///< false while operations wait for room, which have no number yet
  std::uint64_t posted = 0, messages = 0;
};
/// Sets the mark if that is possible now.
void mark_issued(window_core& w, issued_mark& mark) noexcept;
/// `done` if all operations up to the mark, which is set, are complete at the origin; else `not_yet` or the failure.
status issued_state(window_core& w, const issued_mark& mark) noexcept;
/// As complete_target, for all targets.
status complete_all(window_core& w) noexcept;
/// Adds to a counter in the target's block, directly or by a message, and wakes the target.
enum class counter_kind : std::uint32_t { signal, completion, post };
void notify(window_core& w, int target, counter_kind kind, std::uint32_t index) noexcept;
/// Does the same; the caller holds the progress lock.
void notify_locked(window_core& w, int target, counter_kind kind, std::uint32_t index) noexcept;

}  // namespace rma::detail
