// SPDX-License-Identifier: Apache-2.0
#include "p2p/messenger.hpp"

#include <algorithm>
#include <cstring>

#include "core/assert.hpp"
#include "datatype/copy.hpp"
#include "fabric/object_bytes.hpp"
#include "p2p/peer.hpp"

namespace rma::detail {
namespace {

constexpr std::uint32_t announcements_share = 4;  // of the memory for unexpected messages, this part is theirs alone
constexpr std::uint32_t credit_share = 4;         // so much of it is given back by a message of its own

}  // namespace

messenger::messenger(context& ctx)
    : ctx_(ctx),
      units_max_(static_cast<std::uint32_t>(ctx.config().number(knob::eager_memory) / unexpected_messages::unit_bytes)),
      eager_max_(ctx.config().number(knob::eager_bytes)) {
  ctx_.set_handler(message::eager, &messenger::on_eager, this);
  ctx_.set_handler(message::announce, &messenger::on_announce, this);
  ctx_.set_handler(message::rendezvous, &messenger::on_rendezvous, this);
  ctx_.set_handler(message::stream, &messenger::on_stream, this);
  ctx_.set_handler(message::credit, &messenger::on_credit, this);
  ctx_.add_duty(&messenger::on_duty, this);
  ctx_.add_news(&messenger::on_news, this);
}

messenger::~messenger() = default;

messenger::peer& messenger::peer_of(int rank) { return rank == last_rank_ ? *last_peer_ : find_peer(rank); }

messenger::peer& messenger::find_peer(int rank) {
  auto& p = peers_[rank];
  if (p == nullptr) {
    p = std::make_unique<peer>();
    p->rank = rank;
    p->gone = ctx_.gone(rank);
    const std::size_t message_max = ctx_.network_of(rank).caps().message_bytes_max;
    const std::size_t half = std::size_t{units_max_} * unexpected_messages::unit_bytes / 2;
    p->eager_max = std::min({eager_max_, message_max - sizeof(envelope), half - sizeof(unexpected_message)});
    p->piece_max = message_max - sizeof(stream_piece);
  }
  last_rank_ = rank;
  last_peer_ = p.get();
  return *p;
}

// ---- sends ---------------------------------------------------------------------------------------------------------

status messenger::send(send_operation& op) noexcept {
  peer& p = peer_of(op.peer);
  RMA_ASSERT(op.state == message_state::idle && op.tag >= 0);
  op.ended.store(0, std::memory_order_relaxed);
  op.with = op.peer;
  op.moved = 0;
  op.total = op.bytes;
  if (p.gone) [[unlikely]]
    return end_now(op, status::peer_failed);
  if (p.queued.empty()) {
    const status s = depart(p, op);
    if (s != status::retry_queue_full) return s;
  }
  queue(p, op);
  return status::posted;
}

void messenger::queue(peer& p, send_operation& op) noexcept {
  op.state = message_state::queued;
  p.queued.push_back(op);
  busy(p);
}

// Its envelope leaves, with the data or without.
status messenger::depart(peer& p, send_operation& op) noexcept {
  if (op.bytes <= p.eager_max && op.mode != send_mode::synchronous) {
    const std::uint32_t units = unexpected_messages::units_of(op.bytes);
    if (p.used + units <= units_max_ - units_max_ / announcements_share) return try_eager(p, op);
  }
  return try_announce(p, op);
}

status messenger::try_eager(peer& p, send_operation& op) noexcept {
  const envelope e{op.context, op.tag, p.sequence, static_cast<std::uint16_t>(p.freed)};
  if (!ctx_.try_send(p.rank, message::eager, fabric::bytes_of(e), data_of(op, 0, op.bytes)))
    return status::retry_queue_full;
  ++p.sequence;
  p.freed = 0;
  p.used += unexpected_messages::units_of(op.bytes);
  return end_now(op, status::done);
}

status messenger::try_announce(peer& p, send_operation& op) noexcept {
  const std::uint32_t units = unexpected_messages::units_of(0);
  if (p.used + units > units_max_) return status::retry_queue_full;
  ids_.add(op);
  const announcement a{{op.context, op.tag, p.sequence, static_cast<std::uint16_t>(p.freed)}, op.bytes, op.id, 0};
  if (!ctx_.try_send(p.rank, message::announce, fabric::bytes_of(a), {})) {
    ids_.remove(op);
    return status::retry_queue_full;
  }
  ++p.sequence;
  p.freed = 0;
  p.used += units;
  op.state = message_state::announced;
  return status::posted;
}

// Those that were started first leave first.
void messenger::send_queued(peer& p) noexcept {
  while (!p.queued.empty() && !p.gone) {
    auto& op = static_cast<send_operation&>(p.queued.front());
    p.queued.pop_front();
    const auto over = op.over;
    const status s = depart(p, op);
    if (s == status::retry_queue_full) return p.queued.push_front(op);
    if (s != status::posted && over != nullptr) over(op);
  }
}

std::span<const std::byte> messenger::data_of(const message_operation& op, std::size_t from,
                                              std::size_t bytes) noexcept {
  const auto* const at = static_cast<const std::byte*>(op.at);
  if (op.layout == nullptr) return {at + from, bytes};
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  pack(scratch_.data(), at, *op.layout, from, bytes);
  return {scratch_.data(), bytes};
}

// The data of sends whose receives have asked for them, as long as there is room.
void messenger::stream(peer& p) noexcept {
  constexpr unsigned pieces_per_turn = 64;
  for (unsigned left = pieces_per_turn; left > 0 && !p.streams.empty(); --left) {
    message_operation& op = p.streams.front();
    const std::size_t bytes = std::min(p.piece_max, op.total - op.moved);
    if (!ctx_.try_send(p.rank, message::stream, fabric::bytes_of(stream_piece{op.peer_id}),
                       data_of(op, op.moved, bytes)))
      return;
    op.moved += bytes;
    if (op.moved < op.total) continue;
    p.streams.pop_front();
    finish(op, status::done);
  }
}

// ---- receives ------------------------------------------------------------------------------------------------------

status messenger::receive(receive_operation& op) noexcept {
  RMA_ASSERT(op.state == message_state::idle);
  op.ended.store(0, std::memory_order_relaxed);
  op.with = op.peer;
  op.moved = 0;
  op.match_entry::key = {op.context, op.peer, op.tag};
  if (!unexpected_.empty()) {
    if (unexpected_message* const m = unexpected_.find(op.match_entry::key)) return take(op, *m);
  }
  if (op.peer != any_source && peer_of(op.peer).gone) [[unlikely]]
    return end_now(op, status::peer_failed);
  post(op);
  return status::posted;
}

void messenger::post(receive_operation& op) noexcept {
  op.number = next_number_++;
  op.state = message_state::posted;
  ++posted_count_[class_of(op.peer, op.tag)];
  posted_.add(op);
}

void messenger::unpost(receive_operation& op) noexcept {
  --posted_count_[class_of(op.peer, op.tag)];
  posted_.remove(op);
  op.state = message_state::idle;
}

// Of all that match, the one that was posted first.
receive_operation* messenger::find_posted(const match_key& key) noexcept {
  match_entry* best = posted_.find(key);
  for (unsigned kind = 1; kind < match_classes; ++kind) {
    if (posted_count_[kind] == 0) continue;
    match_entry* const found = posted_.find(key_of_class(key, kind));
    if (found != nullptr && (best == nullptr || found->number < best->number)) best = found;
  }
  return static_cast<receive_operation*>(best);
}

status messenger::take(receive_operation& op, unexpected_message& m) noexcept {
  unexpected_.remove(m);
  const match_key from = m.key;
  give_back(peer_of(from.source), m.units);
  const status s =
      m.send == 0 ? accept_data(op, from, {m.data(), m.bytes}) : accept_announced(op, from, m.bytes, m.send);
  unexpected_.free(m);
  return s;
}

status messenger::accept_data(receive_operation& op, const match_key& from, std::span<const std::byte> data) noexcept {
  op.source = from.source;
  op.message_tag = from.tag;
  op.message_bytes = data.size();
  if (data.size() > op.bytes) return end_now(op, status::message_too_long);
  if (op.layout != nullptr) {
    unpack(op.at, data.data(), *op.layout, 0, data.size());
  } else if (!data.empty()) {
    std::memcpy(op.at, data.data(), data.size());
  }
  return end_now(op, status::done);
}

status messenger::accept_announced(receive_operation& op, const match_key& from, std::uint64_t bytes,
                                   std::uint64_t send) noexcept {
  op.source = op.with = from.source;
  op.message_tag = from.tag;
  op.message_bytes = bytes;
  if (bytes == 0 || bytes > op.bytes) {
    tell(from.source, send, 0, rendezvous_step::finished);
    return end_now(op, bytes == 0 ? status::done : status::message_too_long);
  }
  op.total = bytes;
  op.peer_id = send;
  op.state = message_state::receiving;
  ids_.add(op);
  tell(from.source, send, op.id, rendezvous_step::clear_to_send);
  return status::posted;
}

void messenger::tell(int to, std::uint64_t id, std::uint64_t from, rendezvous_step step) noexcept {
  ctx_.send_record(to, message::rendezvous, rendezvous_message{id, from, step, 0});
}

// What an unexpected message has taken is free; its sender gets to know with the next envelope, or by a message of its
// own.
void messenger::give_back(peer& p, std::uint32_t units) noexcept {
  p.freed += units;
  if (p.freed < units_max_ / credit_share || p.gone) return;
  ctx_.send_record(p.rank, message::credit, credit_message{p.freed});
  p.freed = 0;
}

// ---- the end of operations -----------------------------------------------------------------------------------------

status messenger::end_now(message_operation& op, status result) noexcept {
  op.state = message_state::idle;
  op.result = result;
  op.ended.store(1, std::memory_order_release);
  return result;
}

// Whoever waits for it may take the record away as soon as it has ended.
void messenger::finish(message_operation& op, status result) noexcept {
  ids_.remove(op);
  const auto over = op.over;
  (void)end_now(op, result);
  if (over != nullptr) over(op);
}

// Out of whatever its state says that it is in.
void messenger::detach(message_operation& op) noexcept {
  switch (op.state) {
    case message_state::queued:
    case message_state::streaming:
    case message_state::failing:
      message_operation::list::node_algorithms::unlink(message_operation::list::value_traits::to_node_ptr(op));
      break;
    case message_state::posted: unpost(static_cast<receive_operation&>(op)); break;
    default: break;
  }
  ids_.remove(op);
}

bool messenger::cancel(message_operation& op) noexcept {
  if (op.state != message_state::queued && op.state != message_state::posted) return false;
  detach(op);
  (void)end_now(op, status::done);
  return true;
}

bool messenger::withdraw(message_operation& op, status result) noexcept {
  if (op.state == message_state::streaming) tell(op.with, op.peer_id, 0, rendezvous_step::gone);
  if (op.state == message_state::receiving) tell(op.with, op.peer_id, 0, rendezvous_step::gone);
  detach(op);
  (void)end_now(op, result);
  return true;
}

void messenger::busy(peer& p) noexcept {
  if (p.is_busy) return;
  p.is_busy = true;
  busy_.push_back(&p);
  ctx_.on_duty(this, true);
}

unsigned messenger::on_duty(void* self) noexcept {
  auto& me = *static_cast<messenger*>(self);
  for (std::size_t i = me.busy_.size(); i-- > 0;) {  // more may become busy
    peer& p = *me.busy_[i];
    me.stream(p);
    me.send_queued(p);
    if (!p.queued.empty() || !p.streams.empty()) continue;
    p.is_busy = false;
    me.busy_[i] = me.busy_.back();
    me.busy_.pop_back();
  }
  if (me.busy_.empty()) me.ctx_.on_duty(self, false);
  return 0;
}

// ---- peers that die or leave ---------------------------------------------------------------------------------------

// First out of all tables, then told: whoever is told may start others, and take back some of these.
void messenger::fail_all_of(peer& p) noexcept {
  p.gone = true;
  message_operation::list failed;
  const auto fail = [&](message_operation& op) {
    detach(op);
    op.state = message_state::failing;
    failed.push_back(op);
  };
  while (!p.queued.empty()) fail(p.queued.front());
  while (!p.streams.empty()) fail(p.streams.front());
  ids_.for_each([&](message_operation& op) {
    if (op.with == p.rank) fail(op);
  });
  posted_.for_each([&](match_entry& e) {
    auto& op = static_cast<receive_operation&>(e);
    if (op.peer == p.rank) fail(op);
  });
  unexpected_.for_each([&](unexpected_message& m) {
    if (m.key.source != p.rank || m.send == 0) return;
    unexpected_.remove(m);
    unexpected_.free(m);
  });
  while (!failed.empty()) {
    message_operation& op = failed.front();
    failed.pop_front();
    op.state = message_state::idle;
    finish(op, status::peer_failed);
  }
}

void messenger::look_at_peers() noexcept {
  fabric::network* const wide = ctx_.wide();
  std::vector<peer*> gone;
  for (const auto& [rank, p] : peers_) {
    if (p->gone || !ctx_.gone(rank)) continue;
    const bool says_more = wide != nullptr && !ctx_.dead(rank) && wide->expects_goodbye(rank);
    if (!says_more) gone.push_back(p.get());
  }
  for (peer* const p : gone) fail_all_of(*p);
}

void messenger::on_news(void* self) noexcept { static_cast<messenger*>(self)->look_at_peers(); }

}  // namespace rma::detail
