// SPDX-License-Identifier: Apache-2.0
/// \file
/// Waiting for what the engine has under way, and counters that say how far it is.
#pragma once

#include <cstdint>

#include "window/window_core.hpp"

namespace rma::detail {

/// Completes everything under way towards `target` (fabric and handler operations). Used by flush and by closing calls.
status complete_target(window_core& w, int target) noexcept;
/// The same of what has been issued: what is scheduled stays held.
status complete_issued(window_core& w, int target) noexcept;
/// The same at a fraction of the cost, after plain operations alone (plain.cpp) on the target that was used last, in an
/// epoch that holds it. False: the other one has to see to it, and may find it done.
[[nodiscard]] bool complete_plain(window_core& w, int target) noexcept;
/// Waits only until this rank's memory is free again and results are there: writes may still be on their way into the
/// target's memory. The same as complete_target where the fabric says no less than that they are there.
status complete_locally(window_core& w, int target) noexcept;
/// After an epoch was abandoned (of one target, -1: of all), or a window dropped: what the buffers were may be gone.
/// Results that are still to come are not written, or waited for where the fabric writes them, but for those that
/// somebody has a request of.
void leave_results(window_core& w, int target) noexcept;
/// Waits for the operations under way that the target is bound to handle: what goes another way must not overtake them.
status complete_promised(window_core& w, int target) noexcept;
inline bool promised_are_over(const target_state& state) noexcept {
  return state.peer == nullptr || state.peer->operations_done.load() >= state.last_promised;
}
/// Whether all that is under way towards the target are the fabric's writes: one of its atomics, posted now, takes
/// effect after them (fabric.hpp).
bool only_writes(window_core& w, int target) noexcept;
/// complete_target after such an atomic has been done: the writes are in the target's memory.
status complete_followed(window_core& w, int target) noexcept;
/// complete_target without waiting: `not_yet` if something is still under way.
status try_complete_target(window_core& w, int target) noexcept;
/// The same of what has been issued: what is scheduled stays held.
status try_complete_issued(window_core& w, int target) noexcept;
/// So much has been issued to a target until now.
struct issued_mark {
  int target = -1;
  bool set = false;  ///< not while operations wait for room, which have no number yet
  std::uint64_t posted = 0, messages = 0;
};
/// Sets it if that is possible now.
void mark_issued(window_core& w, issued_mark& mark) noexcept;
/// Whether all until the mark, which is set, is complete here: `done`, `not_yet`, or what failed.
status issued_state(window_core& w, const issued_mark& mark) noexcept;
/// The same as complete_target for all targets.
status complete_all(window_core& w) noexcept;
/// Adds to a counter of the target's block, there or by message, and wakes it.
enum class counter_kind : std::uint32_t { signal, completion, post };
void notify(window_core& w, int target, counter_kind kind, std::uint32_t index) noexcept;

}  // namespace rma::detail
