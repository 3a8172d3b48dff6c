// SPDX-License-Identifier: Apache-2.0
#include "sync/range_lock.hpp"
#include "core/assert.hpp"

#include <algorithm>
#include <mutex>

#include "rma/detail/window_ops.hpp"
#include "window/window_core.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

status check_range(window_core& w, lock_kind kind, int target, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (target < 0 || target >= w.size()) return status::bad_rank;
  if (bytes == 0 || !is_kind(kind)) return status::bad_argument;
  if (w.is_far(target) && w.ctx->wide() == nullptr) return status::unreachable;
  if (offset + bytes < offset) return status::out_of_window;
  if (w.kind == call::create_dynamic) return status::done;
  std::uint64_t size = 0;
  if (w.is_far(target)) {
    far_target* far = nullptr;
    if (const status s = find_far(w, target, far); s != status::done) return s;
    size = far->bytes;
  } else {
    size = w.identity_of(target)->identity.bytes;
  }
  return offset + bytes <= size ? status::done : status::out_of_window;
}

bool holds_any(const window_core& w, int target) noexcept {
  return std::any_of(w.ranges.held.begin(), w.ranges.held.end(),
                     [&](const own_range& each) { return each.target == target; });
}

/// Reports all dead members to the target: one of them may have held the range that this rank waits for.
void tell_deaths(window_core& w, int target) noexcept {
  for (int r = 0; r < w.size(); ++r) {
    if (!w.ctx->dead(w.world_rank(r))) continue;
    w.ctx->set_last_failed(w.world_rank(r));
    const std::lock_guard guard(w.ctx->lock());
    range_entry about;
    about.ticket = static_cast<std::uint32_t>(w.world_rank(r));
    send_range_news(w, target, range_news::died, about);
  }
}

/// Waits for the target's reply to a request.
status await_answer(window_core& w, int target, std::uint32_t ticket) noexcept {
  const int peer = w.world_rank(target);
  bool granted = false;
  std::uint32_t deaths_told = 0;
  const auto ready = [&]() noexcept {
    const std::lock_guard guard(w.ctx->lock());
    const auto at = w.ranges.answers.find(ticket);
    if (at == w.ranges.answers.end()) return false;
    granted = at->second;
    w.ranges.answers.erase(at);
    return true;
  };
  const auto failed = [&]() noexcept {
    if (w.ctx->gone(peer)) {
      w.ctx->set_last_failed(peer);
      return status::peer_failed;
    }
    if (const std::uint32_t deaths = w.ctx->deaths(); deaths != deaths_told) {
      deaths_told = deaths;
      tell_deaths(w, target);
    }
    return w.revocation();
  };
  const window_unlock_guard out(w);
  const status s = w.ctx->wait({.until = ready, .fails_if = failed});
  return s != status::done ? s : granted ? status::done : status::peer_failed;
}

}  // namespace

status lock_range(window_view& view, lock_kind kind, int target, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const window_guard in(w);
  if (const status s = check_range(w, kind, target, offset, bytes); s != status::done) return s;
  if (const status s = await_claim(w, target); s != status::done) return s;
  const own_range mine{target, {w.ctx->rank(), ++w.ranges.last_ticket, kind, offset, bytes, true}};
  const bool first = !holds_any(w, target);
  for (const own_range& each : w.ranges.held) {
    if (each.target == target && conflict(each.entry, mine.entry)) return status::wrong_epoch;
  }
  if (first) {
    if (const status s = lock(view, lock_kind::shared, target, assertion::none); s != status::done) return s;
  }
  w.ranges.held.push_back(mine);  // before the grant: another thread's range needs the target's lock, too
  {
    const std::lock_guard guard(w.ctx->lock());
    send_range_news(w, target, range_news::request, mine.entry);
  }
  const status s = await_answer(w, target, mine.entry.ticket);
  RMA_ASSERT(holds_any(w, target) && w.held(target) != 0);  // the range's own entry keeps the target's lock
  if (s == status::done) return s;
  if (s == status::revoked) {
    const std::lock_guard guard(w.ctx->lock());
    send_range_news(w, target, range_news::release, mine.entry);
  }
  std::erase_if(w.ranges.held, [&](const own_range& each) { return each.entry.ticket == mine.entry.ticket; });
  if (!holds_any(w, target)) (void)unlock(view, target);
  return s;
}

status unlock_range(window_view& view, int target, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (const status s = closable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const window_guard in(w);
  auto& held = w.ranges.held;
  const auto at = std::find_if(held.begin(), held.end(), [&](const own_range& each) {
    return each.target == target && each.entry.offset == offset && each.entry.bytes == bytes;
  });
  if (at == held.end()) return status::not_locked;
  const range_entry released = at->entry;
  const bool open = w.held(target) != 0;  // unlock of the whole target ends the epoch, but releases no range
  const status flushed = open ? flush(view, target) : status::not_locked;
  std::erase_if(held, [&](const own_range& each) { return each.entry.ticket == released.ticket; });
  {
    const std::lock_guard guard(w.ctx->lock());
    send_range_news(w, target, range_news::release, released);
  }
  if (!open || holds_any(w, target)) return flushed;
  const status unlocked = unlock(view, target);
  return flushed != status::done ? flushed : unlocked;
}

}  // namespace rma::detail
