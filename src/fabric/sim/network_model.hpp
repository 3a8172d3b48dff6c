// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model of the time that transfers take from the memory of one node to that of another.
///
///   post --> DMA engine of the source --packets--> link, router, link ... --> DMA engine of the target --> control
///   packet back to the source                                                (Susukita, NSIM-ACE, sect. 2)
///
/// The model knows nodes and byte counts only: no ranks, no data. It reports to the owner of the data when each packet
/// leaves the source's memory and when it is in the target's.
///
/// Engines. A node's DMA engines read memory; each works on one transfer at a time, in order, packet by packet.
/// Transfers of a second channel have an order of their own: the engine alternates between packets of both channels. An
/// incoming packet is written by a receive engine or, where there is none, by the engine that also reads outgoing
/// packets. Transfers between two nodes always use the same engines and links, so they keep their order.
///
/// Links. One packet per direction at a time, in the order in which packets are ready. Virtual cut-through: a packet's
/// head is forwarded to the next router while its tail is still on the link; one event per packet and link. With finite
/// buffers a packet starts on a link only when there is room for it at the far end; it frees that room when it has left
/// the far router. Adapters accept all packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fabric/sim/event_queue.hpp"
#include "fabric/sim/parameters.hpp"
#include "fabric/sim/topology.hpp"
#include "fabric/sim/use_log.hpp"

