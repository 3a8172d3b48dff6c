// SPDX-License-Identifier: Apache-2.0
#include "p2p/messenger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/assert.hpp"
#include "datatype/copy.hpp"
#include "fabric/object_bytes.hpp"
#include "p2p/peer.hpp"
#include "p2p/quick.hpp"
#include "p2p/rendezvous/table.hpp"

namespace rma::detail {
namespace {

constexpr std::uint32_t announcements_share = 4;  // this part of the memory for unexpected messages is reserved
constexpr std::uint32_t credit_share = 4;         // a credit message returns this part of it

}  // namespace

messenger::messenger(context& ctx)
    : ctx_(ctx),
      units_max_(static_cast<std::uint32_t>(ctx.config().number(knob::eager_memory) / unexpected_messages::unit_bytes)),
      eager_units_max_(units_max_ - units_max_ / announcements_share),
      credit_units_(units_max_ / credit_share) {
  quick_ = !ctx_.keeps_accounts();
  assume_ends_ = ctx_.config().is(knob::polled_end, "assume");
  ring_peers_max_ = ctx_.config().number(knob::ring_peers);
  ring_slots_ = static_cast<std::uint32_t>(ctx_.config().number(knob::ring_slots));
  if (ctx_.config().is(knob::ring_set, "traffic")) ring_policy_ = ring_policy::traffic;
  if (ctx_.config().is(knob::ring_set, "hint")) ring_policy_ = ring_policy::hint;
  if (ctx_.config().is(knob::ring_order, "sequential")) ring_order_ = ring_order::sequential;
  if (ctx_.config().is(knob::ring_order, "priority")) ring_order_ = ring_order::priority;
  ctx_.set_handler(message::eager, &messenger::on_eager, this);
  ctx_.set_handler(message::announce, &messenger::on_announce, this);
  ctx_.set_handler(message::request, &messenger::on_request, this);
  ctx_.set_handler(message::early_request, &messenger::on_early_request, this);
  ctx_.set_handler(message::rendezvous, &messenger::on_rendezvous, this);
  ctx_.set_handler(message::stream, &messenger::on_stream, this);
  ctx_.set_handler(message::credit, &messenger::on_credit, this);
  ctx_.set_immediate(immediate_user::messages, &messenger::on_ring_immediate, this);
  ctx_.add_duty(&messenger::on_duty, this);
  ctx_.add_news(&messenger::on_news, this);
  ctx_.add_before_sleep(&messenger::before_sleep, this);
  random_ = static_cast<std::uint64_t>(ctx_.rank()) * 0x9E3779B97F4A7C15U + 1;
  for (const rendezvous_protocol* const each : rendezvous_rows) {
    if (!ctx_.config().is(knob::rendezvous, each->name)) continue;
    kind_ = each->kind;
    automatic_ = false;
  }
  const bool polls = ctx_.wide() != nullptr && put_protocol.refuses(ctx_.wide()->caps()) == nullptr;
  may_ask_ = automatic_ ? polls || (assume_ends_ && ctx_.wide() != nullptr) : rendezvous_of(kind_).receiver_initiates;
}

// Where all data are sent in messages, a rendezvous saves no copy of what fits one, and takes three messages.
std::size_t messenger::eager_bytes(const settings& config, const fabric::capabilities& caps) noexcept {
  constexpr std::size_t of_messages = std::size_t{32} << 10;
  const bool by_messages = !caps.one_sided && !caps.copies_by_cpu;
  return by_messages && config.is_initial(knob::eager_bytes) ? of_messages : config.number(knob::eager_bytes);
}

// Other ranks write no more to memory that is freed here.
messenger::~messenger() {
  for (const auto& [rank, p] : peers_) {
    if (p->ring_in != nullptr) ctx_.network_of(rank).deregister_region(p->ring_region);
  }
  ids_.for_each([this](message_operation& op) { conceal(op); });
}

messenger::peer& messenger::peer_of(int rank) { return rank == last_rank_ ? *last_peer_ : find_peer(rank); }

messenger::peer& messenger::find_peer(int rank) {
  auto& p = peers_[rank];
  if (p == nullptr) {
    p = std::make_unique<peer>();
    p->rank = rank;
    p->gone = ctx_.dead(rank);
    if (!p->gone && ctx_.gone(rank)) await_last_words();
    const fabric::capabilities& caps = ctx_.network_of(rank).caps();
    const std::size_t message_max = caps.message_bytes_max;
    p->kind = possible(kind_, caps);
    const rendezvous_kind early = automatic_ ? rendezvous_kind::put : kind_;
    p->asks = rendezvous_of(early).receiver_initiates && possible(early, caps) == early;
    if (p->asks) p->early_kind = early;
    const std::size_t half = std::size_t{units_max_} * unexpected_messages::unit_bytes / 2;
    p->eager_max =
        std::min({eager_bytes(ctx_.config(), caps), message_max - sizeof(envelope), half - sizeof(unexpected_message)});
    p->piece_max = message_max - sizeof(stream_piece);
    choose_ring(*p, caps);
    find_lines(*p);
  }
  last_rank_ = rank;
  last_peer_ = p.get();
  return *p;
}

// Replaces a protocol that the fabric does not support for such data.
rendezvous_kind messenger::possible(rendezvous_kind wanted, const fabric::capabilities& caps,
                                    std::size_t bytes) const noexcept {
  const rendezvous_protocol& protocol = rendezvous_of(wanted);
  const bool one_piece = !protocol.polls || bytes <= caps.transfer_bytes_max;
  const bool assumed = assume_ends_ && caps.one_sided && !caps.copies_by_cpu;
  if (one_piece && (protocol.refuses(caps) == nullptr || assumed)) return wanted;
  return protocol.reads ? rendezvous_kind::getcqe : rendezvous_kind::rput;
}

// ---- sends -----------------------------------------------------------------------------------------------------

status messenger::send(send_operation& op) noexcept {
  peer& p = peer_of(op.peer);
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(op.state == message_state::idle && op.tag >= 0);
  RMA_ASSERT(op.ended.load(std::memory_order_relaxed) != 0 && op.id == 0);
  op.ended.store(0, std::memory_order_relaxed);
  op.with = op.peer;
  op.is_void = op.by_message = false;
  op.is_send = true;
  if (trace_ != nullptr) [[unlikely]]
    op.begin_ns = ctx_.around().now_ns();
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

bool messenger::is_eager(const peer& p, const send_operation& op) const noexcept {
  return op.bytes <= p.eager_max && op.mode != send_mode::synchronous &&
         p.used + unexpected_messages::units_of(op.bytes) <= eager_units_max_;
}

void messenger::queue(peer& p, send_operation& op) noexcept {
  RMA_ASSERT(op.state == message_state::idle && !p.gone);
  op.state = message_state::queued;
  p.queued.push_back(op);
  busy(p);
}

// Sends the envelope, with or without the data; or the data at once if the receive has sent a request.
status messenger::depart(peer& p, send_operation& op) noexcept {
  RMA_ASSERT(op.is_send && op.with == p.rank && !p.gone);
  RMA_ASSERT(op.ended.load(std::memory_order_relaxed) == 0);
  if (p.has_requests && use_request(p, op)) [[unlikely]]
    return status::posted;
  if (p.has_used && tell_use(p, op)) [[unlikely]]
    op.by_message = true;  // behind the message of `tell_use`
  return op.id == 0 && is_eager(p, op) ? try_eager(p, op) : try_announce(p, op);
}

status messenger::try_eager(peer& p, send_operation& op) noexcept {
  RMA_ASSERT(op.id == 0);  // an operation with an identifier is announced
  if (p.lines != nullptr && op.layout == nullptr && op.bytes <= short_message_max) {
    if (!put_line(*p.lines, op.context, op.tag, op.at, op.bytes)) return status::retry_queue_full;
    op.path = message_path::eager;
    return end_now(op, status::done);
  }
  report_step();
  const envelope e{op.context, op.tag, p.sequence, static_cast<std::uint16_t>(p.freed)};
  const bool by_ring = p.ring_out != nullptr && !op.by_message && try_ring(p, e, op);
  if (!by_ring && !ctx_.try_send(p.rank, message::eager, fabric::bytes_of(e), data_of(op, 0, op.bytes)))
    return status::retry_queue_full;
  report_step();
  ctx_.count(counter::eager_messages);
  if (p.asks) [[unlikely]] {
    if (p.eager_sent == nullptr) p.eager_sent = std::make_unique<std::array<envelope, 16>>();
    (*p.eager_sent)[p.eager_next] = e;
    p.eager_next = static_cast<std::uint16_t>((p.eager_next + 1U) % p.eager_sent->size());
    ++p.eager_count;
  }
  dequeue(p);
  p.freed = 0;
  p.used += unexpected_messages::units_of(op.bytes);
  RMA_ASSERT(p.used <= eager_units_max_);
  op.path = by_ring ? message_path::ring : message_path::eager;
  return end_now(op, status::done);
}

// The rendezvous begins with the first try.
status messenger::try_announce(peer& p, send_operation& op) noexcept {
  const std::uint32_t units = unexpected_messages::units_of(0);
  if (op.id == 0) {
    choose(p, op);
    op.path = op.bytes > p.eager_max              ? message_path::too_long
              : op.mode == send_mode::synchronous ? message_path::synchronous
                                                  : message_path::no_credit;
    ids_.add(op);
    if (rendezvous_of(op.kind).reads && !expose(op)) op.kind = rendezvous_kind::stream;
    op.match_entry::key = {op.context, op.peer, op.tag};
  }
  RMA_ASSERT(op.step == rendezvous_state::begin && op.moving == nullptr);
  if (p.used + units > units_max_) return status::retry_queue_full;
  const bool reads = rendezvous_of(op.kind).reads;
  announcement a{};
  a.of = {op.context, op.tag, p.sequence, static_cast<std::uint16_t>(p.freed)};
  a.bytes = op.bytes;
  a.send = op.id;
  if (reads) {
    a.address = op.exposed.address;
    a.key = op.exposed.key;
    a.last = static_cast<std::uint8_t>(*last_byte(op));
  }
  if (op.kind == rendezvous_kind::sgrs) a.address = op.part_bytes;
  a.kind = static_cast<std::uint16_t>(op.kind);
  a.void_request = op.is_void ? 1 : 0;
  a.lists = op.kind == rendezvous_kind::sgrs || (op.layout == nullptr && op.bytes != 0) ? 1 : 0;
  a.writable = automatic_ && op.layout == nullptr && op.bytes != 0 ? 1 : 0;
  report_step();
  if (!ctx_.try_send(p.rank, message::announce, fabric::bytes_of(a), {})) return status::retry_queue_full;
  report_step();
  ctx_.count(counter::announced_messages);
  ctx_.count(counter::rendezvous_messages);
  op.number = p.sequence;
  dequeue(p);
  p.freed = 0;
  p.used += units;
  op.state = message_state::announced;
  op.step = rendezvous_of(op.kind).sender(op.step, rendezvous_event::start).next;
  RMA_ASSERT(op.step == rendezvous_state::announced);
  announced_.add(op);
  return status::posted;
}

// Sends leave in the order of their starts.
void messenger::send_queued(peer& p) noexcept {
  while (!p.queued.empty() && !p.gone) {
    auto& op = static_cast<send_operation&>(p.queued.front());
    RMA_ASSERT(op.state == message_state::queued);
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

// Sends the data of streams that receives have requested, as long as there is room.
void messenger::stream(peer& p) noexcept {
  constexpr unsigned pieces_per_turn = 64;
  for (unsigned left = pieces_per_turn; left > 0 && !p.streams.empty(); --left) {
    message_operation& op = p.streams.front();
    RMA_ASSERT(op.state == message_state::streaming && op.moved <= op.total);
    const std::size_t bytes = std::min(p.piece_max, op.total - op.moved);
    if (!ctx_.try_send(p.rank, message::stream, fabric::bytes_of(stream_piece{op.peer_id}),
                       data_of(op, op.moved, bytes)))
      return;
    op.moved += bytes;
    if (op.moved < op.total) continue;
    p.streams.pop_front();
    op.state = message_state::announced;
    sender_event(static_cast<send_operation&>(op), rendezvous_event::moved);
  }
}

// ---- receives --------------------------------------------------------------------------------------------------

status messenger::receive(receive_operation& op) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(op.state == message_state::idle);
  RMA_ASSERT(op.ended.load(std::memory_order_relaxed) != 0 && op.id == 0);
  op.ended.store(0, std::memory_order_relaxed);
  op.with = op.peer;
  op.moved = 0;
  op.match_entry::key = {op.context, op.peer, op.tag};
  op.id = 0;
  if (trace_ != nullptr) [[unlikely]]
    op.begin_ns = ctx_.around().now_ns();
  if (!unexpected_.empty()) {
    if (unexpected_message* const m = unexpected_.find(op.match_entry::key)) {
      unexpected_.remove(*m);
      return receive_held(op, *m);
    }
  }
  if (op.peer != any_source && peer_of(op.peer).gone) [[unlikely]]
    return end_now(op, status::peer_failed);
  post(op);
  if (crowded_ != 0) [[unlikely]]
    lend_to(op.peer);
  if (may_ask_) [[unlikely]]
    consider_asking(&op);
  return status::posted;
}

void messenger::post(receive_operation& op) noexcept {
  RMA_ASSERT(op.state == message_state::idle && op.id == 0);
  op.state = message_state::posted;
  posted_.add(op);
}

void messenger::unpost(receive_operation& op) noexcept {
  RMA_ASSERT(op.state == message_state::posted);
  posted_.remove(op);
  op.state = message_state::idle;
  if (may_ask_) [[unlikely]]
    consider_asking(posted_.first_of(op.match_entry::key));
}

status messenger::receive_held(receive_operation& op, unexpected_message& m) noexcept {
  RMA_ASSERT(op.state == message_state::idle && op.id == 0);
  op.ended.store(0, std::memory_order_relaxed);
  op.moved = 0;
  const match_key from = m.key;
  peer& p = peer_of(from.source);
  give_back_held(p, m.units);
  if (p.gone && m.send != 0) {  // the sender has gone since the message was held
    unexpected_.free(m);
    op.source = from.source;
    return end_now(op, status::peer_failed);
  }
  const status s = m.send == 0 ? accept_data(op, from, {m.data(), m.bytes}) : accept_announced(op, from, m);
  unexpected_.free(m);
  return s;
}

status messenger::accept_data(receive_operation& op, const match_key& from, std::span<const std::byte> data) noexcept {
  RMA_ASSERT(op.state == message_state::idle && op.id == 0);  // no other rank writes to its buffer
  op.source = from.source;
  op.message_tag = from.tag;
  op.message_bytes = data.size();
  op.path = message_path::eager;
  if (data.size() > op.bytes) return end_now(op, status::message_too_long);
  if (op.layout != nullptr) {
    unpack(op.at, data.data(), *op.layout, 0, data.size());
  } else if (!data.empty()) {
    std::memcpy(op.at, data.data(), data.size());
  }
  return end_now(op, status::done);
}

// The sender has proposed a protocol; what this side cannot do is requested as a stream.
status messenger::accept_announced(receive_operation& op, const match_key& from, const announced_message& m) noexcept {
  RMA_ASSERT(op.state == message_state::idle && op.ended.load(std::memory_order_relaxed) == 0);
  op.source = op.with = from.source;
  op.message_tag = from.tag;
  op.message_bytes = m.bytes;
  op.peer_id = m.send;
  op.path = message_path::too_long;
  if (m.bytes == 0 || m.bytes > op.bytes) {
    if (op.id != 0) detach(op);  // its source does not write more than the request allows
    tell(from.source, m.send, 0, rendezvous_step::finished);
    return end_now(op, m.bytes == 0 ? status::done : status::message_too_long);
  }
  op.state = message_state::receiving;
  if (op.id != 0 && op.has_asked && m.void_request == 0) {  // the request has crossed the announcement, and is used
    if (m.kind == static_cast<std::uint16_t>(rendezvous_kind::sgrs)) op.part_bytes = m.address;  // if it is declined
    if (op.told_bytes == 0) return status::posted;
    return started(op, [&] { on_finished(op, op.told_bytes); });
  }
  op.total = m.bytes;
  const fabric::capabilities& caps = ctx_.network_of(op.with).caps();
  if (op.id != 0) {
    detach(op);
    op.state = message_state::receiving;
  }
  op.reset(static_cast<rendezvous_kind>(m.kind));
  op.reason = rendezvous_reason::sender_first;
  ids_.add(op);
  op.last = static_cast<std::byte>(m.last);
  op.remote = {m.address, m.bytes, m.key};
  const bool by_lists = op.kind == rendezvous_kind::sgrs;
  if (by_lists || op.layout != nullptr) {
    op.part_bytes = m.lists != 0 ? part_bytes(op, by_lists ? m.address : ~std::size_t{0}) : 0;
    op.kind = op.part_bytes != 0 ? rendezvous_kind::sgrs : rendezvous_kind::stream;
  }
  op.kind = possible(op.kind, caps, op.total);
  if (!automatic_) note_replaced(op.with);
  const bool may_write = m.writable != 0 && op.layout == nullptr && !is_read_from_map(op, caps);
  if (may_write && is_mapped(op)) {
    op.kind = rendezvous_kind::rput;
    op.reason = rendezvous_reason::mapped_receive;
  } else if (may_write && op.kind == rendezvous_kind::getcqe && ctx_.waits_spin()) {
    choose_copy(op);
  } else if (op.kind == rendezvous_kind::stream) {
    op.reason = may_write ? rendezvous_reason::both_private : rendezvous_reason::layout;
  } else if (op.kind == rendezvous_kind::sgrs) {
    op.reason = rendezvous_reason::in_lists;
  }
  return started(op, [&] { receiver_event(op, rendezvous_event::announced); });
}

void messenger::tell(int to, std::uint64_t id, std::uint64_t from, rendezvous_step step, std::uint64_t bytes) noexcept {
  ctx_.count(counter::rendezvous_messages);
  ctx_.send_record(to, message::rendezvous, rendezvous_message{id, from, bytes, step, 0});
}

void messenger::forget_team(std::uint64_t team_id) noexcept {
  const std::lock_guard guard(ctx_.lock());
  unexpected_.for_each([&](unexpected_message& m) {
    if (m.key.context >> 1 != message_context(team_id, message_user::program) >> 1) return;
    hold(m);
    discard(m);
  });
}

void messenger::end_program() noexcept {
  const std::lock_guard guard(ctx_.lock());
  program_ended_ = true;
  unexpected_.for_each([&](unexpected_message& m) {
    if (user_of(m.key.context) != message_user::program) return;
    hold(m);
    discard(m);
  });
}

void messenger::discard(unexpected_message& m) noexcept {
  peer& p = peer_of(m.key.source);
  give_back_held(p, m.units);
  if (m.send != 0 && !p.gone) tell(p.rank, m.send, 0, rendezvous_step::finished);
  unexpected_.free(m);
}

std::size_t messenger::sources() const noexcept {
  const auto has_sent = [&](const auto& each) { return each.first != ctx_.rank() && each.second->seen != 0; };
  return static_cast<std::size_t>(std::ranges::count_if(peers_, has_sent));
}

// ---- the end of operations -------------------------------------------------------------------------------------

status messenger::end_now(message_operation& op, status result) noexcept {
  RMA_ASSERT(op.ended.load(std::memory_order_relaxed) == 0);  // an operation ends once
  RMA_ASSERT(op.id == 0 && (result == status::done || !ok(result)));
  op.state = message_state::idle;
  op.result = result;
  if (op.marked != nullptr) [[unlikely]]
    restore_last_byte(static_cast<receive_operation&>(op), result);
  if (trace_ != nullptr) [[unlikely]]
    trace_operation(op);
  op.ended.store(1, std::memory_order_release);
  return result;
}

// The number of a message is the same on both sides.
void messenger::trace_message(const peer& p, std::uint64_t number, bool leaves) noexcept {
  const int me = ctx_.rank();
  trace_->add_arrow({leaves ? me : p.rank, leaves ? p.rank : me, number}, ctx_.around().now_ns());
}

void messenger::trace_operation(const message_operation& op) noexcept {
  constexpr std::string_view whys[] = {
      "its data fit one message",       "the receiver has a ring for it",
      "longer than what goes at once",  "the receiver has no memory left for what it does not expect",
      "the sender waits for a receive", "the receive had asked for it"};
  constexpr std::string_view reasons[] = {"as RMA_RENDEZVOUS says",
                                          "as far as the fabric can do what RMA_RENDEZVOUS says",
                                          "the message was there first",
                                          "the receive was there first",
                                          "the receiver maps the data: one copy",
                                          "the sender maps the receive's buffer: one copy",
                                          "neither side maps the other's buffer: two copies at the same time",
                                          "neither side maps the other's buffer: the faster so far, at this size",
                                          "neither side maps the other's buffer, and cores are short: the kernel "
                                          "copies once",
                                          "both buffers are this process's: one copy",
                                          "members of a collective may send to each other at once",
                                          "there are no data",
                                          "data in pieces are packed into messages",
                                          "data in pieces go from where they lie to where they belong"};
  static_assert(std::size(reasons) == static_cast<std::size_t>(rendezvous_reason::count_));
  trace_event e;
  e.call = op.is_send ? "send" : "recv";
  e.window = "messages";
  e.bytes = op.is_send ? op.bytes : static_cast<const receive_operation&>(op).message_bytes;
  const bool at_once = op.path == message_path::eager || op.path == message_path::ring;
  e.protocol = op.path == message_path::ring ? "rdma-ring" : at_once ? "eager" : rendezvous_of(op.kind).name;
  std::string why(whys[static_cast<std::size_t>(op.path)]);
  if (!at_once) why.append("; ").append(reasons[static_cast<std::size_t>(op.reason)]);
  e.why = why;
  e.begin_ns = op.begin_ns;
  e.end_ns = ctx_.around().now_ns();
  trace_->add_operation(e, op.with);
}

std::string messenger::describe(const fabric::capabilities& caps) const {
  const rendezvous_protocol& wanted = rendezvous_of(kind_);
  const rendezvous_protocol& taken = rendezvous_of(possible(kind_, caps));
  std::string text = fmt::format("messages: rendezvous {}", automatic_ ? describe_choice(caps) : taken.name);
  if (!automatic_ && &wanted != &taken) text += fmt::format(" ({}: {})", wanted.name, wanted.refuses(caps));
  return text + fmt::format(", at most {} bytes of each sender that no receive has asked for",
                            std::size_t{units_max_} * unexpected_messages::unit_bytes);
}

// The record may disappear as soon as it is marked as ended, since a waiting thread owns it.
void messenger::finish(message_operation& op, status result) noexcept {
  RMA_ASSERT(op.state == message_state::idle);  // it is in no list, and no message can find it
  ids_.remove(op);
  if (op.copy_since_ns != 0 && ok(result)) note_copy(op);
  const bool starting = starting_ == &op;
  if (starting) {
    starting_ = nullptr;
    started_result_ = result;
  }
  const auto over = starting ? nullptr : op.over;
  (void)end_now(op, result);
  if (over != nullptr) over(op);
}

// Removes the operation from the list of its state. A transfer that the fabric still has in progress loses its
// operation.
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
  if (op.id == 0) return;
  if (op.state == message_state::announced || op.state == message_state::streaming)
    announced_.remove(static_cast<send_operation&>(op));
  op.state = message_state::idle;
  stop_polling(op);
  conceal(op);
  RMA_ASSERT(op.moving == nullptr || op.moving->op == &op);
  RMA_ASSERT(op.pieces == nullptr || op.pieces->op == &op);
  if (op.moving != nullptr) op.moving->op = nullptr;
  op.moving = nullptr;
  abandon_pieces(op);
  ids_.remove(op);
  RMA_ASSERT(!op.polls && !op.is_exposed);
}

void messenger::busy(peer& p) noexcept {
  if (p.is_busy) return;
  p.is_busy = true;
  busy_.push_back(&p);
  ctx_.on_duty(this, true);
}

unsigned messenger::on_duty(void* self) noexcept {
  auto& me = *static_cast<messenger*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  if (me.look_again_ns_ != 0) me.ctx_.call_duty_at(std::exchange(me.look_again_ns_, 0));
  unsigned done = 0;
  if (std::exchange(me.is_awaiting_, false)) [[unlikely]] {
    constexpr std::int64_t pause_ns = 1'000'000;
    done += me.look_at_peers();
    if (me.is_awaiting_) me.ctx_.call_duty_at(me.ctx_.around().now_ns() + pause_ns);
  }
  me.post_rings();
  done += me.poll_rings() + me.poll_ends() + me.move_on();
  for (std::size_t i = me.busy_.size(); i-- > 0;) {  // others may be added
    peer& p = *me.busy_[i];
    RMA_ASSERT(p.is_busy);
    me.stream(p);
    me.send_queued(p);
    if (!p.queued.empty() || !p.streams.empty()) continue;
    p.is_busy = false;
    me.busy_[i] = me.busy_.back();
    me.busy_.pop_back();
  }
  const bool idle = me.busy_.empty() && me.polled_.empty() && me.line_.empty() && me.rings_in_.empty() &&
                    !me.unposted_rings_ && !me.is_awaiting_;
  if (idle) me.ctx_.on_duty(self, false);
  return done;
}

}  // namespace rma::detail
