// SPDX-License-Identifier: Apache-2.0
/// \file
/// The posting of transfers in order, and their end.
#include "xfer/bulk_streams.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {

bulk_streams::bulk_streams(context& ctx, engine& owner)
    : ctx_(ctx), engine_(owner), keeps_plans_(ctx.config().number(knob::layout_cache) != 0) {
  ctx.set_handler(message::bulk, &bulk_streams::on_message, this);
  ctx.add_duty(&bulk_streams::on_duty, this);
}

bulk_streams::peer_state& bulk_streams::with(int peer) {
  auto& found = peers_[peer];
  if (found == nullptr) found = std::make_unique<peer_state>();
  return *found;
}

bulk_stream& bulk_streams::new_stream(int peer) {
  if (free_.empty()) {
    bulk_stream& made = *pool_.emplace_back(std::make_unique<bulk_stream>());
    made.run = &bulk_streams::on_piece;
    made.post = &bulk_streams::post_next;
    made.posted = &bulk_streams::after_last;
    made.owner = this;
    made.index = static_cast<std::uint32_t>(pool_.size() - 1);
    free_.push_back(&made);
  }
  bulk_stream& s = *free_.back();
  RMA_ASSERT(s.operation == nullptr && !s.in_queue.is_linked());
  free_.pop_back();
  s.peer = peer;
  s.at_origin = s.sends = s.requested = s.answered = s.abandoned = s.list_is_cut = false;
  s.at = bulk_stream::stage::waits;
  s.result = status::done;
  s.granted = s.under_way = 0;
  s.messages_cut = 0;
  s.arrived = 0;
  with(peer).all.push_back(s);
  ++active_;
  return s;
}

void bulk_streams::free(bulk_stream& s) noexcept {
  RMA_ASSERT(active_ != 0 && s.under_way == 0);
  RMA_ASSERT(s.at != bulk_stream::stage::over && s.at != bulk_stream::stage::queued && !s.in_queue.is_linked());
  peer_state& p = with(s.peer);
  p.all.erase(p.all.iterator_to(s));
  if (p.last_get == &s) p.last_get = nullptr;
  s.cut.reset();
  s.plan.reset();
  s.here = s.there = Layout();
  s.at = bulk_stream::stage::over;
  s.operation = nullptr;
  ++s.generation;
  --active_;
  free_.push_back(&s);
}

// ---- the origin ---------------------------------------------------------------------------------------------

void bulk_streams::start(window_core& w, const checked_operation& o, operation_record& op) {
  const operation_args& a = *o.args;
  const bool put = a.kind == call::put;
  bulk_stream& s = new_stream(o.peer);
  const fabric::capabilities& caps = ctx_.network_of(o.peer).caps();
  s.at_origin = true;
  s.sends = put;
  // If a completion means that the data are placed, the target reports only failures.
  s.answered = !put || caps.write_means == fabric::write_completion::placed;
  s.operation = &op;
  s.here = *o.origin;
  s.there = *o.target;
  s.base = static_cast<std::byte*>(put ? const_cast<void*>(a.origin) : a.result);
  s.request = {};
  s.request.put = put ? 1 : 0;
  s.request.pieces_max = static_cast<std::uint16_t>(std::min<std::size_t>(caps.bulk_pieces_max, UINT16_MAX));
  s.request.signal = a.signal;
  s.request.window = w.id;
  s.request.offset = o.offset;
  s.request.ticket = (std::uint64_t{s.generation} << 32) | s.index;
  s.request.here = name(s, s.here);
  s.request.there = name(s, s.there);
  plan(s);
  ctx_.network_of(o.peer).expect_pieces(
      {{s.base + s.here.lower(), static_cast<std::size_t>(s.here.upper() - s.here.lower())},
       s.here.bytes(),
       s.here.blocks(),
       true});
  ++op.pieces;
  if (put) {
    send_request(s, 0);
  } else {
    ctx_.bulk().join_receives(s.peer, s);
    s.at = bulk_stream::stage::queued;
    ctx_.bulk().pump(s.peer);
  }
  watch();
}