namespace rma::sim {

/// The caller's number of a transfer.
using transfer_id = std::uint64_t;

/// The model reports progress to the owner of the data through a sink, at the virtual time of the event. The functions
/// may post.
class transfer_sink {
 public:
  /// Bytes [first, first + bytes) have been read from the source's memory.
  virtual void on_departure(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept = 0;
  /// They are in the target's memory.
  virtual void on_arrival(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept = 0;
  /// The acknowledging control packet has reached the source.
  virtual void on_acknowledgement(transfer_id id) noexcept = 0;
  /// The adapter's atomic unit has carried out the request of serve_atomic().
  virtual void on_atomic(transfer_id) noexcept {}

 protected:
  ~transfer_sink() = default;
};

struct transfer {
  transfer_id id = 0;
  int from_node = 0;
  int to_node = 0;  ///< may be the same: loop-back through the adapter
  bool second_channel = false;
  std::uint32_t entries_out = 1;  ///< length of the gather list
  std::uint32_t entries_in = 1;   ///< length of the scatter list
  std::uint64_t bytes = 0;        ///< 0: a control packet, no DMA at either end; one arrival of 0 bytes
  bool acknowledged = true;       ///< a control packet comes back
  bool from_adapter = false;  ///< posted by the adapter itself (the answer to a read): nothing crosses the bus for it
  bool to_adapter = false;    ///< for the adapter itself (the request of a read or an atomic): not written to memory
};

/// Counters of a link.
struct link_use {
  std::uint64_t bytes = 0;  ///< on the wire, with headers
  std::uint64_t packets = 0;
  time_ps busy_ps = 0;
  time_ps waiting_ps = 0;      ///< sum over all packets, from being ready to being sent
  time_ps waiting_max_ps = 0;  ///< longest of one packet
};

/// Counters of a DMA engine.
struct engine_use {
  std::uint64_t bytes_out = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t packets_out = 0;
  std::uint64_t packets_in = 0;
  std::uint64_t transfers = 0;
  time_ps busy_ps = 0;
  time_ps waiting_ps = 0;       ///< waiting time of incoming packets, and of transfers for the engine
  std::uint32_t queue_max = 0;  ///< longest queue of transfers
};

class network_model {
 public:
  /// Errors     Error(bad_setting): finite buffers in a torus, whose rings would deadlock
  network_model(event_queue& events, const parameters& with, const topology& over, transfer_sink& sink);
  network_model(const network_model&) = delete;
  network_model& operator=(const network_model&) = delete;

  /// The processor (or the adapter) posts a transfer at that time, which is not before now.
  void post(const transfer& what, time_ps when_ps);
  /// A request reaches a node's atomic unit at that time; on_atomic() is called when the unit has served it.
  void serve_atomic(int node, transfer_id id, time_ps when_ps);

  /// No packet starts on that link in [from, until); packets wait until the end of the interval.
  void set_link_down(link_id link, time_ps from_ps, time_ps until_ps);
  /// Records busy times of links and engines in the log from now on; it must outlive the model's events.
  void watch(use_log& log) noexcept { log_ = &log; }

  /// Every packet is delayed at its last link by up to max, drawn from the seed. `keep_order`: packets of one (source,
  /// target) pair still arrive in order.
  void set_jitter(time_ps max_ps, std::uint64_t seed, bool keep_order);

  [[nodiscard]] const parameters& constants() const noexcept { return with_; }
  [[nodiscard]] const topology& over() const noexcept { return over_; }
  [[nodiscard]] time_ps now_ps() const noexcept { return events_.now_ps(); }
  /// The longest transfer that can be posted.
  [[nodiscard]] std::uint64_t bytes_max() const noexcept { return control * with_.packet_payload_bytes; }
  /// The number of transfers that are posted and not yet finished.
  [[nodiscard]] std::uint64_t transfers_open() const noexcept { return open_; }
  /// The number of links that packets have crossed.
  [[nodiscard]] std::uint64_t hops() const noexcept;

  [[nodiscard]] const link_use& use_of(link_id link) const noexcept { return ports_[link].use; }
  [[nodiscard]] unsigned engines_per_node() const noexcept { return engines_per_node_; }
  [[nodiscard]] const engine_use& use_of(int node, unsigned which) const noexcept {
    return engines_[static_cast<unsigned>(node) * engines_per_node_ + which].use;
  }

 private:
  // An event's data are a transfer's number in flights_, a packet's number in it, and a link's number in its path.
  static constexpr unsigned hop_bits = 10;
  static constexpr unsigned packet_bits = 26;
  static constexpr std::uint32_t control = (1U << packet_bits) - 1;  // the acknowledgement's packet number
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  static constexpr std::uint64_t pack(std::uint32_t flight, std::uint32_t packet, std::uint32_t hop) noexcept {
    return std::uint64_t{flight} << (packet_bits + hop_bits) | std::uint64_t{packet} << hop_bits | hop;
  }
  static constexpr std::uint32_t flight_of(std::uint64_t data) noexcept {
    return static_cast<std::uint32_t>(data >> (packet_bits + hop_bits));
  }
  static constexpr std::uint32_t packet_of(std::uint64_t data) noexcept {
    return static_cast<std::uint32_t>(data >> hop_bits) & control;
  }
  static constexpr std::uint32_t hop_of(std::uint64_t data) noexcept {
    return static_cast<std::uint32_t>(data) & ((1U << hop_bits) - 1);
  }

  struct flight {
    transfer_id id;
    std::uint64_t bytes;
    time_ps entered_ps;
    std::uint32_t from, to;
    std::uint32_t packets;
    std::uint32_t arrived;
    std::uint32_t entries_out, entries_in;
    std::uint32_t next;  // next in an engine's queue, or in the free list
    std::uint16_t hops;
    bool acknowledged, from_adapter, to_adapter, second_channel;
  };
  struct alignas(64) port {
    time_ps busy_until_ps = 0;
    link_use use{};
    std::uint32_t outages = none;  // index in outages_
  };
  /// Additional state of a link whose far end holds a limited number of packets.
  struct limited_port {
    std::uint32_t held = 0;      // packets on the link or in the buffers at its end
    std::uint32_t first = none;  // packets that wait for it, in waiters_
    std::uint32_t last = none;
    bool will_retry = false;  // an event is posted
  };
  struct waiter {
    std::uint64_t packet;
    time_ps ready_ps;
    std::uint32_t next;
  };
  struct outage {
    time_ps from_ps, until_ps;
    std::uint32_t next;
  };
  /// Transfers of one channel, in order.
  struct lane {
    time_ps last_entry_ps = 0;
    std::uint32_t current = none;  // the transfer being read
    std::uint32_t packet = 0;      // its next packet
    std::uint32_t first = none;    // waiting transfers
    std::uint32_t last = none;
  };
  struct engine {
    time_ps busy_until_ps = 0;
    lane lanes[2];
    std::uint32_t reading = 0;  // the lane of the packet being read
    bool reads = false;
    std::uint32_t waiting = 0;
    engine_use use{};
  };

  template <void (network_model::*Member)(std::uint64_t) noexcept>
  static void run(void* self, std::uint64_t data) noexcept {
    (static_cast<network_model*>(self)->*Member)(data);
  }
  template <void (network_model::*Member)(std::uint64_t) noexcept>
  void at(time_ps when_ps, std::uint64_t data) {
    events_.at(when_ps, &run<Member>, this, data);
  }
  /// As `at`, but calls the member at once if the time is now.
  template <void (network_model::*Member)(std::uint64_t) noexcept>
  void at_or_now(time_ps when_ps, std::uint64_t data) {
    when_ps == events_.now_ps() ? (this->*Member)(data) : at<Member>(when_ps, data);
  }

  // The steps of a transfer, in order.
  void doorbell(std::uint64_t flight) noexcept;
  void enter(std::uint64_t flight) noexcept;
  void read_next(std::uint32_t at) noexcept;
  void departed(std::uint64_t at) noexcept;
  void hop(std::uint64_t packet) noexcept;
  void transmit(std::uint64_t packet, link_id link, time_ps ready_ps, time_ps start_ps) noexcept;
  void wait_for_buffer(std::uint64_t packet, link_id link) noexcept;
  void try_send(link_id link) noexcept;
  void link_idle(std::uint64_t link) noexcept;
  void buffer_free(std::uint64_t link) noexcept;
  void reached_adapter(std::uint64_t packet) noexcept;
  void placed(std::uint64_t packet) noexcept;
  void acknowledged(std::uint64_t flight) noexcept;
  void atomic_done(std::uint64_t id) noexcept { sink_.on_atomic(id); }

  [[nodiscard]] std::uint32_t new_flight();
  void finish(std::uint32_t flight) noexcept;
  [[nodiscard]] std::uint32_t sending_engine(const flight& f) const noexcept;
  [[nodiscard]] std::uint32_t receiving_engine(const flight& f) const noexcept;
  [[nodiscard]] std::uint32_t bytes_of(const flight& f, std::uint32_t packet) const noexcept;
  [[nodiscard]] std::uint32_t wire_bytes_of(const flight& f, std::uint32_t packet) const noexcept;
  [[nodiscard]] time_ps engine_time(std::uint32_t bytes, double speed_gbs) const noexcept;
  [[nodiscard]] time_ps list_time(const flight& f, std::uint32_t bytes, std::uint32_t entries) const noexcept;
  void find_route(std::uint32_t flight, std::uint32_t from, std::uint32_t to) noexcept;
  [[nodiscard]] time_ps after_outages(const port& at, time_ps start_ps) const noexcept;
  [[nodiscard]] time_ps jittered(const flight& f, bool is_control, time_ps arrival_ps) noexcept;

  event_queue& events_;
  const parameters with_;
  const topology over_;
  transfer_sink& sink_;
  // derived from the constants
  const time_ps router_delay_ps_;
  const double link_ps_per_byte_;
  const double router_ps_per_byte_;
  const std::uint32_t engines_per_node_;
  const std::size_t path_stride_;

  std::vector<flight> flights_{};
  std::vector<link_id> paths_{};  // path_stride_ per flight
  std::uint32_t free_flight_ = none;
  std::uint64_t open_ = 0;
  std::vector<port> ports_;
  std::vector<limited_port> limited_ports_{};  // only if buffers are finite
  std::vector<waiter> waiters_{};
  std::uint32_t free_waiter_ = none;
  std::vector<engine> engines_;
  std::vector<time_ps> atomic_busy_until_ps_;

  use_log* log_ = nullptr;

  std::vector<outage> outages_{};
  time_ps jitter_max_ps_ = 0;
  std::uint64_t jitter_state_ = 0;
  bool jitter_keeps_order_ = true;
  std::unordered_map<std::uint64_t, time_ps> last_arrival_ps_{};  // by pair, only with jitter
};

}  // namespace rma::sim
