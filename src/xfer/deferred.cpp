// SPDX-License-Identifier: Apache-2.0
/// \file
/// The queue of fence "def" (dissertation, section 6.2): what is put off until the fence, and what cannot be.
///
///   put, accumulate, get into the caller's memory     --> queue --> issued by the fence, when all ranks are in it
///   values, requests, signals: somebody waits for them --> now, when the target says that it is through the last fence
#include <algorithm>
#include <cstring>
#include <mutex>

#include "rma/detail/window_ops.hpp"
#include "xfer/fence_state.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t value_bytes_max = 64;

deferred_operation copy_of(const checked_operation& o) {
  const operation_args& a = *o.args;
  deferred_operation kept{a};
  if (!o.contiguous) {
    kept.layouts = std::make_unique<deferred_operation::shapes>();
    const auto keep = [](const Layout*& from, Layout& to) {
      if (from == nullptr) return;
      to = *from;
      from = &to;
    };
    keep(kept.args.origin_layout, kept.layouts->origin);
    keep(kept.args.result_layout, kept.layouts->result);
    keep(kept.args.target_layout, kept.layouts->target);
  }
  // Values are gone when the call returns, and an accumulate's may be: its inlined form does not say.
  const bool value = a.by_value || (a.kind == call::accumulate && a.bytes <= value_bytes_max);
  if (value && o.contiguous && a.origin != nullptr) {
    const auto* const from = static_cast<const std::byte*>(a.origin);
    kept.value.assign(from, from + a.bytes);
    kept.args.origin = kept.value.data();
  }
  kept.args.by_value = false;
  return kept;
}

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
  const status s = w.ctx->wait_for_peer(peer, [&]() noexcept {
    const std::lock_guard guard(w.ctx->lock());
    const auto known = f.answers.find(peer);
    return known != f.answers.end() && known->second == number;
  });
  if (s == status::peer_failed) w.ctx->blame(peer);
  return s;
}

/// Whether a message to the target's handler carries the operation.
bool goes_by_handler(const window_core& w, const operation_args& a) noexcept {
  const bool atomic = a.kind != call::put && a.kind != call::get;
  if (!w.is_far(a.target) || (atomic && w.mode == accumulate_mode::device)) return false;
  return atomic || is_small_for_def(a);
}

/// The last operation to each target says that it is the last, if handlers do all that this rank has for it: nothing
/// else is sure to be over when the message is handled.
void flag_last(window_core& w, std::vector<deferred_operation>& all, std::vector<int>& flagged) {
  std::vector<int> seen;
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    const int target = at->args.target;
    if (std::find(seen.begin(), seen.end(), target) != seen.end()) continue;
    seen.push_back(target);
    const target_state& state = w.state_of(target);
    const bool other_ways = state.channel || state.fabric_pending.load() != 0;
    const bool handled = std::all_of(all.begin(), all.end(), [&](const deferred_operation& d) {
      return d.args.target != target || goes_by_handler(w, d.args);
    });
    if (other_ways || !handled) continue;
    at->args.signal = last_of_fence - static_cast<int>(w.fences.number % 4);
    flagged.push_back(target);
  }
}

}  // namespace

bool is_small_for_def(const operation_args& a) noexcept {
  constexpr std::uint64_t one_message_bytes = 4000;
  return a.target_layout == nullptr && a.bytes <= one_message_bytes;
}

status defer(window_core& w, const checked_operation& o, bool requested) noexcept {
  const operation_args& a = *o.args;
  const bool awaited = requested || a.signal >= 0 || (a.by_value && a.kind != call::put);
  if (!awaited) {
    const std::lock_guard guard(w.ctx->lock());
    w.fences.deferred.push_back(copy_of(o));
    mark_dirty(w, a.target, *o.state);
    return status::posted;
  }
  if (const status s = await_target(w, a.target, o.peer); s != status::done) return s;
  return issue_deferred(w, a.target, nullptr);
}

status issue_deferred(window_core& w, int target, std::vector<int>* flagged) noexcept {
  fence_state& f = w.fences;
  std::vector<deferred_operation> now;
  if (target < 0) {
    now.swap(f.deferred);
  } else {
    const auto first = std::stable_partition(f.deferred.begin(), f.deferred.end(),
                                             [&](const deferred_operation& d) { return d.args.target != target; });
    now.assign(std::make_move_iterator(first), std::make_move_iterator(f.deferred.end()));
    f.deferred.erase(first, f.deferred.end());
  }
  if (flagged != nullptr) flag_last(w, now, *flagged);
  status result = status::done;
  f.issuing = true;
  for (const deferred_operation& d : now) {
    const status s = issue(w, d.args, nullptr);
    if (ok(s)) continue;
    result = s;
    if (flagged != nullptr && d.args.signal <= last_of_fence) std::erase(*flagged, d.args.target);  // it was not sent
  }
  f.issuing = false;
  // What the fabric reads later must stay: values are small, and what carries them is over before the fence is.
  for (deferred_operation& d : now) {
    if (!d.value.empty()) f.spent.push_back(std::move(d.value));
  }
  return result;
}

}  // namespace rma::detail
