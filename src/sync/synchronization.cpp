// SPDX-License-Identifier: Apache-2.0
#include "sync/synchronization.hpp"

#include <algorithm>
#include <cstring>

#include "core/assert.hpp"
#include "sync/fence_news.hpp"
#include "sync/lock_agent.hpp"
#include "sync/range_news.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

synchronization::synchronization(engine& windows) : windows_(windows) {
  context& ctx = windows.ctx();
  ctx.set_handler(message::lock, &synchronization::on_lock, this);
  ctx.set_handler(message::fence, &synchronization::on_fence, this);
  ctx.set_handler(message::range, &synchronization::on_range, this);
  ctx.set_immediate(immediate_user::fence, &synchronization::on_immediate, this);
  ctx.add_duty(&synchronization::on_duty, this);
}

void synchronization::busy(window_core& w) {
  if (std::find(busy_.begin(), busy_.end(), &w) == busy_.end()) busy_.push_back(&w);
  windows_.ctx().on_duty(this, true);
}

unsigned synchronization::on_duty(void* self) noexcept {
  auto& me = *static_cast<synchronization*>(self);
  RMA_ASSERT(me.windows_.ctx().is_guarded());
  RMA_ASSERT(std::ranges::all_of(me.busy_, [](const window_core* w) { return w->agent != nullptr; }));
  unsigned done = 0;
  for (std::size_t i = 0; i < me.busy_.size(); ++i) done += serve_agent(*me.busy_[i]);
  std::erase_if(me.busy_, [](const window_core* w) { return !agent_is_busy(*w); });
  me.windows_.ctx().on_duty(&me, !me.busy_.empty());
  return done;
}

void synchronization::on_lock(void* self, int source, std::span<const std::byte> payload) noexcept {
  engine& windows = static_cast<synchronization*>(self)->windows_;
  RMA_ASSERT(windows.ctx().is_guarded());
  RMA_ASSERT(source >= 0 && source < windows.ctx().size());
  serve_lock(windows, source, payload);
}

void synchronization::on_fence(void* self, int source, std::span<const std::byte> payload) noexcept {
  engine& windows = static_cast<synchronization*>(self)->windows_;
  RMA_ASSERT(windows.ctx().is_guarded());
  fence_header h{};
  if (payload.size() != sizeof h)
    return windows.reject_malformed(source, message::fence, payload, malformed_reason::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  if (h.news >= static_cast<std::uint32_t>(fence_news::count_))
    return windows.reject_malformed(source, message::fence, payload, malformed_reason::wrong_contents);
  RMA_ASSERT(source >= 0 && source < windows.ctx().size());
  const auto news = static_cast<fence_news>(h.news);
  if (window_core* const w = windows.find(h.window)) {
    on_fence_news(*w, source, news, h.number);
  } else if (news == fence_news::request) {  // the window was dropped here: no rank must wait for it
    h.news = static_cast<std::uint32_t>(fence_news::answer);
    windows.ctx().send_record(source, message::fence, h);
  }
}

void synchronization::on_range(void* self, int source, std::span<const std::byte> payload) noexcept {
  engine& windows = static_cast<synchronization*>(self)->windows_;
  RMA_ASSERT(windows.ctx().is_guarded());
  range_header h{};
  if (payload.size() != sizeof h)
    return windows.reject_malformed(source, message::range, payload, malformed_reason::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  RMA_ASSERT(source >= 0 && source < windows.ctx().size());
  if (window_core* const w = windows.find(h.window)) {
    if (!on_range_news(*w, source, h))
      windows.reject_malformed(source, message::range, payload, malformed_reason::wrong_contents);
  } else if (h.news == static_cast<std::uint16_t>(range_news::request)) {
    h.news = static_cast<std::uint16_t>(range_news::failed);
    windows.ctx().send_record(source, message::range, h);
  }
}

void synchronization::on_immediate(void* self, int source, std::uint32_t value) noexcept {
  engine& windows = static_cast<synchronization*>(self)->windows_;
  RMA_ASSERT(windows.ctx().is_guarded());
  window_core* const w = windows.find_slot(slot_of_immediate(value));
  RMA_ASSERT(w == nullptr || w->slot == slot_of_immediate(value));
  if (w != nullptr) on_fence_news(*w, source, fence_news::finish, value % 4);
}

}  // namespace rma::detail
