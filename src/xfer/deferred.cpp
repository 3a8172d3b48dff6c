// SPDX-License-Identifier: Apache-2.0
/// \file
/// The queue of fence "def" (dissertation, section 6.2): what is put off until the fence, and what cannot be.
///
///   put, accumulate, get into the caller's memory     --> queue --> issued by the fence, when all ranks are in it
///   values, requests, signals: somebody waits for them --> now, when the target says that it is through the last fence
#include <algorithm>
#include <mutex>

#include "xfer/fence_state.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

/// Waits until the target is through the fence that opened this epoch: it may still be getting what came before.
status await_target(window_core& w, int target, int peer) noexcept {
  fence_state& f = w.fences;
  const std::uint32_t number = f.number;
  if (target == w.team->rank) return status::done;
  {
    const std::lock_guard guard(w.ctx->lock());
    const auto known = f.answers.find(peer);
    if (known != f.answers.end() && known->second == number) return status::done;
    send_fence_news(w, target, fence_news::ask, number);
  }
  const auto is_through = [&]() noexcept {
    const std::lock_guard guard(w.ctx->lock());
    const auto known = f.answers.find(peer);
    return known != f.answers.end() && known->second == number;
  };
  const status s = w.ctx->wait_for_message(
      is_through, [&]() noexcept { return w.ctx->gone(peer) ? status::peer_failed : w.revocation(); });
  if (s == status::peer_failed) w.ctx->blame(peer);
  return s;
}

/// Whether a message to the target's handler carries the operation.
bool goes_by_handler(const window_core& w, const operation_record& op) noexcept {
  const bool atomic = op.kind != call::put && op.kind != call::get;
  if (!w.is_far(op.target) || (atomic && w.mode == accumulate_mode::device)) return false;
  return atomic || is_small_for_def(op.shapes == nullptr, op.bytes);
}

/// The last operation to a target says that it is the last, if handlers do all that this rank has for it: nothing else
/// is sure to be over when the message is handled.
void flag_last(window_core& w, int target, target_state& state, std::vector<int>& flagged) {
  if (state.channel || state.fabric_pending.load() != 0) return;
  const auto handled = [&](const operation_record& op) { return goes_by_handler(w, op); };
  if (!std::all_of(state.held.begin(), state.held.end(), handled)) return;
  state.held.back().signal = last_of_fence - static_cast<int>(w.fences.number % 4);
  flagged.push_back(target);
}

}  // namespace

bool is_small_for_def(bool contiguous, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t one_message_bytes = 4000;
  return contiguous && bytes <= one_message_bytes;
}

status defer(window_core& w, const checked_operation& o, bool requested) noexcept {
  const operation_args& a = *o.args;
  const bool awaited = requested || a.signal >= 0 || (a.by_value && a.kind != call::put);
  if (!awaited) {
    const std::lock_guard guard(w.ctx->lock());
    hold(w, o, hold_reason::fence);
    mark_dirty(w, a.target, *o.state);
    return status::posted;
  }
  if (const status s = await_target(w, a.target, o.peer); s != status::done) return s;
  return issue_deferred(w, a.target, nullptr);
}

status issue_deferred(window_core& w, int target, std::vector<int>* flagged) noexcept {
  if (target < 0) {
    status worst = status::done;
    for (const int each : std::vector<int>(w.dirty)) {
      if (const status s = issue_deferred(w, each, flagged); s != status::done) worst = s;
    }
    return worst;
  }
  target_state& state = w.state_of(target);
  if (state.held.empty() || state.held.front().held != hold_reason::fence) return status::done;
  if (flagged != nullptr) flag_last(w, target, state, *flagged);
  status result = status::done;
  w.fences.issuing = true;
  while (!state.held.empty()) {
    operation_record& op = [&]() -> operation_record& {
      const std::lock_guard guard(w.ctx->lock());
      return take_held(w, state);
    }();
    const bool is_flagged = op.signal <= last_of_fence;
    const status s = issue_held(w, op);
    if (ok(s)) continue;
    result = s;
    if (is_flagged) std::erase(*flagged, target);  // it was not sent
  }
  w.fences.issuing = false;
  return result;
}

}  // namespace rma::detail
