// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/network_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "rma/error.hpp"

namespace rma::sim {
namespace {

constexpr time_ps scaled(std::uint32_t bytes, double ps_per_byte) noexcept {
  return static_cast<time_ps>(static_cast<double>(bytes) * ps_per_byte + 0.5);
}

}  // namespace

network_model::network_model(event_queue& events, const parameters& with, const topology& over, transfer_sink& sink)
    : events_(events),
      with_(with),
      over_(over),
      sink_(sink),
      router_delay_ps_(with.router_delay_ps()),
      link_ps_per_byte_(1000.0 / with.link_bandwidth_gbs),
      router_ps_per_byte_(1000.0 / std::min(with.link_bandwidth_gbs, with.switch_throughput_gbs)),
      engines_per_node_(static_cast<std::uint32_t>(with.dma_engines + with.dma_receive_engines)),
      path_stride_(over.hops_max()),
      ports_(over.links()),
      engines_(static_cast<std::size_t>(over.nodes()) * engines_per_node_),
      atomic_busy_until_ps_(static_cast<std::size_t>(over.nodes())) {
  if (with.port_buffers == 0) return;
  if (over.what() == topology::kind::torus) {
    throw Error(status::bad_setting,
                fmt::format("port_buffers = {} with topology '{}': a ring of full buffers never moves again; "
                            "0 is any number of buffers",
                            with.port_buffers, over.text()));
  }
  limited_ports_.resize(over.links());
}

// ---- transfers ----------------------------------------------------------------------------------------------------

std::uint32_t network_model::new_flight() {
  ++open_;
  if (free_flight_ != none) {
    const std::uint32_t found = free_flight_;
    free_flight_ = flights_[found].next;
    return found;
  }
  RMA_ASSERT(flights_.size() < std::size_t{1} << (64 - packet_bits - hop_bits));
  flights_.emplace_back();
  paths_.resize(flights_.size() * path_stride_);
  return static_cast<std::uint32_t>(flights_.size() - 1);
}

void network_model::finish(std::uint32_t number) noexcept {
  --open_;
  flights_[number].next = free_flight_;
  free_flight_ = number;
}

std::uint32_t network_model::sending_engine(const flight& f) const noexcept {
  return f.from * engines_per_node_ + f.to % static_cast<std::uint32_t>(with_.dma_engines);
}

std::uint32_t network_model::receiving_engine(const flight& f) const noexcept {
  const auto senders = static_cast<std::uint32_t>(with_.dma_engines);
  const auto receivers = static_cast<std::uint32_t>(with_.dma_receive_engines);
  return f.to * engines_per_node_ + (receivers == 0 ? f.from % senders : senders + f.from % receivers);
}

std::uint32_t network_model::bytes_of(const flight& f, std::uint32_t packet) const noexcept {
  const auto whole = static_cast<std::uint32_t>(with_.packet_payload_bytes);
  return packet + 1 < f.packets ? whole : static_cast<std::uint32_t>(f.bytes - std::uint64_t{packet} * whole);
}

std::uint32_t network_model::wire_bytes_of(const flight& f, std::uint32_t packet) const noexcept {
  if (packet == control || f.bytes == 0) return static_cast<std::uint32_t>(with_.control_packet_bytes);
  return bytes_of(f, packet) + static_cast<std::uint32_t>(with_.packet_header_bytes);
}

time_ps network_model::engine_time(std::uint32_t bytes, double speed_gbs) const noexcept {
  return bytes == 0 ? 0 : std::max(time_of(bytes, speed_gbs), with_.nic_packet_time_ps);
}

/// The time to read the entries of the list that so many bytes of the transfer come from or go to.
time_ps network_model::list_time(const flight& f, std::uint32_t bytes, std::uint32_t entries) const noexcept {
  if (entries <= 1 || f.bytes == 0) return 0;
  return static_cast<time_ps>((std::uint64_t{entries} * bytes + f.bytes - 1) / f.bytes) * with_.nic_list_entry_time_ps;
}

void network_model::find_route(std::uint32_t number, std::uint32_t from, std::uint32_t to) noexcept {
  flights_[number].hops = static_cast<std::uint16_t>(
      over_.route(static_cast<int>(from), static_cast<int>(to), paths_.data() + number * path_stride_));
}

void network_model::post(const transfer& what, time_ps when_ps) {
  RMA_ASSERT(what.bytes <= bytes_max());
  const std::uint32_t number = new_flight();
  flight& f = flights_[number];
  f.id = what.id;
  f.bytes = what.bytes;
  f.from = static_cast<std::uint32_t>(what.from_node);
  f.to = static_cast<std::uint32_t>(what.to_node);
  f.packets =
      what.bytes == 0
          ? 1
          : static_cast<std::uint32_t>((what.bytes + with_.packet_payload_bytes - 1) / with_.packet_payload_bytes);
  f.arrived = 0;
  f.second_channel = what.second_channel;
  f.entries_out = what.entries_out;
  f.entries_in = what.entries_in;
  f.acknowledged = what.acknowledged;
  f.from_adapter = what.from_adapter;
  f.to_adapter = what.to_adapter;
  at_or_now<&network_model::doorbell>(when_ps, number);
}

// The post crosses the bus, the adapter processes it, and the first data cross the bus: these steps add latency, but
// occupy no resource. They must not change the order of transfers, although a small one has a shorter delay.
void network_model::doorbell(std::uint64_t number) noexcept {
  const flight& f = flights_[number];
  time_ps ready_ps = events_.now_ps() + with_.nic_message_time_ps;
  if (!f.from_adapter) ready_ps += with_.pcie_latency_ps;
  if (f.bytes > (f.from_adapter ? 0 : with_.inline_payload_bytes)) ready_ps += 2 * with_.pcie_latency_ps;
  lane& l = engines_[sending_engine(f)].lanes[f.second_channel ? 1 : 0];
  l.last_entry_ps = std::max(l.last_entry_ps, ready_ps);
  at_or_now<&network_model::enter>(l.last_entry_ps, number);
}

void network_model::enter(std::uint64_t data) noexcept {
  const auto number = static_cast<std::uint32_t>(data);
  flight& f = flights_[number];
  f.entered_ps = events_.now_ps();
  f.next = none;
  const std::uint32_t at = sending_engine(f);
  engine& e = engines_[at];
  const std::uint32_t which = f.second_channel ? 1 : 0;
  lane& l = e.lanes[which];
  if (l.current == none) {
    l.current = number;
    l.packet = 0;
    if (std::exchange(e.reads, true)) return;
    e.reading = which;
    return read_next(at);
  }
  if (l.first == none) {
    l.first = number;
  } else {
    flights_[l.last].next = number;
  }
  l.last = number;
  e.use.queue_max = std::max(e.use.queue_max, ++e.waiting);
}

/// The engine reads the next packet of its current transfer.
void network_model::read_next(std::uint32_t at) noexcept {
  engine& e = engines_[at];
  const lane& l = e.lanes[e.reading];
  const flight& f = flights_[l.current];
  const time_ps start_ps = std::max(events_.now_ps(), e.busy_until_ps);
  if (l.packet == 0) {
    e.use.waiting_ps += start_ps - f.entered_ps;
    ++e.use.transfers;
    if (f.from != f.to) find_route(l.current, f.from, f.to);
  }
  time_ps takes_ps = engine_time(bytes_of(f, l.packet), with_.dma_speed_gbs);
  takes_ps = std::max(takes_ps, list_time(f, bytes_of(f, l.packet), f.entries_out));
  if (l.packet == 0 && !f.from_adapter) takes_ps = std::max(takes_ps, with_.nic_message_gap_ps);
  e.busy_until_ps = start_ps + takes_ps;
  e.use.busy_ps += takes_ps;
  if (log_ != nullptr) log_->add(over_.links() + at, start_ps, e.busy_until_ps, f.id);
  this->at<&network_model::departed>(e.busy_until_ps, at);
}

void network_model::departed(std::uint64_t data) noexcept {
  const auto at = static_cast<std::uint32_t>(data);
  engine& e = engines_[at];
  lane& l = e.lanes[e.reading];
  const std::uint32_t number = l.current;
  const flight& f = flights_[number];
  const std::uint32_t packet = l.packet++;
  const std::uint32_t bytes = bytes_of(f, packet);
  const transfer_id id = f.id;
  const bool loops = f.from == f.to;
  e.use.bytes_out += bytes;
  ++e.use.packets_out;
  if (!loops) hop(pack(number, packet, 0));
  if (l.packet == f.packets) {
    l.packet = 0;
    l.current = l.first;
    if (l.first != none) {
      l.first = flights_[l.first].next;
      --e.waiting;
    }
  }
  if (e.lanes[1 - e.reading].current != none) e.reading = 1 - e.reading;
  e.reads = e.lanes[e.reading].current != none;
  if (e.reads) read_next(at);
  const bool to_memory = !f.to_adapter;
  sink_.on_departure(id, packet * with_.packet_payload_bytes, bytes);
  // In loop-back the engine has moved the packet from memory to memory.
  if (loops) {
    at_or_now<&network_model::placed>(events_.now_ps() + (to_memory ? with_.pcie_latency_ps : 0),
                                      pack(number, packet, 0));
  }
}

// ---- packets ------------------------------------------------------------------------------------------------------

/// A packet's head is ready at the sending end of a link of its path.
void network_model::hop(std::uint64_t packet) noexcept {
  const link_id link = paths_[flight_of(packet) * path_stride_ + hop_of(packet)];
  if (!limited_ports_.empty()) return wait_for_buffer(packet, link);
  const port& out = ports_[link];
  time_ps start_ps = std::max(events_.now_ps(), out.busy_until_ps);
  if (out.outages != none) start_ps = after_outages(out, start_ps);
  transmit(packet, link, events_.now_ps(), start_ps);
}

void network_model::transmit(std::uint64_t packet, link_id link, time_ps ready_ps, time_ps start_ps) noexcept {
  const std::uint32_t number = flight_of(packet);
  const std::uint32_t step = hop_of(packet);
  const flight& f = flights_[number];
  const std::uint32_t bytes = wire_bytes_of(f, packet_of(packet));
  const time_ps wire_ps = scaled(bytes, step == 0 ? link_ps_per_byte_ : router_ps_per_byte_);
  port& out = ports_[link];
  out.busy_until_ps = start_ps + wire_ps;
  out.use.bytes += bytes;
  ++out.use.packets;
  out.use.busy_ps += wire_ps;
  out.use.waiting_ps += start_ps - ready_ps;
  out.use.waiting_max_ps = std::max(out.use.waiting_max_ps, start_ps - ready_ps);
  if (log_ != nullptr) log_->add(link, start_ps, start_ps + wire_ps, f.id);

  const time_ps tail_ps = start_ps + wire_ps + with_.cable_latency_ps;
  if (step + 1U < f.hops) {
    const time_ps head_ps = with_.store_and_forward != 0 ? tail_ps : start_ps + with_.cable_latency_ps;
    return at<&network_model::hop>(head_ps + router_delay_ps_, packet + 1);
  }
  const bool is_control = packet_of(packet) == control;
  const time_ps arrival_ps = jitter_max_ps_ == 0 ? tail_ps : jittered(f, is_control, tail_ps);
  if (is_control) return at<&network_model::acknowledged>(arrival_ps + with_.pcie_latency_ps, number);
  at<&network_model::reached_adapter>(arrival_ps, packet);
}

// ---- finite buffers -----------------------------------------------------------------------------------------------

void network_model::wait_for_buffer(std::uint64_t packet, link_id link) noexcept {
  std::uint32_t index = free_waiter_;
  if (index == none) {
    index = static_cast<std::uint32_t>(waiters_.size());
    waiters_.emplace_back();
  } else {
    free_waiter_ = waiters_[index].next;
  }
  waiters_[index] = {packet, events_.now_ps(), none};
  limited_port& of = limited_ports_[link];
  (of.first == none ? of.first : waiters_[of.last].next) = index;
  of.last = index;
  try_send(link);
}

void network_model::try_send(link_id link) noexcept {
  limited_port& of = limited_ports_[link];
  const port& out = ports_[link];
  while (of.first != none && !of.will_retry && of.held < with_.port_buffers) {
    time_ps start_ps = std::max(events_.now_ps(), out.busy_until_ps);
    if (out.outages != none) start_ps = after_outages(out, start_ps);
    if (start_ps > events_.now_ps()) {
      of.will_retry = true;
      return at<&network_model::link_idle>(start_ps, link);
    }
    const std::uint32_t index = of.first;
    const waiter sent = waiters_[index];
    of.first = sent.next;
    waiters_[index].next = free_waiter_;
    free_waiter_ = index;
    ++of.held;
    transmit(sent.packet, link, sent.ready_ps, start_ps);

    // The credit for free buffer space returns over the cable: for the previous link when the packet has left the
    // router, for a last link when the adapter has it.
    const std::uint32_t step = hop_of(sent.packet);
    const flight& f = flights_[flight_of(sent.packet)];
    const link_id* path = &paths_[flight_of(sent.packet) * path_stride_];
    const time_ps left_ps = out.busy_until_ps + with_.cable_latency_ps;
    if (step > 0) at<&network_model::buffer_free>(left_ps, path[step - 1]);
    if (step + 1U == f.hops) at<&network_model::buffer_free>(left_ps + with_.cable_latency_ps, link);
  }
}

void network_model::link_idle(std::uint64_t link) noexcept {
  limited_ports_[link].will_retry = false;
  try_send(static_cast<link_id>(link));
}

void network_model::buffer_free(std::uint64_t link) noexcept {
  --limited_ports_[link].held;
  try_send(static_cast<link_id>(link));
}

// ---- the target's adapter -----------------------------------------------------------------------------------------

void network_model::reached_adapter(std::uint64_t packet) noexcept {
  const flight& f = flights_[flight_of(packet)];
  const std::uint32_t at = receiving_engine(f);
  engine& e = engines_[at];
  const std::uint32_t bytes = bytes_of(f, packet_of(packet));
  const time_ps start_ps = std::max(events_.now_ps(), e.busy_until_ps);
  time_ps takes_ps = engine_time(bytes, with_.write_speed_gbs());
  takes_ps = std::max(takes_ps, list_time(f, bytes, f.entries_in));
  e.busy_until_ps = start_ps + takes_ps;
  e.use.bytes_in += bytes;
  ++e.use.packets_in;
  e.use.busy_ps += takes_ps;
  e.use.waiting_ps += start_ps - events_.now_ps();
  if (log_ != nullptr) log_->add(over_.links() + at, start_ps, e.busy_until_ps, f.id);
  at_or_now<&network_model::placed>(e.busy_until_ps + (f.to_adapter ? 0 : with_.pcie_latency_ps), packet);
}

void network_model::placed(std::uint64_t packet) noexcept {
  const std::uint32_t number = flight_of(packet);
  flight& f = flights_[number];
  const std::uint32_t bytes = bytes_of(f, packet_of(packet));
  const std::uint64_t first = packet_of(packet) * with_.packet_payload_bytes;
  const transfer_id id = f.id;
  const bool is_last = ++f.arrived == f.packets;
  const bool answered = is_last && f.acknowledged;
  const bool loops = f.from == f.to;
  if (answered && !loops) {
    find_route(number, f.to, f.from);
    hop(pack(number, control, 0));
  } else if (is_last) {
    finish(number);
  }
  sink_.on_arrival(id, first, bytes);
  if (answered && loops) sink_.on_acknowledgement(id);
}

void network_model::acknowledged(std::uint64_t number) noexcept {
  const transfer_id id = flights_[number].id;
  finish(static_cast<std::uint32_t>(number));
  sink_.on_acknowledgement(id);
}

void network_model::serve_atomic(int node, transfer_id id, time_ps when_ps) {
  time_ps& busy_until_ps = atomic_busy_until_ps_[static_cast<std::size_t>(node)];
  busy_until_ps = std::max(busy_until_ps, when_ps) + with_.atomic_service_time_ps;
  at<&network_model::atomic_done>(busy_until_ps, id);
}

std::uint64_t network_model::hops() const noexcept {
  std::uint64_t sum = 0;
  for (const port& one : ports_) sum += one.use.packets;
  return sum;
}

// ---- faults -------------------------------------------------------------------------------------------------------

void network_model::set_link_down(link_id link, time_ps from_ps, time_ps until_ps) {
  outages_.push_back({from_ps, until_ps, ports_[link].outages});
  ports_[link].outages = static_cast<std::uint32_t>(outages_.size() - 1);
}

time_ps network_model::after_outages(const port& at, time_ps start_ps) const noexcept {
  for (std::uint32_t i = at.outages; i != none;) {
    const outage& one = outages_[i];
    const bool hit = one.from_ps <= start_ps && start_ps < one.until_ps;
    if (hit) start_ps = one.until_ps;
    i = hit ? at.outages : one.next;  // the end of one outage may lie in another
  }
  return start_ps;
}

void network_model::set_jitter(time_ps max_ps, std::uint64_t seed, bool keep_order) {
  jitter_max_ps_ = max_ps;
  jitter_state_ = seed;
  jitter_keeps_order_ = keep_order;
}

time_ps network_model::jittered(const flight& f, bool is_control, time_ps arrival_ps) noexcept {
  // splitmix64
  std::uint64_t z = jitter_state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  arrival_ps += static_cast<time_ps>(z % (static_cast<std::uint64_t>(jitter_max_ps_) + 1));
  if (!jitter_keeps_order_) return arrival_ps;
  const std::uint64_t from = is_control ? f.to : f.from;
  const std::uint64_t to = is_control ? f.from : f.to;
  time_ps& last_ps = last_arrival_ps_[from << 32 | to];
  return last_ps = std::max(last_ps, arrival_ps);
}

}  // namespace rma::sim
