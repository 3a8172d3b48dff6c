// SPDX-License-Identifier: Apache-2.0
/// \file
/// The network of a simulated job, from the call of one rank to the memory of another.
///
///   write:    packets leave the origin's memory --> arrive --> are in the target's memory --> completion
///   read:     request --> its turn --> packets leave the target's memory --> arrive --> completion
///   atomic:   request --> its turn --> atomic unit of the target's adapter --> answer --> completion
///   message:  packets --> arrive --> its turn --> a place in the target's receive queue, or offered again later
///
/// A connection is what one rank sends to another. Reads, atomics and messages wait there for their turn: until all
/// operations posted before them have arrived, and writes are in memory. The contract of the fabric guarantees this
/// order and no other: operations overtake each other wherever the network model and the fault model permit it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/sim/fault_model.hpp"
#include "fabric/sim/fifo.hpp"
#include "fabric/sim/network_model.hpp"
#include "fabric/sim/use_log.hpp"
#include "fabric/sim/world.hpp"

namespace rma::sim {

class sim_fabric;

class wire final : public transfer_sink {
 public:
  wire(world& job, const parameters& constants, const topology& over, const fault_model& today, std::uint64_t seed);

  [[nodiscard]] const fault_model& today() const noexcept { return faults_; }
  [[nodiscard]] const network_model& model() const noexcept { return model_; }
  /// The log of busy links and engines; null without `watch_network`.
  [[nodiscard]] const use_log* log() const noexcept { return log_.get(); }
  [[nodiscard]] world& job() noexcept { return job_; }

  void join(int rank, sim_fabric& fabric);
  /// Detaches the rank's fabric: nothing is delivered to it any more.
  void detach(int rank) noexcept;

  enum class kind : std::uint8_t { write, read, fetch_add, compare_swap, message, bulk };
  /// The completions that an operation reports.
  enum class signaling : std::uint8_t {
    signaled,
    unsignaled,  ///< only that of a failure
    silent,      ///< none
  };
  /// An operation to be posted.
  struct request {
    kind what = kind::write;
    int origin = 0;
    int target = 0;
    std::uint64_t token = 0;
    fabric::region_key region;
    std::span<const fabric::local_slice> local;
    std::span<const fabric::remote_slice> remote;
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;
    std::uint64_t* old = nullptr;
    std::optional<std::uint32_t> immediate;
    std::uint16_t message_kind = 0;
    std::span<const std::byte> header, payload;  ///< data of a message, or of a silent write: copied
    signaling reports = signaling::signaled;
    bool chained = false;  ///< it shares doorbell and completion with the operation before it
  };
  /// `posted`, `done` for a message, or `retry_queue_full`.
  status post(const request& o);

  /// Posts a receive for the next bulk send of `origin` to this rank. `posted` or `retry_queue_full`.
  status post_receive(int rank, int origin, std::span<const fabric::local_slice> to, std::uint64_t token);
  /// Ends this rank's operations on the bulk channels of dead peers.
  void end_bulk_of_dead(int rank);

  /// Returns the memory of a message, to be used for another.
  void give_back(std::vector<std::byte>&& data) noexcept;
  /// Retries messages that found the receive queue of this rank full.
  void made_room(int rank);
  [[nodiscard]] bool refuses_registration() noexcept { return rng_.one_in(faults_.refused_one_in); }