const Layout* bulk_streams::find_layout(int peer, std::uint32_t number) noexcept {
  for (const bulk_stream& s : with(peer).all) {
    if (s.at_origin && s.request.here == number) return &s.here;
    if (s.at_origin && s.request.there == number) return &s.there;
  }
  return nullptr;
}

std::uint32_t bulk_streams::name(const bulk_stream& s, const Layout& layout) {
  const std::uint32_t number = engine_.layouts().name(s.peer, layout);
  ctx_.count(counter::layout_bytes, sizeof number);
  return number;
}

void bulk_streams::send_request(bulk_stream& s, std::uint32_t posted) {
  s.requested = true;
  s.request.posted = posted;
  ctx_.send_record(s.peer, message::bulk, s.request);
}

void bulk_streams::tell(const bulk_stream& s, bulk_word what, std::uint32_t count, status result) noexcept {
  bulk_news news;
  news.what = what;
  news.result = static_cast<std::int8_t>(result);
  news.count = count;
  news.ticket = s.request.ticket;
  ctx_.send_record(s.peer, message::bulk, news);
}

// ---- posting ------------------------------------------------------------------------------------------------

bulk_turn::progress bulk_streams::post_next(bulk_turn& self) {
  auto& s = static_cast<bulk_stream&>(self);
  return s.sends ? s.owner->post_sends(s) : s.owner->post_receives(s);
}

void bulk_streams::after_last(bulk_turn& self) {
  auto& s = static_cast<bulk_stream&>(self);
  s.at = bulk_stream::stage::posted;
  s.owner->finish_if_over(s);
}

// The division of the data is determined at the first transfer of two layouts, and cached under their numbers. A peer
// may reuse a number for another layout, so that the plan contains its layouts.
void bulk_streams::plan(bulk_stream& s) {
  const matching_limits limits{s.request.pieces_max, ctx_.network_of(s.peer).caps().transfer_bytes_max};
  peer_state& p = with(s.peer);
  plan_cache& plans = s.at_origin ? p.plans_as_origin : p.plans_as_target;
  const std::uint64_t key = std::uint64_t{s.request.here} << 32 | s.request.there;
  if (const auto* const kept = plans.find(key); kept != nullptr && (*kept)->is_for(s.here, s.there, limits)) {
    s.plan = *kept;
    return;
  }
  ctx_.count(counter::layout_plans);
  const bool is_kept = keeps_plans_ && std::max(s.here.blocks(), s.there.blocks()) <= transfer_plan::blocks_max;
  if (!is_kept) {
    s.cut.emplace(s.here, s.there, limits);
    return;
  }
  s.plan = std::make_shared<const transfer_plan>(s.here, s.there, limits);
  plans.remove(key);
  plans.make_room();
  plans.add(key, s.plan);
}

void bulk_streams::cut_next(bulk_stream& s) {
  if (std::exchange(s.list_is_cut, true)) return;
  RMA_ASSERT(s.plan != nullptr || s.cut.has_value());
  RMA_ASSERT(!s.is_all_cut());
  s.list.clear();
  if (s.plan != nullptr) {
    for (const transfer_plan::piece& each : s.plan->message(s.messages_cut++))
      s.list.push_back({s.base + each.offset, each.bytes});
    return;
  }
  (void)s.cut->next([&s](std::ptrdiff_t at, std::size_t bytes) { s.list.push_back({s.base + at, bytes}); });
}

// Posts as many receives as there is room for, and in the same step sends the message that permits the peer as many
// sends.
bulk_turn::progress bulk_streams::post_receives(bulk_stream& s) {
  fabric::network& network = ctx_.network_of(s.peer);
  std::uint32_t posted = 0;
  bool room = true;
  while (room && s.result == status::done && (s.list_is_cut || !s.is_all_cut())) {
    cut_next(s);
    const status made = network.post_bulk_receive(s.peer, s.list, fabric::token_of(s));
    room = made != status::retry_queue_full;
    if (!room) break;
    if (!ok(made)) {
      s.result = made == status::peer_failed ? made : status::transfer_failed;
      break;
    }
    s.list_is_cut = false;
    ++s.under_way;
    ++posted;
  }
  ctx_.count(counter::layout_requests, posted);
  if (posted != 0 && !s.at_origin) {
    tell(s, bulk_word::ready, posted);
  } else if (posted != 0 && std::exchange(s.requested, true)) {
    tell(s, bulk_word::more, posted);
  } else if (posted != 0) {
    send_request(s, posted);
  }
  return room ? progress::over : progress::no_room;
}

