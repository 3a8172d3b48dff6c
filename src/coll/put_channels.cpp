// SPDX-License-Identifier: Apache-2.0
#include "coll/put_channels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "coll/machine.hpp"
#include "coll/team_state.hpp"
#include "core/assert.hpp"
#include "fabric/object_bytes.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail::coll {
namespace {

constexpr std::size_t slot_bytes_most = 4096 + 64;
constexpr std::size_t slot_bytes_many =
    1024 + 64;  ///< in large teams, whose members may have a channel for each other one
constexpr int members_few = 64;
constexpr std::size_t slot_bytes_least = 256;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::uint16_t unreported_max = put_lanes * put_slots / 2;

// An immediate: the number of the channel, the lane, the low bits of the put's number in it.
constexpr unsigned number_bits = 8;
constexpr unsigned lane_bits = 2;
constexpr unsigned index_bits = immediate_value_bits - lane_bits - number_bits;
static_assert(put_lanes == std::size_t{1} << lane_bits);
static_assert(2 * put_slots < std::size_t{1} << number_bits);

bool can_put(const fabric::capabilities& caps) noexcept {
  return caps.one_sided && caps.write_with_immediate && caps.transfer_bytes_max >= slot_bytes_least;
}

std::size_t landing_bytes(std::size_t slot_bytes) noexcept { return put_lanes * put_slots * slot_bytes; }

}  // namespace

/// Between the two members of a channel.
struct put_channels::notice {
  enum class step : std::uint32_t { request, grant, credits, data, count_ };
  std::uint64_t team;
  std::uint64_t address;
  std::uint64_t key;
  std::uint32_t index;
  std::uint32_t slot_bytes;
  std::uint32_t member;  ///< rank in the team of the notice's sender
  step what;
  put_way way;
  std::array<std::uint16_t, put_lanes> freed;
  std::uint32_t lane;  ///< data: the slot in which it belongs
  std::uint32_t number;
};

struct put_channels::early_notice {
  int source;
  notice what;
};

bool put_channel::writes_pending() const noexcept {
  return std::any_of(out.begin(), out.end(), [](const lane_out& l) {
    return std::any_of(l.writes.begin(), l.writes.end(), [](const write& w) { return w.now != write::state::idle; });
  });
}

// ---- sending
// ---------------------------------------------------------------------------------------------------------

put_channels::put_channels(context& ctx, machine& owner) : ctx_(ctx), owner_(owner) {
  ctx_.set_immediate(immediate_user::collectives, &put_channels::on_immediate, this);
  ctx_.set_handler(message::put_channel, &put_channels::on_notice, this);
  ctx_.add_duty(&put_channels::on_duty, this);
}

put_channels::~put_channels() {
  for (const chunk& each : chunks_) {
    if (each.network != nullptr) each.network->deregister_region(each.region);
  }
}

// The network between nodes decides, and within a node it takes the place of one that cannot do it.
bool put_channels::possible() const noexcept {
  return can_put((ctx_.wide() != nullptr ? *ctx_.wide() : ctx_.node()).caps());
}

std::string put_channels::why_not() const {
  const fabric::capabilities& caps = (ctx_.wide() != nullptr ? *ctx_.wide() : ctx_.node()).caps();
  if (can_put(caps)) return {};
  if (!caps.one_sided) return fmt::format("writes of {} need the target's processor", caps.name);
  if (!caps.write_with_immediate) return fmt::format("writes of {} cannot notify the target", caps.name);
  return fmt::format("writes of {} have at most {} bytes", caps.name, caps.transfer_bytes_max);
}

