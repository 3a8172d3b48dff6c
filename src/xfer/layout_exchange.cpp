// SPDX-License-Identifier: Apache-2.0
#include "xfer/layout_exchange.hpp"

#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "datatype/encode.hpp"
#include "xfer/bulk_streams.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t description_max = std::size_t{64} << 20;

}  // namespace

layout_exchange::layout_exchange(context& ctx, engine& owner)
    : ctx_(ctx),
      engine_(owner),
      names_max_(static_cast<std::size_t>(ctx.config().number(knob::layout_cache))),
      table_(names_max_) {
  ctx.set_handler(message::layout, &layout_exchange::on_message, this);
  ctx.add_news(&layout_exchange::on_news, this);
}

layout_exchange::peer_state& layout_exchange::with(int peer) {
  auto& found = peers_[peer];
  if (found == nullptr) found = std::make_unique<peer_state>(names_max_);
  return *found;
}

// ---- the origin ---------------------------------------------------------------------------------------------

std::uint32_t layout_exchange::name(int peer, const Layout& layout) {
  RMA_ASSERT(ctx_.is_guarded());
  layout_names& names = with(peer).named;
  if (const std::uint32_t known = names.find(layout); known != 0) return known;
  const context::peer& to = ctx_.peer_of(peer);
  const std::uint32_t number = names.add(layout, encode(layout, {}), to.last_naming, to.operations_done.load());
  describe(peer, number, layout);
  return number;
}

void layout_exchange::describe(int peer, std::uint32_t number, const Layout& layout) {
  const std::vector<std::byte> bytes = encode(layout);
  const std::size_t room = ctx_.network_of(peer).caps().message_bytes_max - sizeof(layout_header);
  layout_header h{number, static_cast<std::uint32_t>(bytes.size())};
  for (std::size_t at = 0; at < bytes.size(); at += room) {
    h.at = static_cast<std::uint32_t>(at);
    const std::size_t part = std::min(room, bytes.size() - at);
    ctx_.send_record(peer, message::layout, h, std::span(bytes).subspan(at, part));
    ctx_.count(counter::layout_bytes, part);
  }
}

// A peer that asks for a layout which no message under way names has read a damaged one, which it rejects then.
void layout_exchange::answer(int source, std::uint32_t number) {
  const Layout* layout = with(source).named.find_number(number);
  if (layout == nullptr) layout = engine_.bulk().find_layout(source, number);
  if (layout == nullptr) return ctx_.send_record(source, message::layout, layout_header{number});
  describe(source, number, *layout);
}

// ---- the target ---------------------------------------------------------------------------------------------

bool layout_exchange::knows(int source, std::uint32_t number) {
  if (table_.find(source, number) != nullptr) return true;
  std::vector<std::uint32_t>& missing = with(source).missing;
  if (std::find(missing.begin(), missing.end(), number) != missing.end()) return false;
  missing.push_back(number);
  ++missing_;
  ctx_.count(counter::layouts_asked);
  ctx_.send_record(source, message::layout, layout_header{number, 0, 0, 1});
  return false;
}

void layout_exchange::take_description(int source, const layout_header& h, std::span<const std::byte> payload) {
  RMA_ASSERT(ctx_.is_guarded() && h.asks == 0);
  peer_state& p = with(source);
  const auto part = payload.subspan(sizeof h);
  if (h.at == 0) {
    p.coming = h.number;
    p.received.clear();
  }
  const bool follows = h.number == p.coming && h.at == p.received.size();
  if (!follows || h.bytes > description_max || h.at > h.bytes || part.size() > h.bytes - h.at)
    return engine_.reject_malformed(source, message::layout, payload, malformed_reason::wrong_contents);
  p.received.insert(p.received.end(), part.begin(), part.end());
  RMA_ASSERT(p.received.size() <= h.bytes);
  if (p.received.size() != h.bytes) return;
  status outcome = status::done;
  Layout layout = h.bytes == 0 ? Layout() : decode(p.received, outcome);
  if (outcome != status::done)
    engine_.reject_malformed(source, message::layout, payload, malformed_reason::wrong_contents);
  table_.add(source, h.number, std::move(layout), h.bytes, missing_ == 0);
  RMA_ASSERT(missing_ >= p.missing.size());
  missing_ -= std::erase(p.missing, h.number);
  if (p.missing.empty()) ctx_.release_messages(source);
}

void layout_exchange::on_message(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<layout_exchange*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(me.missing_ == 0 || !me.peers_.empty());
  layout_header h;
  if (payload.size() < sizeof h)
    return me.engine_.reject_malformed(source, message::layout, payload, malformed_reason::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  if (h.asks != 0) {
    me.answer(source, h.number);
  } else {
    me.take_description(source, h, payload);
  }
}

// A rank that has gone describes nothing any more: what it had sent behind an unknown layout is dropped.
void layout_exchange::on_news(void* self) noexcept {
  auto& me = *static_cast<layout_exchange*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  for (auto at = me.peers_.begin(); at != me.peers_.end();) {
    const auto next = std::next(at);
    if (me.ctx_.gone(at->first)) {
      RMA_ASSERT(me.missing_ >= at->second->missing.size());
      me.missing_ -= at->second->missing.size();
      me.table_.forget(at->first);
      me.ctx_.drop_held(at->first);
      me.peers_.erase(at);
    }
    at = next;
  }
}

}  // namespace rma::detail
