// SPDX-License-Identifier: Apache-2.0
#include "xfer/entry_scope.hpp"

#include <fmt/format.h>

#include <mutex>
#include <string>

#include "core/names.hpp"
#include "core/trace.hpp"

namespace rma::detail {
namespace {

std::uint64_t words_of_barriers(const window_core& w) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  return w.ctx->value(counter::barrier_words);
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
  inside_ = w_.shared_by_threads;
  if (inside_) w_.mutex.enter(w_.ctx->around());
  if (!w_.observed) return;
  w_.ctx->around().enter(name_of(what_), target_);
  under_way_ = !w_.dirty.empty();
  if (what_ == call::fence) words_ = words_of_barriers(w_);
  begin_ns_ = w_.ctx->around().now_ns();
}

void entry_scope::end() noexcept {
  if (w_.observed) tell();
  if (inside_) w_.mutex.exit();
}

void entry_scope::tell() noexcept {
  w_.ctx->around().exit();
  if (w_.trace == nullptr) return;
  trace_event e;
  std::string text;
  e.begin_ns = begin_ns_;
  e.end_ns = w_.ctx->around().now_ns();
  e.call = name_of(what_);
  e.window = w_.hints.name;
  e.target = target_;
  if (operation_ != nullptr) {
    e.bytes = operation_->bytes;
    e.protocol = operation_->protocol;
    e.why = operation_->why;
    tell_signal();
  } else {
    tell_how(e, text);
  }
  w_.trace->add(e);
}

// The arrow leaves at the call's begin: the target may take the signal before the call's end.
void entry_scope::tell_signal() noexcept {
  const operation_args* const a = operation_->args;
  if (a == nullptr || a->signal < 0 || operation_->why == std::string_view("refused")) return;
  const auto signal = static_cast<unsigned>(a->signal);
  w_.trace->add_raise({w_.id, w_.ctx->rank(), w_.world_rank(target_), signal}, begin_ns_);
}

void entry_scope::tell_how(trace_event& e, std::string& text) noexcept {
  switch (what_) {
    case call::flush:
    case call::flush_all:
    case call::flush_local:
    case call::flush_local_all:
    case call::sync:
      e.protocol = under_way_ ? "acknowledgement" : "memory fence";
      e.why = under_way_ ? "operations were under way" : "nothing was under way";
      break;
    default: w_.epochs->explain(w_, what_, target_, what_ == call::fence ? words_of_barriers(w_) - words_ : 0, e, text);
  }
}

void lock_in_transition::end() noexcept {
  w_.claimed.erase(std::find(w_.claimed.begin(), w_.claimed.end(), target_));
  if (w_.claimants == 0) return;
  full_fence();
  w_.ctx->around().ring(w_.ctx->rank());
}

status await_claim(window_core& w, int target) noexcept {
  status s = status::done;
  while (s == status::done && is_claimed(w, target)) {  // a third thread may claim it before this one returns
    ++w.claimants;
    {
      const window_unlock_guard out(w);
      const auto over = [&]() noexcept {
        const window_guard in(w);
        return !is_claimed(w, target);
      };
      s = w.ctx->wait({.until = over, .woken_by = wakes::memory});
    }
    --w.claimants;
  }
  return s;
}

status closable(const window_view& view) noexcept {
  if (is_freed(view)) return status::window_freed;
  const window_core& w = core_of(view);
  const bool any = (w.blocked_by.load(std::memory_order_relaxed) & window_core::wrong_thread) == 0;
  return any ? status::done : w.ctx->check_caller();
}

status usable(const window_view& view) noexcept {
  if (is_freed(view)) return status::window_freed;
  if (core_of(view).blocked_by.load(std::memory_order_relaxed) == 0) [[likely]]
    return status::done;
  return core_of(view).failed() ? status::window_failed : closable(view);
}

}  // namespace rma::detail