/// Returns `posted` if a slot has to become free first, or there is no room for the last write.
status put_channels::advance(put_channel& c, std::size_t lane, send_operation& op) noexcept {
  using state = put_channel::write::state;
  RMA_ASSERT(lane < put_lanes && op.moved <= op.bytes);
  if (!c.granted) return status::posted;
  if (!ok(c.refused)) return c.refused;
  put_channel::lane_out& l = c.out[lane];
  while (op.total == 0 || op.moved < op.bytes) {
    put_channel::write& w = l.writes[l.filled % put_slots];
    const auto used = static_cast<std::uint16_t>(l.filled - l.freed);
    RMA_ASSERT(used <= put_slots);
    if (used == put_slots || w.now != state::idle) return status::posted;
    fill(c, lane, op);
    const status s = post(c, w);
    if (!ok(s) && s != status::peer_failed) return c.refused = s;  // a death ends the collective elsewhere
  }
  RMA_ASSERT(op.moved == op.bytes && op.total != 0);
  const auto last = static_cast<std::uint16_t>(l.filled - 1);
  return l.writes[last % put_slots].now == state::filled ? status::posted : status::done;
}

void put_channels::fill(put_channel& c, std::size_t lane, send_operation& op) noexcept {
  put_channel::lane_out& l = c.out[lane];
  put_channel::write& w = l.writes[l.filled % put_slots];
  put_head head{c.team, op.context, op.bytes, op.tag, 0, {}};
  head.piece_bytes = static_cast<std::uint32_t>(std::min(op.bytes - op.moved, c.piece_bytes_max));
  for (std::size_t i = 0; i < put_lanes; ++i) head.freed[i] = c.in[i].reported = c.in[i].taken;
  c.unreported = 0;
  std::byte* const at = c.copies + slot_of(lane, l.filled) * c.slot_bytes;
  std::memcpy(at, &head, sizeof head);
  if (head.piece_bytes != 0)
    std::memcpy(at + sizeof head, static_cast<const std::byte*>(op.at) + op.moved, head.piece_bytes);
  if (platform& around = ctx_.around(); around.keeps_accounts())
    around.charge(cost_kind::send, sizeof head + head.piece_bytes);
  w.number = l.filled++;
  w.bytes = sizeof head + head.piece_bytes;
  op.moved += head.piece_bytes;
  ++op.total;
  ctx_.count(counter::collective_puts);
}

/// A write for which there is no room, or that has failed, is posted in a later round of progress.
status put_channels::post(put_channel& c, put_channel::write& w) noexcept {
  using state = put_channel::write::state;
  const std::size_t offset = slot_of(w.lane, w.number) * c.slot_bytes;
  if (c.network == nullptr) {
    notice n{};
    n.what = notice::step::data;
    n.lane = w.lane;
    n.number = w.number;
    send_notice(c, n, {c.copies + offset, w.bytes});
    return status::done;
  }
  const fabric::local_slice here{c.copies + offset, w.bytes};
  const fabric::remote_slice there{c.region.address + offset, w.bytes};
  const std::uint32_t number = w.number & ((1U << number_bits) - 1);
  const std::uint32_t value = c.index << (lane_bits + number_bits) | std::uint32_t{w.lane} << number_bits | number;
  w.run = &put_channels::on_write;
  const status s = c.network->write(c.world_rank, {&here, 1}, c.region, {&there, 1}, fabric::token_of(w),
                                    fabric::with_immediate(immediate_of(immediate_user::collectives, value)));
  w.now = s == status::posted ? state::posted : state::idle;
  if (s != status::retry_queue_full && s != status::transfer_failed) return s;
  w.now = state::filled;
  add_duty(c);
  return status::posted;
}

void put_channels::add_duty(put_channel& c) noexcept {
  if (std::find(due_.begin(), due_.end(), &c) == due_.end()) due_.push_back(&c);
  ctx_.on_duty(this, true);
}

// A write that has failed is repeated, unless its slot is known to be free again.
void put_channels::on_write(fabric::completion& self, status result, std::uint64_t) noexcept {
  using state = put_channel::write::state;
  auto& w = static_cast<put_channel::write&>(self);
  put_channel& c = *w.of;
  put_channels& me = *c.all;
  RMA_ASSERT(w.now == state::posted);
  const auto unfreed = static_cast<std::int16_t>(static_cast<std::uint16_t>(w.number - c.out[w.lane].freed)) >= 0;
  w.now = state::idle;
  if (result == status::transfer_failed && unfreed) {
    w.now = state::filled;
    me.add_duty(c);
  } else if (c.of != nullptr) {
    me.advance_lane(c, w.lane);
  } else if (!c.writes_pending()) {
    me.drop(c);
  }
}

