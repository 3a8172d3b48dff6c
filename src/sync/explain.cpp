// SPDX-License-Identifier: Apache-2.0
/// \file
/// Texts by which the trace explains calls that open and close epochs.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/names.hpp"
#include "core/trace.hpp"
#include "sync/epochs.hpp"
#include "sync/lock_protocol.hpp"

namespace rma::detail {
namespace {

/// This rank's state of the target; null if there is none yet.
const target_state* state_if_known(const window_core& w, int target) noexcept {
  if (target < 0 || target >= w.size()) return nullptr;
  if (!w.is_far(target)) return &w.states[w.index_of(target)];
  const auto far = w.far_targets.find(target);
  return far == w.far_targets.end() ? nullptr : far->second.get();
}

/// The explanation of the target's lock, if it has a path of its own with a reason; else null.
const lock_explanation* explanation_for(const window_core& w, int target) noexcept {
  const target_state* const found = state_if_known(w, target);
  return found == nullptr ? nullptr : found->lock_explained;
}

/// The name of the lock; for one with several paths, of the path by which it was acquired.
std::string_view name_of_lock(const window_core& w, int target) noexcept {
  const lock_protocol_row& row = *w.lock_row;
  const target_state* const known = state_if_known(w, target);
  if (row.name_by_path == nullptr || known == nullptr) return row.name;
  return row.name_by_path[static_cast<std::size_t>(known->path)];
}

/// The barrier of a plain fence. `words` is the number of rounds by writes.
std::string_view barrier_of(const window_core& w, std::uint64_t words) noexcept {
  if (w.intranode && w.team->one_node) return "a barrier by memory, on one node";
  return words != 0 ? "a barrier by words" : "a barrier by messages";
}

}  // namespace

void explain_call(const window_core& w, call what, int target, std::uint64_t words, trace_event& e,
                  std::string& text) noexcept {
  const bool memory = w.intranode && w.team->one_node;
  switch (what) {
    case call::lock:
    case call::unlock:
    case call::lock_all:
    case call::unlock_all:
      e.protocol = name_of_lock(w, target);
      e.why = w.locks_why;
      if (const lock_explanation* const own = explanation_for(w, target); own != nullptr) {
        e.protocol = own->how;
        e.why = own->why;
      } else if (target < 0 && w.unchecked != 0) {
        e.protocol = "none";
        e.why = "no_check";
      }
      break;
    case call::fence:
      e.protocol = name_of(w.fence);
      e.why = w.fence_why;
      if (w.fence != fence_kind::placed) break;
      text = fmt::format("{}; {}", e.why, barrier_of(w, words));
      e.why = text;
      break;
    default:
      e.protocol = memory ? "memory" : "messages";
      e.why = memory ? "one node" : w.intranode ? "the team spans nodes" : "RMA_INTRANODE=off";
  }
}

}  // namespace rma::detail
