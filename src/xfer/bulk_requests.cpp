// SPDX-License-Identifier: Apache-2.0
/// \file
/// Handling of the bulk channel's control messages: requests at the target, and news of them at the origin. They come
/// from another rank: malformed ones are rejected without any other effect.
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "core/memory_access.hpp"
#include "xfer/bulk_streams.hpp"
#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

template <class Header>
bool take_header(std::span<const std::byte> payload, Header& h, bool exactly) noexcept {
  if (exactly ? payload.size() != sizeof h : payload.size() < sizeof h) return false;
  std::memcpy(&h, payload.data(), sizeof h);
  return true;
}

/// The address in this rank's memory that the target's layout starts from; null if the access is not permitted.
std::byte* memory_of(const window_core& w, const bulk_request& r, const Layout& here) noexcept {
  const auto lower = static_cast<std::uint64_t>(here.lower());  // it may wrap around, and so does the sum
  const auto bytes = static_cast<std::uint64_t>(here.upper() - here.lower());
  if (w.kind == call::create_dynamic || (here.lower() < 0 && r.offset < std::uint64_t{0} - lower)) return nullptr;
  std::byte* const first = local_range(w, r.offset + lower, bytes);
  if (first == nullptr) return nullptr;
  if (!w.writable && !(r.put != 0 ? can_write(first, bytes) : can_read(first, bytes))) return nullptr;
  return first - here.lower();
}

}  // namespace

void bulk_streams::on_message(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<bulk_streams*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  const auto what = payload.empty() ? bulk_word{255} : static_cast<bulk_word>(payload.front());
  switch (what) {
    case bulk_word::request: me.take_request(source, payload); break;
    case bulk_word::ready:
    case bulk_word::more:
    case bulk_word::over: me.take_news(source, payload); break;
    default: me.engine_.reject_malformed(source, message::bulk, payload, malformed_reason::wrong_contents);
  }
  RMA_ASSERT(me.active_ + me.free_.size() == me.pool_.size());
  me.watch();
}

void bulk_streams::take_request(int source, std::span<const std::byte> payload) {
  RMA_ASSERT(ctx_.is_guarded());
  bulk_request r;
  if (!take_header(payload, r, true))
    return engine_.reject_malformed(source, message::bulk, payload, malformed_reason::wrong_length);
  if (r.pieces_max == 0 || (r.put == 0) != (r.posted != 0))
    return engine_.reject_malformed(source, message::bulk, payload, malformed_reason::wrong_contents);
  layout_exchange& layouts = engine_.layouts();
  const bool knows_origin = layouts.knows(source, r.here), knows_target = layouts.knows(source, r.there);
  if (!knows_origin || !knows_target) return ctx_.hold_message(source, message::bulk, payload);
  bulk_stream& s = new_stream(source);
  s.request = r;
  s.there = *layouts.find(source, r.here);
  s.here = *layouts.find(source, r.there);
  s.sends = r.put == 0;
  s.answered = true;
  s.granted = r.posted;
  if (s.sends) with(source).last_get = &s;
  RMA_ASSERT(s.at == bulk_stream::stage::waits && !s.at_origin);
  begin(s);
  ctx_.bulk().pump(source);
}

// Begins a transfer at the target. A get that fails sends an empty message to each of the origin's receives.
void bulk_streams::begin(bulk_stream& s) {
  window_core* const w = engine_.find(s.request.window);
  const fabric::capabilities& caps = ctx_.network_of(s.peer).caps();
  s.base = w == nullptr ? nullptr : memory_of(*w, s.request, s.here);
  const bool alike = s.here.bytes() == s.there.bytes() && s.here.bytes() != 0;
  const bool may = s.base != nullptr && alike && s.request.pieces_max <= caps.bulk_pieces_max;
  if (!may) {
    s.result = status::transfer_failed;
    tell(s, bulk_word::over, w == nullptr ? 1 : 0, s.result);
  }
  if (!alike || (!may && !s.sends)) return free(s);
  plan(s);
  if (s.sends) ctx_.bulk().join_sends(s.peer, s);
  if (!s.sends) ctx_.bulk().join_receives(s.peer, s);
  s.at = bulk_stream::stage::queued;
}

void bulk_streams::take_news(int source, std::span<const std::byte> payload) {
  RMA_ASSERT(ctx_.is_guarded());
  bulk_news news;
  if (!take_header(payload, news, true))
    return engine_.reject_malformed(source, message::bulk, payload, malformed_reason::wrong_length);
  peer_state& p = with(source);
  const auto index = static_cast<std::uint32_t>(news.ticket);
  const bool is_more = news.what == bulk_word::more;
  bulk_stream* const s = is_more ? p.last_get : index < pool_.size() ? pool_[index].get() : nullptr;
  const bool known = s != nullptr && s->peer == source && s->request.ticket == news.ticket && s->at_origin != is_more &&
                     s->at != bulk_stream::stage::over;
  if (!known) return;  // the transfer has ended meanwhile
  RMA_ASSERT((s->operation != nullptr) == s->at_origin);
  switch (news.what) {
    case bulk_word::ready:
      if (!s->sends) break;
      s->granted += news.count;
      if (s->at != bulk_stream::stage::waits) break;
      s->at = bulk_stream::stage::queued;
      ctx_.bulk().join_sends(source, *s);
      break;
    case bulk_word::more: s->granted += news.count; break;
    default:
      if (s->sends) {
        s->answered = true;
        s->abandoned = news.result != 0;
        if (s->abandoned && s->result == status::done) s->result = status::transfer_failed;
      }
      if (window_core* const w = news.count == 0 ? nullptr : engine_.find(s->request.window))
        w->dropped_by.store(source);
      if (s->sends && s->at == bulk_stream::stage::waits) s->at = bulk_stream::stage::posted;
      finish_if_over(*s);
  }
  ctx_.bulk().pump(source);
}

// Raises the signal of the transfer. The signal that the end of an epoch waits for is raised even if the transfer
// failed.
void bulk_streams::raise_signal(const bulk_stream& s) noexcept {
  window_core* const w = engine_.find(s.request.window);
  const std::int32_t signal = s.request.signal;
  if (w == nullptr) return;
  if (signal >= 0 && static_cast<unsigned>(signal) < w->hints.signals && s.result == status::done)
    w->array<word64>(w->my_block(), w->layout.signals_at)[signal].fetch_add(1);
  if (signal <= last_of_epoch) w->epochs->last_came(*w, s.peer, static_cast<std::uint32_t>(last_of_epoch - signal));
}

}  // namespace rma::detail