unsigned put_channels::on_duty(void* self) noexcept {
  using state = put_channel::write::state;
  auto& me = *static_cast<put_channels*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  unsigned posted = 0;
  std::vector<put_channel*> due = std::exchange(me.due_, {});
  me.ctx_.on_duty(self, false);
  for (put_channel* const c : due) {
    RMA_ASSERT(c->all == &me);
    for (std::size_t lane = 0; lane < put_lanes; ++lane) {
      for (put_channel::write& w : c->out[lane].writes) {
        if (w.now != state::filled) continue;
        (void)me.post(*c, w);
        if (w.now != state::filled) ++posted;
      }
      if (c->of != nullptr) me.advance_lane(*c, lane);
    }
    if (c->of == nullptr && !c->writes_pending()) me.drop(*c);
  }
  return posted;
}

void put_channels::advance_lane(put_channel& c, std::size_t lane) noexcept {
  RMA_ASSERT(ctx_.is_guarded() && lane < put_lanes);
  message_operation::list& waiting = c.out[lane].waiting;
  while (!waiting.empty()) {
    auto& op = static_cast<send_operation&>(waiting.front());
    RMA_ASSERT(op.ended.load(std::memory_order_relaxed) == 0);
    const status s = advance(c, lane, op);
    if (s == status::posted) return;
    waiting.pop_front();
    op.result = s;
    op.ended.store(1, std::memory_order_relaxed);
    op.over(op);
  }
}

// The totals are 16 bits wide; those of a put that was repeated may be old.
void put_channels::take_credits(put_channel& c, const std::array<std::uint16_t, put_lanes>& freed) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  for (std::size_t lane = 0; lane < put_lanes; ++lane) {
    put_channel::lane_out& l = c.out[lane];
    const auto more = static_cast<std::uint16_t>(freed[lane] - l.freed);
    if (more == 0 || more > static_cast<std::uint16_t>(l.filled - l.freed)) continue;
    l.freed = freed[lane];
    RMA_ASSERT(static_cast<std::uint16_t>(l.filled - l.freed) <= put_slots);
    advance_lane(c, lane);
  }
}

// ---- receiving
// -------------------------------------------------------------------------------------------------------

/// Copies what has arrived for a receive. Returns true if it is complete. Puts of earlier collectives in the lane,
/// which are over here, belong to some that have failed.
bool put_channels::take(put_channel& c, std::size_t lane, receive_operation& op) noexcept {
  put_channel::lane_in& l = c.in[lane];
  while (l.arrived[l.taken % put_slots]) {
    const std::byte* const at = c.in_memory.at + slot_of(lane, l.taken) * c.in_memory.slot_bytes;
    put_head head;
    std::memcpy(&head, at, sizeof head);
    if (head.turn > op.context) return false;
    if (head.turn < op.context) {
      free_slot(c, lane);
      continue;
    }
    op.source = c.world_rank;
    op.message_tag = head.signature;
    op.message_bytes = head.bytes;
    op.result = status::done;
    if (head.bytes != op.bytes || head.piece_bytes > op.bytes - op.moved) {
      free_slot(c, lane);
      return true;
    }
    if (head.piece_bytes != 0)
      std::memcpy(static_cast<std::byte*>(op.at) + op.moved, at + sizeof head, head.piece_bytes);
    op.moved += head.piece_bytes;
    free_slot(c, lane);
    if (op.moved == op.bytes) return true;
  }
  return false;
}

void put_channels::free_slot(put_channel& c, std::size_t lane) noexcept {
  put_channel::lane_in& l = c.in[lane];
  l.arrived[l.taken++ % put_slots] = false;
  ++c.unreported;
  if (static_cast<std::uint16_t>(l.taken - l.reported) >= put_slots / 2 || c.unreported >= unreported_max)
    send_credits(c);
}

