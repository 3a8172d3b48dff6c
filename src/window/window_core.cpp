// SPDX-License-Identifier: Apache-2.0
#include "window/window_core.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/assert.hpp"

namespace rma::detail {

far_target& window_core::find_far_target(int target) {
  RMA_ASSERT(target >= 0 && target < size() && is_far(target));
  auto& found = far_targets[target];
  if (found == nullptr) {
    found = std::make_unique<far_target>();
    if (manager_first) found->experience.manager = lock_place::cpu;
  }
  last_fabric_target = target;
  last_fabric_state = found.get();
  return *found;
}

std::uint8_t window_core::held(int target) const noexcept {
  if (!is_far(target)) return views[index_of(target)].held;
  if (target == last_fabric_target) return last_fabric_state->held;
  const auto at = far_targets.find(target);
  return at == far_targets.end() ? std::uint8_t{0} : at->second->held;
}

void note_dirty(window_core& w, int target, target_state& state) noexcept {
  RMA_ASSERT(target >= 0 && target < w.size());
  RMA_ASSERT(!state.dirty);  // it is in the list once
  state.dirty = true;
  w.dirty.push_back(target);
}

window_block* window_core::block_of(int target) const noexcept {
  if (!intranode && target != team->rank) return nullptr;
  const int node_slot = team->node_index(target);
  return node_slot < 0 ? nullptr : block_at(node_slot);
}

}  // namespace rma::detail
