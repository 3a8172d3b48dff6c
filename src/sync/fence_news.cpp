// SPDX-License-Identifier: Apache-2.0
#include "sync/fence_news.hpp"

#include <algorithm>
#include <mutex>

#include "core/assert.hpp"
#include "window/window_core.hpp"

namespace rma::detail {
namespace {

/// True if fence `a` comes after fence `b`; numbers wrap around.
bool after(std::uint32_t a, std::uint32_t b) noexcept { return static_cast<std::int32_t>(a - b) > 0; }

void send_to(window_core& w, int world_rank, fence_news news, std::uint32_t number) noexcept {
  w.ctx->send_record(world_rank, message::fence, fence_header{w.id, static_cast<std::uint32_t>(news), number});
}

}  // namespace

void on_fence_news(window_core& w, int source, fence_news news, std::uint32_t number) noexcept {
  RMA_ASSERT(w.ctx->is_guarded() && news < fence_news::count_);
  fence_state& f = w.fences;
  switch (news) {
    case fence_news::finish: f.arrived.add(number); break;
    case fence_news::open: f.opened.add(number); break;
    case fence_news::neighbor_finish: w.news[source].neighbor_finished = number; break;
    case fence_news::neighbor_open: w.news[source].neighbor_opened = number; break;
    case fence_news::answer: w.news[source].through = number; break;
    case fence_news::request:
      if (after(number, f.over.load())) {
        f.askers.emplace_back(source, number);
      } else {
        send_to(w, source, fence_news::answer, number);
      }
      break;
    case fence_news::count_: break;
  }
}

void send_fence_news(window_core& w, int target, fence_news news, std::uint32_t number) noexcept {
  const int to = w.world_rank(target);
  to == w.ctx->rank() ? on_fence_news(w, to, news, number) : send_to(w, to, news, number);
}

void fence_is_over(window_core& w, std::uint32_t number) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  fence_state& f = w.fences;
  f.over.store(number);
  std::erase_if(f.askers, [&](const std::pair<int, std::uint32_t>& asked) {
    if (after(asked.second, number)) return false;
    send_to(w, asked.first, fence_news::answer, asked.second);
    return true;
  });
}

}  // namespace rma::detail