void put_channels::send_credits(put_channel& c) noexcept {
  notice n{};
  n.what = notice::step::credits;
  for (std::size_t i = 0; i < put_lanes; ++i) n.freed[i] = c.in[i].reported = c.in[i].taken;
  c.unreported = 0;
  send_notice(c, n);
}

// The channel may have been dropped together with its team: a collective of it has failed.
void put_channels::on_immediate(void* self, int source, std::uint32_t value) noexcept {
  auto& me = *static_cast<put_channels*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  const std::size_t index = value >> (lane_bits + number_bits);
  put_channel* const c = index < me.by_index_.size() ? me.by_index_[index] : nullptr;
  RMA_ASSERT(c == nullptr || (c->in_memory.at != nullptr && c->in_memory.index == index));
  if (c == nullptr || c->world_rank != source) return;
  me.arrive(*c, value >> number_bits & (put_lanes - 1), static_cast<std::uint8_t>(value));
}

// A put that was repeated may have arrived before: its number is one of a slot that has been taken.
void put_channels::arrive(put_channel& c, std::size_t lane, std::uint8_t number) noexcept {
  put_channel::lane_in& l = c.in[lane];
  const std::size_t ahead = static_cast<std::uint8_t>(number - l.taken);
  if (ahead >= put_slots) return;
  const auto at = static_cast<std::uint16_t>(l.taken + ahead);
  put_head head;
  std::memcpy(&head, c.in_memory.at + slot_of(lane, at) * c.in_memory.slot_bytes, sizeof head);
  if (head.team != c.team || head.piece_bytes > c.in_memory.slot_bytes - sizeof head) return;
  if (platform& around = ctx_.around(); around.keeps_accounts()) around.charge(cost_kind::handler, head.piece_bytes);
  l.arrived[at % put_slots] = true;
  take_credits(c, head.freed);
  while (!l.awaited.empty()) {
    auto& op = static_cast<receive_operation&>(l.awaited.front());
    if (!take(c, lane, op)) return;
    l.awaited.pop_front();
    op.ended.store(1, std::memory_order_relaxed);
    op.over(op);
  }
}

// ---- notices
// ---------------------------------------------------------------------------------------------------------

void put_channels::send_notice(const put_channel& c, notice& n, std::span<const std::byte> data) noexcept {
  n.team = c.team;
  n.member = static_cast<std::uint32_t>(c.of->team_.rank);
  ctx_.send_record(c.world_rank, message::put_channel, n, data);
}

void put_channels::request(put_channel& c) noexcept {
  c.asked = true;
  notice n{};
  n.what = notice::step::request;
  send_notice(c, n);
}

void put_channels::on_notice(void* self, int source, std::span<const std::byte> payload) noexcept {
  constexpr std::size_t early_max = 65536;
  auto& me = *static_cast<put_channels*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  constexpr auto kind = static_cast<std::uint16_t>(message::put_channel);
  notice n;
  if (payload.size() < sizeof n)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_length);
  std::memcpy(&n, payload.data(), sizeof n);
  if (n.what >= notice::step::count_ || (n.what != notice::step::data && payload.size() != sizeof n))
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  if (team_state* const team = me.owner_.team(n.team); team != nullptr) {
    me.take_notice(*team, source, n, payload.subspan(sizeof n));
  } else if (n.what == notice::step::request && me.early_.size() < early_max) {
    me.early_.push_back({source, n});
    RMA_ASSERT(me.early_.size() <= early_max);
  }
}

void put_channels::take_early(std::uint64_t team_id) noexcept {
  if (early_.empty()) return;
  std::vector<early_notice> its;
  std::erase_if(early_, [&](const early_notice& each) {
    if (each.what.team == team_id) its.push_back(each);
    return each.what.team == team_id;
  });
  for (const early_notice& each : its) take_notice(*owner_.team(team_id), each.source, each.what, {});
}

