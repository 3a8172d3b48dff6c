// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/wire.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/sim/sim_fabric.hpp"
#include "rma/detail/word.hpp"

namespace rma::sim {
namespace {

constexpr std::uint64_t request_bytes = 0;  // a control packet

std::byte* here(const fabric::local_slice& s) noexcept { return static_cast<std::byte*>(s.at); }
std::byte* there(const fabric::remote_slice& s) noexcept { return reinterpret_cast<std::byte*>(s.address); }

}  // namespace

namespace {

/// The costs of a transfer between two nodes of one switch, from the machine's constants.
fabric::transfer_costs costs_of(const parameters& p) noexcept {
  const auto ns = [](time_ps t) { return static_cast<std::int64_t>(t / 1000); };
  const time_ps way_ps = p.nic_message_time_ps + 2 * p.pcie_latency_ps + p.router_delay_ps();
  fabric::transfer_costs costs;
  costs.write_ns = ns(2 * way_ps + p.post_time_ps + p.poll_time_ps);
  costs.piece_ns = ns(std::max(p.post_time_ps, p.nic_message_gap_ps));
  costs.list_entry_ns = ns(p.list_entry_time_ps + p.nic_list_entry_time_ps);
  costs.byte_ns = 1 / std::min({p.dma_speed_gbs, p.write_speed_gbs(), p.link_bandwidth_gbs});
  // The target wakes for the message, and the origin for its acknowledgement, or both poll meanwhile.
  costs.message_ns =
      ns(2 * way_ps + 3 * p.awake_after_ps(way_ps) + p.post_time_ps + 2 * p.poll_time_ps + p.handler_time_ps);
  costs.message_byte_ns = costs.byte_ns + 1 / p.copy_bandwidth_gbs;
  return costs;
}

}  // namespace

wire::wire(world& job, const parameters& constants, const topology& over, const fault_model& today, std::uint64_t seed)
    : job_(job),
      faults_(today),
      rng_(seed),
      model_(job.events(), constants, over, *this),
      fabrics_(static_cast<std::size_t>(job.size()), nullptr) {
  faults_.caps.costs = costs_of(constants);
  if (job.options().watch_network) {
    const std::size_t engines = static_cast<std::size_t>(job.nodes()) * model_.engines_per_node();
    log_ = std::make_unique<use_log>(over.links() + engines, use_log::limits{});
    model_.watch(*log_);
  }
  if (faults_.jitter_max_ps != 0) model_.set_jitter(faults_.jitter_max_ps, seed, faults_.caps.in_order_placement);
  for (std::uint32_t i = 0; i < faults_.outages; ++i) {
    const auto link = static_cast<link_id>(rng_.below(over.links()));
    const auto from_ps = static_cast<time_ps>(rng_.below(static_cast<std::uint64_t>(faults_.outages_until_ps)));
    const auto for_ps = static_cast<time_ps>(rng_.below(static_cast<std::uint64_t>(faults_.outage_ps)));
    model_.set_link_down(link, from_ps, from_ps + for_ps);
  }
  for (const fault_model::span& each : faults_.all_down) {
    for (std::size_t link = 0; link < over.links(); ++link)
      model_.set_link_down(static_cast<link_id>(link), each.from_ps, each.until_ps);
  }
}

void wire::join(int rank, sim_fabric& fabric) { fabrics_[static_cast<std::size_t>(rank)] = &fabric; }

void wire::detach(int rank) noexcept {
  fabrics_[static_cast<std::size_t>(rank)] = nullptr;
  for (const std::uint64_t pair : bulk_pairs_) {  // sends that wait there for a receive fail
    connection& c = connections_.at(pair);
    if (static_cast<int>(static_cast<std::uint32_t>(pair)) == rank) serve(c, c.bulk);
  }
}

std::uint32_t wire::take() {
  if (free_.empty()) {
    flights_.emplace_back();
    return static_cast<std::uint32_t>(flights_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void wire::give_back(std::vector<std::byte>&& data) noexcept {
  constexpr std::size_t large_bytes = std::size_t{64} << 10;
  if (data.capacity() == 0 || data.capacity() > large_bytes) return;
  data.clear();
  spare_.push_back(std::move(data));
}

void wire::release(std::uint32_t index) noexcept {
  if (--at(index).holds == 0) free_.push_back(index);
}

void wire::fill(flight& f, const request& o) {
  f.what = o.what;
  f.back = f.reported = false;
  f.has_immediate = o.immediate.has_value();
  f.immediate = o.immediate.value_or(0);
  f.origin = o.origin;
  f.target = o.target;
  f.token = o.token;
  f.region = o.region;
  f.local.assign(o.local.begin(), o.local.end());
  f.remote.assign(o.remote.begin(), o.remote.end());
  f.operand = o.operand;
  f.expected = o.expected;
  f.old = o.old;
  f.message_kind = o.message_kind;
  f.arrived = 0;
  f.holds = 0;
  f.result = status::done;
  if (f.data.capacity() == 0 && !spare_.empty()) {
    f.data = std::move(spare_.back());
    spare_.pop_back();
  }
  f.data.assign(o.header.begin(), o.header.end());
  f.data.insert(f.data.end(), o.payload.begin(), o.payload.end());
  f.reports = o.reports;
  f.chained = o.chained;
  f.bytes = f.data.size();
  if (f.reports != signaling::silent) {
    for (const auto& each : f.remote) f.bytes += each.bytes;
  }
  if (o.what == kind::bulk) {
    for (const auto& each : f.local) f.bytes += each.bytes;
    bulk_pairs_.insert(pair_of(o.origin, o.target));
  }
  if (o.what == kind::write || o.what == kind::read || o.what == kind::bulk) f.data.resize(f.bytes);
  f.is_early = f.acknowledged = false;
  f.is_inline = false;
  if (o.what != kind::write || f.reports == signaling::silent || f.bytes > faults_.caps.inline_bytes_max) return;
  copy_out(f, 0, f.bytes);
  f.is_inline = true;  // nothing is left to be read when it departs
}

status wire::post(const request& o) {
  const bool atomic = o.what == kind::fetch_add || o.what == kind::compare_swap;
  detail::explore_point(atomic ? there(o.remote.front()) : nullptr);
  sim_fabric& from = *fabrics_[static_cast<std::size_t>(o.origin)];
  if (from.under_way() >= faults_.send_queue) {
    from.refused();
    return status::retry_queue_full;
  }
  from.begin_one();
  const std::uint32_t index = take();
  flight& f = at(index);
  fill(f, o);
  draw_failure(f);
  connection& c = between(o.origin, o.target);
  f.number = stream_of(c, f).posted++;
  f.messages_before = c.messages_posted;
  if (f.what == kind::message) ++c.messages_posted;
  const std::size_t requests = std::max<std::size_t>(o.remote.size(), 1);  // each remote piece is one request
  const std::size_t entries = std::max(o.local.size(), requests) - requests;
  charge_post(o, requests, entries);
  send_in_order(index, job_.local_time_ps(o.origin));
  if (o.what == kind::write && breaks(breach::early_completion, 1)) complete(at(index));
  return o.what == kind::message ? status::done : status::posted;
}

void wire::charge_post(const request& o, std::size_t requests, std::size_t entries) noexcept {
  const parameters& with = model_.constants();
  const std::size_t posts = o.chained ? 0 : requests;
  const std::size_t further = o.chained ? entries + 1 : entries;
  job_.charge(o.origin,
              static_cast<time_ps>(posts) * with.post_time_ps + static_cast<time_ps>(further) * with.list_entry_time_ps,
              activity::post);
}

// Messages do not fail, since they have no completion that could report it.
void wire::draw_failure(flight& f) noexcept {
  f.fails = f.what != kind::message && rng_.one_in(faults_.failed_one_in);
  f.fails_at = f.fails ? rng_.below(f.bytes) : f.bytes;
}

namespace {

bool is_read(wire::kind what) noexcept {
  return what == wire::kind::read || what == wire::kind::fetch_add || what == wire::kind::compare_swap;
}

}  // namespace

/// A queue pair limits its outstanding reads. All operations posted after a waiting one wait as well.
bool wire::must_stall(const connection& c, const flight& f) const noexcept {
  if (f.what == kind::bulk) return false;
  return !c.stalled.empty() || (is_read(f.what) && c.reads >= faults_.outstanding_reads_max);
}

void wire::send_in_order(std::uint32_t index, time_ps when_ps) {
  flight& f = at(index);
  connection& c = between(f.origin, f.target);
  if (must_stall(c, f)) return c.stalled.push_back(std::move(index));
  c.reads += is_read(f.what) ? 1 : 0;
  send(index, when_ps);
}

void wire::end_read(connection& c) {
  --c.reads;
  while (!c.stalled.empty()) {
    const std::uint32_t next = c.stalled.front();
    const bool reads = is_read(at(next).what);
    if (reads && c.reads >= faults_.outstanding_reads_max) return;
    c.stalled.pop_front();
    c.reads += reads ? 1 : 0;
    send(next, job_.events().now_ps());
  }
}

// A transfer's id is the flight's number; its lowest bit marks the reply.
void wire::send(std::uint32_t index, time_ps when_ps) {
  flight& f = at(index);
  transfer t;
  t.id = std::uint64_t{index} << 1 | (f.back ? 1 : 0);
  t.from_node = job_.node_of(f.back ? f.target : f.origin);
  t.to_node = job_.node_of(f.back ? f.origin : f.target);
  const bool control = !f.back && f.what != kind::write && f.what != kind::message && f.what != kind::bulk;
  const bool word = f.back && f.what != kind::read;
  t.bytes = control || word ? request_bytes : f.bytes;
  t.from_adapter = f.back;
  t.to_adapter = control || word;
  const auto local = static_cast<std::uint32_t>(f.local.size()), remote = static_cast<std::uint32_t>(f.remote.size());
  t.second_channel = f.what == kind::bulk && !f.back;
  t.entries_out = f.back ? remote : local;
  t.entries_in = f.back ? local : remote;
  if (f.what == kind::bulk && !between(f.origin, f.target).receives.empty() && !f.back)
    t.entries_in = static_cast<std::uint32_t>(between(f.origin, f.target).receives.front().to.size());
  t.acknowledged = f.what == kind::write && faults_.caps.write_means != fabric::write_completion::local;
  f.holds += t.acknowledged ? 2U : 1U;
  model_.post(t, when_ps);
}

// ---- memory ----------------------------------------------------------------------------------------------------

namespace {

/// Runs `copy(address, offset, bytes)` for the part [first, first + bytes) of a list of pieces.
template <class Pieces, class Address, class Copy>
void for_part(const Pieces& pieces, std::uint64_t first, std::uint64_t bytes, Address&& address, Copy&& copy) {
  std::uint64_t begin = 0;
  for (const auto& piece : pieces) {
    const std::uint64_t from = std::max(first, begin);
    const std::uint64_t to = std::min(first + bytes, begin + piece.bytes);
    if (from < to) copy(address(piece) + (from - begin), from, to - from);
    begin += piece.bytes;
  }
}

}  // namespace

void wire::copy_out(flight& f, std::uint64_t first, std::uint64_t bytes) noexcept {
  if (f.is_inline) return;
  const auto copy = [&](const std::byte* from, std::uint64_t at, std::uint64_t n) {
    std::memcpy(f.data.data() + at, from, n);
  };
  if (f.back) {
    for_part(f.remote, first, bytes, there, copy);
  } else {
    for_part(f.local, first, bytes, here, copy);
  }
}

void wire::copy_in(flight& f, std::uint64_t first, std::uint64_t bytes) noexcept {
  if (first >= f.fails_at) return;
  bytes = std::min(bytes, f.fails_at - first);
  const auto copy = [&](std::byte* to, std::uint64_t at, std::uint64_t n) { std::memcpy(to, f.data.data() + at, n); };
  if (f.back) {
    for_part(f.local, first, bytes, here, copy);
  } else {
    for_part(f.remote, first, bytes, there, copy);
  }
}

bool wire::lies_in_region(const flight& f) const noexcept {
  const sim_fabric* const owner = fabrics_[static_cast<std::size_t>(f.target)];
  return owner != nullptr && !owner->has_forgotten(f.origin) &&
         std::all_of(f.remote.begin(), f.remote.end(), [&](const fabric::remote_slice& s) {
           return owner->has_registered(f.region.key, s.address, s.bytes);
         });
}

/// True if the origin is alive, and does not know yet of a death of the target.
bool wire::takes_answer(const flight& f) const noexcept {
  const sim_fabric* const origin = fabrics_[static_cast<std::size_t>(f.origin)];
  return origin != nullptr && job_.alive(f.origin) && !origin->has_forgotten(f.target);
}

// ---- reports of the model --------------------------------------------------------------------------------------

void wire::on_departure(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept {
  const auto index = static_cast<std::uint32_t>(id >> 1);
  flight& f = at(index);
  const bool last = first + bytes >= f.bytes;
  if (f.what == kind::message) return;
  const bool there_still = f.back ? lies_in_region(f) : fabrics_[static_cast<std::size_t>(f.origin)] != nullptr;
  if (f.result == status::done && there_still) copy_out(f, first, bytes);
  if (f.result == status::done && !there_still) f.result = status::peer_failed;
  if (!last || f.what != kind::write || faults_.caps.write_means != fabric::write_completion::local) return;
  if (f.result == status::done && f.fails) f.result = status::transfer_failed;
  complete(f);
}

void wire::on_arrival(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept {
  const auto index = static_cast<std::uint32_t>(id >> 1);
  flight& f = at(index);
  const bool word = bytes == 0;
  f.arrived += bytes;
  if ((id & 1) != 0) {
    if (f.result == status::done && !takes_answer(f)) f.result = status::peer_failed;
    if (!word && f.result == status::done) copy_in(f, first, bytes);
    if (word || f.arrived == f.bytes) arrived_back(index);
    return;
  }
  if (f.what == kind::write && f.result != status::transfer_failed) {
    if (!job_.alive(f.target)) {
      f.result = status::peer_failed;
    } else if (!lies_in_region(f)) {
      f.result = status::out_of_window;
    } else if (f.is_early || overtakes(between(f.origin, f.target), f)) {
      f.is_early = true;
    } else if (faults_.placement_delay_max_ps == 0 && !breaks(breach::lost_write, 40)) {
      copy_in(f, first, bytes);
    }
  }
  if (word || f.arrived == f.bytes) arrived_at_target(index);
}

void wire::on_acknowledgement(transfer_id id) noexcept {
  const auto index = static_cast<std::uint32_t>(id >> 1);
  flight& f = at(index);
  f.acknowledged = true;
  if (!f.is_early) complete(f);
  release(index);
}

void wire::on_atomic(transfer_id id) noexcept {
  const auto index = static_cast<std::uint32_t>(id >> 1);
  flight& f = at(index);
  if (f.result == status::done && !lies_in_region(f)) f.result = status::peer_failed;  // the target left meanwhile
  if (f.result == status::done && f.fails) f.result = status::transfer_failed;
  if (f.result == status::done) {
    auto& word = *reinterpret_cast<std::uint64_t*>(there(f.remote.front()));
    detail::explore_point(&word);
    f.old_value = word;
    if (f.what == kind::fetch_add) {
      word += f.operand;
    } else if (word == f.expected || breaks(breach::blind_swap, 4)) {
      word = f.operand;
    }
  }
  answer(index);
}

// ---- turns -----------------------------------------------------------------------------------------------------

void wire::arrived_at_target(std::uint32_t index) {
  flight& f = at(index);
  connection& c = between(f.origin, f.target);
  if (f.what == kind::write && f.result == status::done && f.fails) f.result = status::transfer_failed;
  if (f.what == kind::write && f.result == status::done && !f.is_early && faults_.placement_delay_max_ps != 0)
    place_later(c, index);
  if (faults_.broken == breach::read_overtakes && f.what == kind::read) {
    ++f.holds;
    answer(index);
  }
  stream& s = stream_of(c, f);
  s.waiting.push_back(index);
  serve(c, s);
}

void wire::place_later(connection& c, std::uint32_t index) {
  ++at(index).holds;
  c.unplaced.push_back(index);
  const auto delay = static_cast<time_ps>(rng_.below(static_cast<std::uint64_t>(faults_.placement_delay_max_ps)));
  job_.events().at(job_.events().now_ps() + delay, &wire::on_placement_due, this, index);
}

// The messages before it have been delivered. An adapter would have taken the write now, and acknowledged it.
void wire::place_early(connection& c, std::uint32_t index) {
  flight& f = at(index);
  f.is_early = false;
  if (f.result == status::done) {
    if (faults_.placement_delay_max_ps != 0) {
      place_later(c, index);
    } else {
      place_one(index);
    }
  }
  if (f.acknowledged) complete(f);
}

void wire::serve(connection& c, stream& s) {
  for (bool repeat = true; repeat;) {
    repeat = false;
    for (std::size_t i = 0; i < s.waiting.size(); ++i) {
      const std::uint32_t index = s.waiting[i];
      if (at(index).number != s.served) continue;
      if (!serve_one(c, index)) return;
      ++s.served;
      s.waiting.erase(s.waiting.begin() + static_cast<std::ptrdiff_t>(i));
      release(index);
      repeat = true;
      break;
    }
  }
}

// Returns false if the operation cannot be served yet.
bool wire::serve_one(connection& c, std::uint32_t index) {
  flight& f = at(index);
  if (f.what == kind::write) {
    if (f.is_early) place_early(c, index);
    sim_fabric* const owner = fabrics_[static_cast<std::size_t>(f.target)];
    if (f.has_immediate && f.result == status::done && owner != nullptr) {
      place_all(c);
      owner->put_immediate(f.origin, f.immediate);
    }
    return true;
  }
  if (f.what == kind::message) {
    if (!deliver(c, f)) return false;
    ++c.messages_served;
    complete(f);  // frees its slot of the send queue
    return true;
  }
  if (f.what == kind::bulk) return deliver_bulk(c, index);
  if (f.back) return true;  // its reply was sent out of order
  place_all(c);
  ++f.holds;  // until the reply has arrived
  f.result = !job_.alive(f.target) ? status::peer_failed : !lies_in_region(f) ? status::out_of_window : status::done;
  if (f.what == kind::read) {
    answer(index);
  } else {
    model_.serve_atomic(job_.node_of(f.target), std::uint64_t{index} << 1, job_.events().now_ps());
  }
  return true;
}

bool wire::deliver(connection& c, flight& f) {
  sim_fabric* const owner = fabrics_[static_cast<std::size_t>(f.target)];
  if (owner == nullptr || !job_.alive(f.target)) return true;  // the target has left or is dead
  if (owner->messages_waiting() >= faults_.receive_queue) {
    if (!c.retrying) {
      c.retrying = true;
      const std::uint64_t pair = static_cast<std::uint64_t>(f.origin) << 32 | static_cast<std::uint32_t>(f.target);
      job_.events().at(job_.events().now_ps() + faults_.receiver_not_ready_ps, &wire::on_retry_due, this, pair);
    }
    return false;
  }
  if (faults_.caps.messages_after_writes) place_all(c);
  if (breaks(breach::lost_message, 100)) return true;
  if (breaks(breach::double_message, 20)) owner->put_message(f.origin, f.message_kind, std::vector(f.data));
  owner->put_message(f.origin, f.message_kind, std::move(f.data));
  return true;
}

void wire::on_retry_due(void* self, std::uint64_t pair) noexcept {
  auto& me = *static_cast<wire*>(self);
  connection& c = me.connections_.at(pair);
  c.retrying = false;
  me.serve(c, me.faults_.caps.messages_after_writes ? c.operations : c.messages);
}

void wire::place_one(std::uint32_t index) noexcept {
  flight& f = at(index);
  if (job_.alive(f.target) && lies_in_region(f)) copy_in(f, 0, f.bytes);
}

void wire::place_all(connection& c) noexcept {
  for (const std::uint32_t index : c.unplaced) place_one(index);
  c.unplaced.clear();
}

// A later operation may have placed the write earlier. With in-order placement, all writes before it are placed first.
void wire::on_placement_due(void* self, std::uint64_t data) noexcept {
  auto& me = *static_cast<wire*>(self);
  const auto index = static_cast<std::uint32_t>(data);
  flight& f = me.at(index);
  connection& c = me.between(f.origin, f.target);
  const auto at = std::find(c.unplaced.begin(), c.unplaced.end(), index);
  if (at != c.unplaced.end()) {
    const auto first = me.faults_.caps.in_order_placement ? c.unplaced.begin() : at;
    for (auto due = first; due != at + 1; ++due) me.place_one(*due);
    c.unplaced.erase(first, at + 1);
  }
  me.release(index);
}

// ---- replies, completions --------------------------------------------------------------------------------------

void wire::answer(std::uint32_t index) {
  flight& f = at(index);
  f.back = true;
  f.arrived = 0;
  send(index, job_.events().now_ps());
  release(index);
}

void wire::arrived_back(std::uint32_t index) {
  flight& f = at(index);
  if (f.result == status::done && !takes_answer(f)) f.result = status::peer_failed;
  if (f.result == status::done && f.fails) f.result = status::transfer_failed;
  if (f.old != nullptr && f.result == status::done) *f.old = f.old_value;
  complete(f);
  connection& c = between(f.origin, f.target);
  const bool was_read = is_read(f.what);
  release(index);
  if (was_read) end_read(c);
}

/// Reports the completion to the origin, once.
void wire::complete(flight& f) noexcept {
  if (std::exchange(f.reported, true)) return;
  sim_fabric* const origin = fabrics_[static_cast<std::size_t>(f.origin)];
  if (origin == nullptr || !job_.alive(f.origin)) return;
  origin->end_one();
  if (f.result == status::transfer_failed && breaks(breach::swallowed_error, 1)) f.result = status::done;
  if (f.what == kind::message || f.reports == signaling::silent) return;
  if (f.reports == signaling::unsignaled && f.result == status::done) return;
  origin->put_completion({.peer = f.target, .token = f.token, .result = f.result, .chained = f.chained});
}

}  // namespace rma::sim
