// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operations that are held at their origin until the end of an epoch.
///
/// Fence "def" (dissertation, section 6.2):
///
///   put, accumulate, get into the caller's memory     --> queue --> issued by the fence, when all ranks are in it
///   values, requests, signals: these are waited for    --> now, when the target has left the last fence
///
/// Operations of deferrable epochs of lock "two-sided", and of small ones of lock "auto", are held until the end of the
/// epoch (dissertation ch. 4, the baseline that direct passive is compared with). lock_two_sided.cpp makes messages of
/// them for the target's handler.
#include <algorithm>
#include <mutex>

#include "core/assert.hpp"
#include "sync/deferred.hpp"
#include "sync/fence_news.hpp"
#include "sync/locking.hpp"
#include "xfer/complete.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/operation_batch.hpp"
#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t waiting_bytes_max = std::uint64_t{1} << 20;  ///< larger epochs are sent before their end

/// Waits until the target has left the fence that opened this epoch: it may still be receiving earlier operations.
status await_target(window_core& w, int target, int peer) noexcept {
  const std::uint32_t number = w.fences.number;
  if (target == w.team->rank) return status::done;
  {
    const std::lock_guard guard(w.ctx->lock());
    if (w.news[peer].through == number) return status::done;
    send_fence_news(w, target, fence_news::request, number);
  }
  const auto is_through = [&]() noexcept {
    const std::lock_guard guard(w.ctx->lock());
    return w.news[peer].through == number;
  };
  const auto failed = [&]() noexcept { return w.ctx->gone(peer) ? status::peer_failed : w.revocation(); };
  const status s = w.ctx->wait({.until = is_through, .fails_if = failed});
  if (s == status::peer_failed) w.ctx->set_last_failed(peer);
  return s;
}

/// True if the operation is sent in a message to the target's handler.
bool goes_by_handler(const window_core& w, const operation_record& op) noexcept {
  const bool atomic = op.kind != call::put && op.kind != call::get;
  if (!w.is_far(op.target) || (atomic && is_by_adapter(w.mode))) return false;
  return atomic || ends_epoch_by_message(op.shapes == nullptr, op.bytes, w.ctx->wide()->caps().message_bytes_max);
}

/// Flags the last operation to a target as the last, if handlers carry out all operations of this rank there: others
/// might not be complete when the message is handled.
void flag_last(window_core& w, int target, target_state& state, std::vector<int>& flagged) {
  if (state.channel || state.fabric_pending.load() != 0) return;
  const auto handled = [&](const operation_record& op) { return goes_by_handler(w, op); };
  if (!std::all_of(state.held.begin(), state.held.end(), handled)) return;
  state.held.back().signal = last_of_epoch - static_cast<int>(w.fences.number % 4);
  flagged.push_back(target);
}

/// True if all of them are sent in batches, with the flag of the last one (RMA_AGGREGATE).
bool goes_as_batch(const window_core& w, const target_state& state, const operation_record::queue& due) noexcept {
  if (state.channel || state.fabric_pending.load() != 0 || state.queued.load() != 0) return false;
  const std::uint64_t most = std::min(w.schedule.aggregate_bytes, batched_bytes_max);
  const std::uint32_t room = batch_bytes_of(w, due.front().target);
  return std::all_of(due.begin(), due.end(), [&](const operation_record& op) {
    return op.shapes == nullptr && op.bytes <= most && batched_bytes(op.kind, op.bytes, 0) <= room &&
           goes_by_handler(w, op);
  });
}

/// True if the operation can be held until the end of the epoch, like the epoch's lock.
bool can_wait(const window_core& w, const checked_operation& o, const deferred_epoch& epoch, bool requested) noexcept {
  if (o.bytes == 0 || o.args->signal >= 0) return false;  // a call may wait for it before the end
  if (requested || o.aggregated || (o.args->by_value && o.fetches())) return false;
  if (o.atomic() && w.mode != accumulate_mode::handler) return false;  // handlers do not carry it out
  if (o.bytes > waiting_bytes_max - std::min(epoch.bytes, waiting_bytes_max)) return false;
  return !w.defers_far || epoch.bytes + o.bytes <= deferral_bytes_max;
}

}  // namespace

admission hold_for_fence(window_core& w, const checked_operation& o, bool requested) noexcept {
  RMA_ASSERT(w.fence == fence_kind::def && w.access == access_epoch::fence);
  const operation_args& a = *o.args;
  if (o.bytes == 0) return admission::go();
  const bool awaited = requested || a.signal >= 0 || (a.by_value && a.kind != call::put);
  if (!awaited) {
    mark_dirty(w, a.target, *o.state);
    return admission::hold(hold_reason::fence, "the window's fence is def");
  }
  status s = await_target(w, a.target, o.peer);
  if (s == status::done) s = issue_deferred(w, a.target, nullptr);
  return admission::after(s);
}

admission hold_for_unlock(window_core& w, const checked_operation& o, bool requested) noexcept {
  RMA_ASSERT(o.state->epoch != nullptr);
  deferred_epoch& epoch = *o.state->epoch;
  if (o.bytes == 0 && o.args->signal < 0) return admission::go();
  if (can_wait(w, o, epoch, requested)) {
    epoch.bytes += o.bytes;
    if (o.args->kind != call::put) epoch.fetches = true;
    ++epoch.count;
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::operations_handler);
    return admission::hold(hold_reason::unlock, w.defers
                                                    ? "lock two-sided: until the end of the epoch"
                                                    : "lock auto: until the end of the epoch, while that is small");
  }
  // Later operations of this epoch use other protocols, and must not overtake the held ones.
  status s = send_deferred(w, o.args->target);
  if (s == status::done) s = complete_target(w, o.args->target);
  return admission::after(s);
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
  if (flagged != nullptr && w.schedule.aggregate_bytes != 0 && goes_as_batch(w, state, state.held)) {
    operation_record::queue all;
    {
      const std::lock_guard guard(w.ctx->lock());
      take_all_held(w, state, all);
    }
    const fence_header header{w.id, static_cast<std::uint32_t>(fence_news::finish), w.fences.number};
    const rider end{message::fence, std::as_bytes(std::span(&header, 1))};
    send_batches(w, target, state, all, &end);
    flagged->push_back(target);
    return status::done;
  }
  if (flagged != nullptr) flag_last(w, target, state, *flagged);
  operation_record::queue due;  // some may be held again, for room
  {
    const std::lock_guard guard(w.ctx->lock());
    take_all_held(w, state, due);
  }
  RMA_ASSERT(state.held.empty());
  status result = status::done;
  while (!due.empty()) {
    operation_record& op = due.front();
    due.pop_front();
    const bool is_flagged = op.signal <= last_of_epoch;
    const status s = issue_held(w, op);
    if (ok(s)) continue;
    result = s;
    if (is_flagged) std::erase(*flagged, target);  // it was not sent
  }
  return result;
}

}  // namespace rma::detail