void put_channels::take_notice(team_state& team, int source, const notice& n,
                               std::span<const std::byte> data) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(owner_.team(n.team) == &team);
  constexpr auto kind = static_cast<std::uint16_t>(message::put_channel);
  const auto members = static_cast<std::uint32_t>(team.team().size);
  const bool valid =
      n.member < members && team.team().world_rank(static_cast<int>(n.member)) == source &&
      (n.what != notice::step::grant || (n.slot_bytes > sizeof(put_head) && n.slot_bytes <= slot_bytes_most)) &&
      n.lane < put_lanes;
  if (!valid) return ctx_.reject_malformed(source, kind, sizeof n, malformed_reason::wrong_contents);
  put_channel& c = team.puts().channel(static_cast<int>(n.member));
  switch (n.what) {
    case notice::step::request: return grant(c, team.team().size);
    case notice::step::grant: return take_grant(c, n);
    case notice::step::data: return take_data(c, n, data);
    default: return take_credits(c, n.freed);
  }
}

void put_channels::grant(put_channel& c, int members) noexcept {
  if (c.in_memory.at == nullptr) make_landing(c, members <= members_few ? slot_bytes_most : slot_bytes_many);
  notice n{};
  n.what = notice::step::grant;
  n.address = c.in_memory.region.address;
  n.key = c.in_memory.region.key;
  n.index = c.in_memory.index;
  n.slot_bytes = static_cast<std::uint32_t>(c.in_memory.slot_bytes);
  n.way = c.in_memory.way;
  send_notice(c, n);
}

void put_channels::take_grant(put_channel& c, const notice& n) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  if (c.granted) return;
  c.granted = true;
  c.slot_bytes = n.slot_bytes;
  c.region = {n.address, landing_bytes(c.slot_bytes), n.key};
  c.index = n.index;
  c.piece_bytes_max = c.slot_bytes - sizeof(put_head);
  if (n.way == put_way::node) c.network = &ctx_.node();
  if (n.way == put_way::wide) c.network = ctx_.wide();
  if (!take_copies(c)) {
    c.network = nullptr;
    (void)take_copies(c);
  }
  if (c.network == nullptr) {
    const std::size_t most = ctx_.network_of(c.world_rank).caps().message_bytes_max - sizeof(notice) - sizeof(put_head);
    c.piece_bytes_max = std::min(c.piece_bytes_max, most);
  }
  RMA_ASSERT(c.copies != nullptr && c.piece_bytes_max < c.slot_bytes);
  for (std::size_t lane = 0; lane < put_lanes; ++lane) advance_lane(c, lane);
}

void put_channels::take_data(put_channel& c, const notice& n, std::span<const std::byte> data) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(n.what == notice::step::data && n.lane < put_lanes);
  const auto number = static_cast<std::uint16_t>(n.number);
  const bool expected = c.in_memory.at != nullptr && data.size() >= sizeof(put_head) &&
                        data.size() <= c.in_memory.slot_bytes &&
                        static_cast<std::uint16_t>(number - c.in[n.lane].taken) < put_slots;
  if (!expected) {
    constexpr auto kind = static_cast<std::uint16_t>(message::put_channel);
    return ctx_.reject_malformed(c.world_rank, kind, sizeof n + data.size(), malformed_reason::wrong_contents);
  }
  std::memcpy(c.in_memory.at + slot_of(n.lane, number) * c.in_memory.slot_bytes, data.data(), data.size());
  arrive(c, n.lane, static_cast<std::uint8_t>(number));
}

// ---- memory
// ----------------------------------------------------------------------------------------------------------

void put_channels::make_landing(put_channel& c, std::size_t slot_bytes) noexcept {
  if (std::vector<landing>& unused = unused_[c.world_rank]; !unused.empty()) {
    c.in_memory = unused.back();
    unused.pop_back();
  } else {
    c.in_memory = take_memory(c, slot_bytes);
    c.in_memory.index = static_cast<std::uint32_t>(by_index_.size());
    by_index_.push_back(nullptr);
  }
  by_index_[c.in_memory.index] = &c;
}

