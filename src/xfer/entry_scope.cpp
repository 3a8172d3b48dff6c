// SPDX-License-Identifier: Apache-2.0
#include "xfer/entry_scope.hpp"

#include <fmt/format.h>

#include <mutex>
#include <string>

#include "core/names.hpp"
#include "core/trace.hpp"

namespace rma::detail {
namespace {

/// What this rank knows of the target; null if that is nothing yet.
const target_state* state_if_known(const window_core& w, int target) noexcept {
  if (target < 0 || target >= w.size()) return nullptr;
  if (!w.is_far(target)) return &w.states[w.index_of(target)];
  const auto far = w.far_targets.find(target);
  return far == w.far_targets.end() ? nullptr : far->second.get();
}

/// Where the target's lock goes a way of its own, and says why; else null.
const target_state* chosen_for(const window_core& w, int target) noexcept {
  const target_state* const found = state_if_known(w, target);
  return found == nullptr || *found->lock_how == '\0' ? nullptr : found;
}

/// The place where the hybrid lock was, and who asked for it there.
std::string_view name_of_hybrid(const window_core& w, int target) noexcept {
  const target_state* const known = state_if_known(w, target);
  if (known == nullptr) return name_of(lock_protocol::hybrid);
  switch (known->path) {
    case lock_path::cpu: return "hybrid:cpu";
    case lock_path::agent: return "hybrid:manager";
    case lock_path::network: return "hybrid:network";
  }
  return name_of(lock_protocol::hybrid);
}

std::string_view name_of_network(lock_scheme scheme) noexcept {
  switch (scheme) {
    case lock_scheme::agent: return "network:agent";
    case lock_scheme::fompi: return "network:fompi";
    default: return name_of(lock_protocol::network);
  }
}

std::uint64_t words_of_barriers(const window_core& w) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  return w.ctx->value(counter::barrier_words);
}

/// How ranks of a plain fence wait for each other. `words`: rounds that were written.
std::string_view barrier_of(const window_core& w, std::uint64_t words) noexcept {
  if (w.intranode && w.team->one_node) return "a barrier by memory, on one node";
  return words != 0 ? "a barrier by words" : "a barrier by messages";
}

/// What carries an epoch call out, and why.
void explain(trace_event& e, const window_core& w, call what, int target, bool under_way) noexcept {
  const bool memory = w.intranode && w.team->one_node;
  switch (what) {
    case call::lock:
    case call::unlock:
    case call::lock_all:
    case call::unlock_all:
      e.protocol = w.locks == lock_protocol::network  ? name_of_network(w.scheme)
                   : w.locks == lock_protocol::hybrid ? name_of_hybrid(w, target)
                                                      : name_of(w.locks);
      e.why = w.locks_why;
      if (const target_state* const chosen = chosen_for(w, target); chosen != nullptr) {
        e.protocol = chosen->lock_how;
        e.why = chosen->lock_why;
      } else if (target < 0 && w.unchecked != 0) {
        e.protocol = "none";
        e.why = "no_check";
      }
      break;
    case call::flush:
    case call::flush_all:
    case call::flush_local:
    case call::flush_local_all:
    case call::sync:
      e.protocol = under_way ? "acknowledgement" : "memory fence";
      e.why = under_way ? "operations were under way" : "nothing was under way";
      break;
    case call::fence:
      e.protocol = name_of(w.fence);
      e.why = w.fence_why;
      break;
    default:
      e.protocol = memory ? "memory" : "messages";
      e.why = memory ? "one node" : w.intranode ? "the team spans nodes" : "RMA_INTRANODE=off";
  }
}

}  // namespace

std::string entry_scope::place_of(const window_core& w) {
  const std::uint64_t now = w.in_call.load(std::memory_order_relaxed);
  if (now == 0) return {};
  const auto what = static_cast<call>((now & 0xffff'ffff) - 1);
  const auto target = static_cast<int>(static_cast<std::uint32_t>(now >> 32));
  const std::string window = w.hints.name.empty() ? fmt::format("#{:x}", w.id & 0xffff) : quoted(w.hints.name);
  return target < 0 ? fmt::format("{} of window {}", name_of(what), window)
                    : fmt::format("{} of window {}, rank {}", name_of(what), window, target);
}

void entry_scope::begin() noexcept {
  inside_ = w_.crowded;
  if (inside_) w_.entrance.enter(w_.ctx->around());
  if (!w_.watched) return;
  w_.ctx->around().enter(name_of(what_), target_);
  under_way_ = !w_.dirty.empty();
  if (what_ == call::fence) words_ = words_of_barriers(w_);
  begin_ns_ = w_.ctx->around().now_ns();
}

void entry_scope::end() noexcept {
  if (w_.watched) tell();
  if (inside_) w_.entrance.leave();
}

void entry_scope::tell() noexcept {
  w_.ctx->around().leave();
  if (w_.trace == nullptr) return;
  trace_event e;
  e.begin_ns = begin_ns_;
  e.end_ns = w_.ctx->around().now_ns();
  e.call = name_of(what_);
  e.window = w_.hints.name;
  e.target = target_;
  if (operation_ != nullptr) {
    e.bytes = operation_->bytes;
    e.protocol = operation_->protocol;
    e.why = operation_->why;
  } else {
    explain(e, w_, what_, target_, under_way_);
  }
  std::string with_barrier;
  if (what_ == call::fence && w_.fence == fence_kind::placed) {
    with_barrier = fmt::format("{}; {}", e.why, barrier_of(w_, words_of_barriers(w_) - words_));
    e.why = with_barrier;
  }
  w_.trace->add(e);
}

void claim::end() noexcept {
  w_.claimed.erase(std::find(w_.claimed.begin(), w_.claimed.end(), target_));
  if (w_.claimants == 0) return;
  full_fence();
  w_.ctx->around().ring(w_.ctx->rank());
}

status await_claim(window_core& w, int target) noexcept {
  status s = status::done;
  while (s == status::done && is_claimed(w, target)) {  // again: a third thread may be faster than this one's return
    ++w.claimants;
    {
      const absence out(w);
      s = w.ctx->wait_until(
          [&]() noexcept {
            const visit in(w);
            return !is_claimed(w, target);
          },
          []() noexcept { return status::done; });
    }
    --w.claimants;
  }
  return s;
}

status closable(const window_view& view) noexcept {
  if (is_freed(view)) return status::window_freed;
  const window_core& w = core_of(view);
  const bool any = (w.objections.load(std::memory_order_relaxed) & window_core::one_thread) == 0;
  return any ? status::done : w.ctx->check_caller();
}

status usable(const window_view& view) noexcept {
  if (is_freed(view)) return status::window_freed;
  if (core_of(view).objections.load(std::memory_order_relaxed) == 0) [[likely]]
    return status::done;
  return core_of(view).failed() ? status::window_failed : closable(view);
}

}  // namespace rma::detail
