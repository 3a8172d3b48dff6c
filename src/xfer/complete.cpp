// SPDX-License-Identifier: Apache-2.0
/// \file
/// Waiting for what the engine has under way.
#include <algorithm>

#include "xfer/window_core.hpp"

namespace rma::detail {

target_state& window_core::state_of(int target) {
  const std::size_t index = index_of(target);
  if (index < states.size()) return states[index];
  auto& state = far_states[target];
  if (state == nullptr) state = std::make_unique<target_state>();
  return *state;
}

window_block* window_core::block_of(int target) const noexcept {
  if (!intranode && target != team->rank) return nullptr;
  const int place = team->place(target);
  return place < 0 ? nullptr : block_at(place);
}

status complete_target(window_core& w, int target) noexcept {
  target_state& state = w.state_of(target);
  if (!state.dirty) return status::done;
  const int peer = w.world_rank(target);
  const status s = w.ctx->wait_for_peer(peer, [&]() noexcept {
    return (state.peer == nullptr || state.peer->operations_done.load() >= state.last_operation) &&
           state.fabric_pending.load() == 0;
  });
  if (s == status::peer_failed) w.ctx->blame(peer);
  state.dirty = false;
  std::erase(w.dirty, target);
  return s;
}

status complete_promised(window_core& w, int target) noexcept {
  const target_state& state = w.state_of(target);
  if (state.peer == nullptr || state.peer->operations_done.load() >= state.last_promised) return status::done;
  const int peer = w.world_rank(target);
  const status s =
      w.ctx->wait_for_peer(peer, [&]() noexcept { return state.peer->operations_done.load() >= state.last_promised; });
  if (s == status::peer_failed) w.ctx->blame(peer);
  return s;
}

status complete_all(window_core& w) noexcept {
  status result = status::done;
  while (!w.dirty.empty()) {
    const status s = complete_target(w, w.dirty.back());
    if (s != status::done) result = s;
  }
  return result;
}

}  // namespace rma::detail