landing put_channels::take_memory(const put_channel& c, std::size_t slot_bytes) noexcept {
  RMA_ASSERT(c.in_memory.at == nullptr && slot_bytes <= slot_bytes_most);
  fabric::network& usual = ctx_.network_of(c.world_rank);
  const bool usually = can_put(usual.caps()) || ctx_.wide() == nullptr;
  fabric::network* network = usually ? &usual : ctx_.wide();
  slot_bytes = std::min(slot_bytes, network->caps().transfer_bytes_max);
  chunk* from =
      by_index_.size() < std::size_t{1} << index_bits ? chunk_with(network, landing_bytes(slot_bytes)) : nullptr;
  if (from == nullptr) {
    network = nullptr;
    slot_bytes = std::min(slot_bytes, usual.caps().message_bytes_max - sizeof(notice));
    from = chunk_with(nullptr, landing_bytes(slot_bytes));
  }
  landing l;
  l.at = from->memory.get() + from->used_bytes;
  l.region = {from->region.address + from->used_bytes, landing_bytes(slot_bytes), from->region.key};
  l.slot_bytes = slot_bytes;
  if (network == nullptr) l.way = put_way::messages;
  if (network != nullptr && network == ctx_.wide()) l.way = put_way::wide;
  from->used_bytes += landing_bytes(slot_bytes);
  RMA_ASSERT(l.at != nullptr && from->used_bytes <= from->bytes);
  return l;
}

/// Memory of several channels is registered together.
put_channels::chunk* put_channels::chunk_with(fabric::network* network, std::size_t bytes) noexcept {
  const auto with_room = std::find_if(chunks_.begin(), chunks_.end(), [&](const chunk& each) {
    return each.network == network && each.bytes - each.used_bytes >= bytes;
  });
  if (with_room != chunks_.end()) return &*with_room;
  chunk made;
  made.bytes = chunks_.empty() ? 4 * bytes : std::max(bytes, chunk_bytes);
  made.memory = std::make_unique<std::byte[]>(made.bytes);
  made.network = network;
  if (network != nullptr && !ok(network->register_region(made.memory.get(), made.bytes, made.region))) return nullptr;
  chunks_.push_back(std::move(made));
  return &chunks_.back();
}

// Landing memory is kept for the same sender, which has posted all its puts to this team before those to a later one.
void put_channels::retire(std::unique_ptr<put_channel> c) noexcept {
  if (c->in_memory.at != nullptr) {
    by_index_[c->in_memory.index] = nullptr;
    unused_[c->world_rank].push_back(c->in_memory);
  }
  c->of = nullptr;
  for (put_channel::lane_out& l : c->out) l.waiting.clear();
  for (put_channel::lane_in& l : c->in) l.awaited.clear();
  put_channel& it = *retired_.emplace_back(std::move(c));
  if (!it.writes_pending()) drop(it);
}

void put_channels::drop(put_channel& c) noexcept {
  if (c.copies != nullptr) unused_copies_.push_back({c.network, landing_bytes(c.slot_bytes), c.copies});
  std::erase(due_, &c);
  std::erase_if(retired_, [&](const auto& each) { return each.get() == &c; });
}

bool put_channels::take_copies(put_channel& c) noexcept {
  const std::size_t bytes = landing_bytes(c.slot_bytes);
  const auto fits = std::find_if(unused_copies_.begin(), unused_copies_.end(),
                                 [&](const copies& each) { return each.network == c.network && each.bytes == bytes; });
  if (fits != unused_copies_.end()) {
    c.copies = fits->at;
    unused_copies_.erase(fits);
    return true;
  }
  chunk* const from = chunk_with(c.network, bytes);
  if (from == nullptr) return false;
  c.copies = from->memory.get() + from->used_bytes;
  from->used_bytes += bytes;
  return true;
}

}  // namespace rma::detail::coll
