// SPDX-License-Identifier: Apache-2.0
#include "sync/range_news.hpp"

#include <mutex>
#include <utility>

#include "core/assert.hpp"
#include "window/window_core.hpp"

namespace rma::detail {
namespace {

void send_to(window_core& w, int world_rank, range_news news, const range_entry& e) noexcept {
  const range_header h{
      w.id, e.offset, e.bytes, e.ticket, static_cast<std::uint16_t>(news), static_cast<std::uint16_t>(e.kind)};
  if (world_rank == w.ctx->rank()) {
    (void)on_range_news(w, world_rank, h);
  } else {
    w.ctx->send_record(world_rank, message::range, h);
  }
}

void send_answers(window_core& w, const std::vector<range_answer>& answers) noexcept {
  for (const range_answer& a : answers) {
    range_entry e;
    e.ticket = a.ticket;
    send_to(w, a.rank, a.granted ? range_news::granted : range_news::failed, e);
  }
}

}  // namespace

bool on_range_news(window_core& w, int source, const range_header& h) noexcept {
  RMA_ASSERT(w.ctx->is_guarded());
  range_state& r = w.ranges;
  std::vector<range_answer> answers;
  const auto kind = static_cast<lock_kind>(h.kind);
  switch (static_cast<range_news>(h.news)) {
    case range_news::request:
      if (kind != lock_kind::shared && kind != lock_kind::exclusive) return false;
      r.table.request({source, h.ticket, kind, h.offset, h.bytes, false}, answers);
      break;
    case range_news::release: r.table.release(source, h.ticket, answers); break;
    case range_news::died:
      r.table.forget_dead(static_cast<int>(h.ticket), w.ctx->config().on(knob::lock_recovery), answers);
      break;
    case range_news::granted: r.answers[h.ticket] = true; break;
    case range_news::failed: r.answers[h.ticket] = false; break;
    default: return false;
  }
  send_answers(w, answers);
  return true;
}

void send_range_news(window_core& w, int target, range_news news, const range_entry& about) noexcept {
  send_to(w, w.world_rank(target), news, about);
}

void drop_ranges(window_core& w) noexcept {
  if (w.ranges.held.empty()) return;
  const std::lock_guard guard(w.ctx->lock());
  for (const own_range& each : std::exchange(w.ranges.held, {}))
    send_range_news(w, each.target, range_news::release, each.entry);
}

}  // namespace rma::detail