  // ---- from the model ---------------------------------------------------------------------------------------
  void on_departure(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept override;
  void on_arrival(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept override;
  void on_acknowledgement(transfer_id id) noexcept override;
  void on_atomic(transfer_id id) noexcept override;

 private:
  struct flight {
    kind what = kind::write;
    bool back = false;      ///< the reply of a read or an atomic is in flight
    bool reported = false;  ///< its completion has been reported to the origin
    bool has_immediate = false;
    bool fails = false;  ///< it will end with an error
    signaling reports = signaling::signaled;
    bool chained = false;
    bool is_inline = false;  ///< its data were read when it was posted
    bool is_early = false;   ///< a write that has arrived before a message that it must not overtake
    bool acknowledged = false;
    int origin = 0;
    int target = 0;
    std::uint64_t token = 0;
    std::uint64_t number = 0;           ///< its position in its stream
    std::uint64_t messages_before = 0;  ///< number of messages of a write's stream that were posted before it
    fabric::region_key region;
    std::vector<fabric::local_slice> local;
    std::vector<fabric::remote_slice> remote;
    std::vector<std::byte> data;
    std::uint64_t bytes = 0;
    std::uint64_t arrived = 0;
    std::uint64_t fails_at = 0;  ///< the first of its bytes that is not transferred
    std::uint64_t operand = 0, expected = 0, old_value = 0;
    std::uint64_t* old = nullptr;
    std::uint32_t immediate = 0;
    std::uint16_t message_kind = 0;
    unsigned holds = 0;  ///< steps that still need this record
    status result = status::done;
  };
  /// A stream is served in the order of its posting.
  struct stream {
    std::uint64_t posted = 0, served = 0;
    std::vector<std::uint32_t> waiting;  ///< arrived, not yet served
  };
  struct bulk_receive {
    std::vector<fabric::local_slice> to;
    std::uint64_t bytes;
    std::uint64_t token;
  };
  /// The state of the transfers from one rank to another.
  struct connection {
    stream operations;                    ///< with messages, if they must not overtake writes
    stream messages;                      ///< otherwise messages
    std::vector<std::uint32_t> unplaced;  ///< writes that have arrived but are not in memory yet
    std::uint64_t messages_posted = 0, messages_served = 0;
    bool retrying = false;  ///< a retry of a message is scheduled
    stream bulk;
    std::list<bulk_receive> receives{};
    time_ps refused_ps = never_ps;  ///< when a bulk send first found no receive
    bool bulk_retrying = false;     ///< a retry of a bulk send is scheduled
    std::uint32_t reads = 0;        ///< outstanding reads and atomics
    fifo<std::uint32_t> stalled{};  ///< flights that wait for these, and all posted after them
  };

  flight& at(std::uint32_t index) noexcept { return flights_[index]; }
  static std::uint64_t pair_of(int origin, int target) noexcept {
    return static_cast<std::uint64_t>(origin) << 32 | static_cast<std::uint32_t>(target);
  }
  connection& between(int origin, int target) { return connections_[pair_of(origin, target)]; }
  stream& stream_of(connection& c, const flight& f) noexcept {
    if (f.what == kind::bulk) return c.bulk;
    return f.what == kind::message && !faults_.caps.messages_after_writes ? c.messages : c.operations;
  }
  [[nodiscard]] bool breaks(breach what, std::uint64_t one_in) noexcept {
    return faults_.broken == what && rng_.one_in(one_in);
  }
  std::uint32_t take();
  void fill(flight& f, const request& o);
  void send(std::uint32_t index, time_ps when_ps);
  void send_in_order(std::uint32_t index, time_ps when_ps);
  [[nodiscard]] bool must_stall(const connection& c, const flight& f) const noexcept;
  void end_read(connection& c);
  void draw_failure(flight& f) noexcept;
  void charge_post(const request& o, std::size_t requests, std::size_t entries) noexcept;
  void copy_out(flight& f, std::uint64_t first, std::uint64_t bytes) noexcept;
  void copy_in(flight& f, std::uint64_t first, std::uint64_t bytes) noexcept;
  [[nodiscard]] bool lies_in_region(const flight& f) const noexcept;
  [[nodiscard]] bool takes_answer(const flight& f) const noexcept;
  /// True if messages posted before this write have not been delivered, which it must not overtake.
  [[nodiscard]] bool overtakes(const connection& c, const flight& f) const noexcept {
    return faults_.caps.messages_after_writes && c.messages_served < f.messages_before;
  }
  void place_later(connection& c, std::uint32_t index);
  void place_early(connection& c, std::uint32_t index);
  void arrived_at_target(std::uint32_t index);
  void arrived_back(std::uint32_t index);
  void serve(connection& c, stream& s);
  bool serve_one(connection& c, std::uint32_t index);
  bool deliver(connection& c, flight& f);
  bool deliver_bulk(connection& c, std::uint32_t index);
  void offer_again(std::uint64_t pair, connection& c);
  static void on_bulk_due(void* self, std::uint64_t pair) noexcept;
  void place_one(std::uint32_t index) noexcept;
  void place_all(connection& c) noexcept;
  void answer(std::uint32_t index);
  void complete(flight& f) noexcept;
  void release(std::uint32_t index) noexcept;
  static void on_placement_due(void* self, std::uint64_t data) noexcept;
  static void on_retry_due(void* self, std::uint64_t data) noexcept;

  world& job_;
  fault_model faults_;
  rng rng_;
  network_model model_;
  std::unique_ptr<use_log> log_;
  std::vector<sim_fabric*> fabrics_;
  std::deque<flight> flights_;
  std::vector<std::uint32_t> free_;
  std::vector<std::vector<std::byte>> spare_;  ///< empty buffers of delivered messages, to be reused
  std::list<bulk_receive> spare_receives_;
  std::unordered_map<std::uint64_t, connection> connections_;
  std::set<std::uint64_t> bulk_pairs_;  ///< connections whose bulk channel was used
};

}  // namespace rma::sim