// Posts one send for each receive of the peer, even after a failure.
bulk_turn::progress bulk_streams::post_sends(bulk_stream& s) {
  fabric::network& network = ctx_.network_of(s.peer);
  while (s.granted != 0 && (s.list_is_cut || !s.is_all_cut())) {
    cut_next(s);
    std::span<const fabric::local_slice> list(s.list);
    if (s.result != status::done) list = {};
    status made = network.send_bulk(s.peer, list, fabric::token_of(s));
    if (made == status::retry_queue_full) return progress::no_room;
    if (!ok(made) && made != status::peer_failed) {  // the next iteration sends an empty message
      s.result = status::transfer_failed;
      continue;
    }
    if (!ok(made)) {
      s.result = made;
      return progress::over;
    }
    s.list_is_cut = false;
    --s.granted;
    ++s.under_way;
    ctx_.count(counter::layout_requests);
  }
  const bool over = (s.abandoned && s.granted == 0) || (s.is_all_cut() && !s.list_is_cut);
  return over ? progress::over : progress::waits;
}

void bulk_streams::on_piece(fabric::completion& self, status result, std::uint64_t bytes) noexcept {
  auto& s = static_cast<bulk_stream&>(self);
  bulk_streams& me = *s.owner;
  const int peer = s.peer;
  RMA_ASSERT(s.under_way != 0);
  --s.under_way;
  s.arrived += bytes;
  if (result != status::done && s.result == status::done)
    s.result = result == status::peer_failed ? result : status::transfer_failed;
  me.finish_if_over(s);
  me.ctx_.bulk().pump(peer);
  me.watch();
}

void bulk_streams::finish_if_over(bulk_stream& s) {
  if (s.at != bulk_stream::stage::posted || s.under_way != 0) return;
  if (!s.sends && s.result == status::done && s.arrived != s.here.bytes()) s.result = status::transfer_failed;
  if (s.at_origin && !s.answered && s.result != status::peer_failed) return;
  operation_record* const op = s.operation;
  const status result = s.result;
  if (!s.at_origin) {
    raise_signal(s);
    const bool placed = ctx_.network_of(s.peer).caps().write_means == fabric::write_completion::placed;
    if (!s.sends && (result == status::done ? !placed : result != status::peer_failed))
      tell(s, bulk_word::over, 0, result);
  }
  free(s);
  if (op != nullptr) engine_.end_piece(*op, result);
}

// ---- deaths -------------------------------------------------------------------------------------------------

// The fabric ends its posted operations; the others end here.
void bulk_streams::end_peer(int peer) {
  peer_state& p = with(peer);
  for (auto at = p.all.begin(); at != p.all.end();) {
    bulk_stream& s = *at++;
    bulk_order::remove(s);
    s.result = status::peer_failed;
    s.at = bulk_stream::stage::posted;
    finish_if_over(s);
  }
}

unsigned bulk_streams::on_duty(void* self) noexcept {
  auto& me = *static_cast<bulk_streams*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(me.active_ + me.free_.size() == me.pool_.size());
  if (std::exchange(me.deaths_seen_, me.ctx_.deaths()) == me.ctx_.deaths()) return 0;
  std::vector<int>& some = me.stirred_;
  some.clear();
  for (const auto& [peer, p] : me.peers_) {
    if (!p->all.empty() && me.ctx_.dead(peer)) some.push_back(peer);
  }
  for (const int peer : some) me.end_peer(peer);
  me.watch();
  return 0;
}

}  // namespace rma::detail
