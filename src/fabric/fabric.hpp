// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interface of a fabric. It is shaped like reliable-connected verbs, as the papers' protocols are.
///
/// Order: a read, an atomic or a message to a peer takes effect there after all writes that were posted to it before
/// (a message: by its capabilities); nothing else is ordered. Every posted operation ends, at least with an error: the
/// completions of operations on a peer that dies have `peer_failed`. On a living peer an error is `transfer_failed`:
/// the memory that a write or a read writes is undefined then, and an atomic has not been done.
///
/// Peers are world ranks. A call returns `done` (complete, there will be no completion), `posted` (`poll` will return a
/// completion with the caller's token), `retry_queue_full` (nothing happened) or an error. A token is that of a
/// `completion`, or 0, whose completion the fabric may omit. The progress lock of the runtime guards all calls; none
/// blocks, allocates in steady state or throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "rma/error.hpp"

namespace rma::shm {
struct line_pair;
}

namespace rma::fabric {

/// The meaning of a write's completion.
enum class write_completion : std::uint8_t {
  local,   ///< the origin's buffer may be reused
  acked,   ///< the target's adapter has the bytes
  placed,  ///< the bytes are in the target's memory, visible to its processor
};

/// Expected times of a fabric's transfers, for the choice of protocols.
struct transfer_costs {
  std::int64_t write_ns = 2'000;    ///< a write or read of few bytes, from its post to the end of a flush
  std::int64_t piece_ns = 200;      ///< for each further one posted with it
  double byte_ns = 0.1;             ///< for each byte of a write or read
  std::int64_t message_ns = 4'000;  ///< a message to the target's handler, until it is acknowledged
  double message_byte_ns = 0.3;     ///< for each byte in messages, copies at both ends included
  std::int64_t list_entry_ns = 20;  ///< for each further entry of a gather or scatter list
};

/// The transfers whose last byte appears in memory after all others, so that polling this byte detects their end, and a
/// poll of the fabric then finds the messages sent before the transfer was posted.
enum class polled_end : std::uint8_t { none, write, read, both };

/// Every fabric's messages may have this length: that of the longest header of a control message, and some data.
inline constexpr std::size_t message_bytes_min = 256;

struct capabilities {
  std::string_view name;
  std::size_t gather_max = 1;
  std::size_t scatter_max = 1;
  std::size_t bulk_pieces_max = 0;    ///< longest list of a bulk send or receive; 0: no bulk channel
  std::size_t inline_bytes_max = 0;   ///< length of a write that is copied before the call returns
  std::size_t remote_slices_max = 1;  ///< pieces at the peer of one write or read, paired with as many here; a fabric
                                      ///< may refuse several (`not_supported`) where it takes each by itself
  std::size_t transfer_bytes_max = ~std::size_t{0};  ///< length of one write or read
  std::size_t message_bytes_max = 0;                 ///< header and payload; at least message_bytes_min
  write_completion write_means = write_completion::local;
  bool in_order_placement = false;
  polled_end polls = polled_end::none;  ///< transfers of one piece whose end may be polled in memory
  /// A message is handled after the writes posted before it are in memory, and a write is in memory only after the
  /// messages sent before it have arrived.
  bool messages_after_writes = false;
  bool write_with_immediate = false;
  bool atomics = false;                    ///< fetch_add and compare_swap of 64 bits, atomic with each other
  bool words = false;                      ///< silent writes
  bool one_sided = false;                  ///< write and read do not need the target's processor
  std::string_view not_one_sided_because;  ///< the reason, if the machine prevents it, and the remedy
  /// If they need it: messages to its handler are cheaper up to this many bytes, in one piece and in several. A put in
  /// pieces that fits one message always uses one.
  std::size_t handler_bytes_max = ~std::size_t{0};
  std::size_t handler_pieces_bytes_max = ~std::size_t{0};
  transfer_costs costs{};
  bool copies_by_cpu = false;  ///< write and read are copies by this processor, complete when they return
  bool maps_memory = false;    ///< memory of library windows can be mapped by other ranks
  bool pins_memory = false;    ///< a region takes its memory when it is registered, so that it must not be sparse
};

/// The key by which a peer accesses a region of this rank.
struct region_key {
  std::uint64_t address = 0;  ///< in the owner's process
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;  ///< key that the fabric has given to the region
};

struct local_slice {
  void* at = nullptr;
  std::size_t bytes = 0;
};

/// The pieces of local memory of one operation.
struct piece_bounds {
  local_slice hull;         ///< the range that all of them lie in
  std::uint64_t bytes = 0;  ///< sum of all pieces
  std::size_t count = 0;
  bool in_lists = false;  ///< several of them are used by one request
};

struct remote_slice {
  std::uint64_t address = 0;  ///< in the owner's process
  std::size_t bytes = 0;
};

/// The completion of a posted operation: a base class of the record that its caller keeps until the operation has
/// ended.
struct completion {
  /// Called once, by `poll`, under the progress lock; may post and send, must not wait. `bytes`: see sink.
  void (*run)(completion& self, status result, std::uint64_t bytes) noexcept = nullptr;
};

inline std::uint64_t token_of(completion& c) noexcept { return reinterpret_cast<std::uint64_t>(&c); }
/// `token` must not be 0.
inline completion& completion_of(std::uint64_t token) noexcept { return *reinterpret_cast<completion*>(token); }

/// Receives the events of `poll`. Runs under the progress lock; may post and send, must not call `poll`.
class sink {
 public:
  /// `bytes`: the length of the message for a bulk receive that is done; else 0.
  virtual void on_completion(std::uint64_t token, status result, std::uint64_t bytes) noexcept = 0;
  virtual void on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept = 0;
  virtual void on_immediate(int source, std::uint32_t immediate) noexcept = 0;
  /// The connection to the peer is broken, though the peer is not known to be dead.
  virtual void on_broken(int /*peer*/) noexcept {}

 protected:
  ~sink() = default;
};

/// Whether a peer will handle the next message to it before it leaves the library.
enum class delivery_guarantee : std::uint8_t {
  certain,  ///< it will; the message must follow at once
  no_room,  ///< it would, but there is no room for the message now
  asleep,   ///< it is in the library but sleeps
  none,
};

/// A directory of the values that ranks published when they joined the job.
class directory {
 public:
  /// Finds the value of `peer` for this key. Waits for the launcher's answer; `peer_failed` if there is none.
  virtual status look_up(int peer, std::string_view key, std::string& value) noexcept = 0;

 protected:
  ~directory() = default;
};

/// Message kinds below this are internal to fabrics.
inline constexpr std::uint16_t first_kind = 16;

/// The effect of a write beside moving bytes.
enum class write_kind : std::uint32_t {
  plain,
  immediate,  ///< the peer's sink gets a number when the bytes are in memory (`capabilities::write_with_immediate`)
  /// A write of one aligned word (`capabilities::words`), which is read before the call returns `done`. There is no
  /// completion, and the word may be lost if the connection breaks. It is in memory before messages sent later arrive.
  silent,
};

struct write_flags {
  write_kind kind = write_kind::plain;
  std::uint32_t immediate = 0;
  bool unsignaled = false;  ///< a failure is reported; a success with that of a later operation, or not at all
};

constexpr write_flags with_immediate(std::uint32_t value) noexcept { return {write_kind::immediate, value}; }
inline constexpr write_flags silent_write{write_kind::silent, 0};

/// The time at which an atomic is posted to the adapter. After `more_follow` the next post is another atomic to the
/// same peer: the fabric may hold this one and post them together, with one doorbell and one completion for all. They
/// keep their order. Held atomics are posted with the next `now`, or when the fabric is polled.
enum class posting : std::uint8_t { now, more_follow };

/// The state of a fabric: pending events, outstanding operations, and peers that are dead or leaving.
class liveness {
 public:
  /// True if `poll` would find an event. Called before a sleep.
  [[nodiscard]] virtual bool pending() noexcept = 0;
  /// True if no operation or message of this rank is in flight. Called before it leaves the job.
  [[nodiscard]] virtual bool quiet() noexcept = 0;
  /// Called for a dead peer: pending operations to it end with `peer_failed`, and nothing from it arrives any more.
  virtual void forget(int peer) noexcept = 0;
  /// True while messages that the peer sent before it left the job may still be in flight, for fabrics whose ranks say
  /// goodbye to each other. Called when a wait would end because the peer has left.
  [[nodiscard]] virtual bool expects_goodbye(int /*peer*/) noexcept { return false; }
  /// A descriptor that becomes readable at the next event after `pending` has returned false, always the same one; -1
  /// if the peer that causes the event rings the doorbell.
  [[nodiscard]] virtual int event_fd() const noexcept { return -1; }

 protected:
  ~liveness() = default;
};

/// Reservations of deliveries, for fabrics that see whether a peer is in the library.
class reservations {
 public:
  /// Reserves the delivery of one message of at most `bytes` to `peer`. If the result is `certain`, the peer handles it
  /// before it leaves the library, and the caller must send it at once, without waiting. Else nothing happened.
  [[nodiscard]] virtual delivery_guarantee reserve_delivery(int peer, std::size_t bytes) noexcept = 0;
  /// True while a peer has reserved a delivery that this rank has not handled. Called before it leaves or sleeps.
  [[nodiscard]] virtual bool owes_delivery() noexcept = 0;
  /// The shared lines for messages to and from a peer of the node, for callers that poll them; null if there are none.
  virtual shm::line_pair* lines_with(int /*peer*/) noexcept { return nullptr; }

 protected:
  ~reservations() = default;
};

/// Facts about a fabric, for reports and for the choice of protocols; not for data paths.
class facts {
 public:
  [[nodiscard]] virtual bool reaches(int peer) const noexcept = 0;
  /// A readable name of the route to the peer; empty if there is none, or no name for it.
  /// It may connect, and allocates.
  virtual std::string route(int /*peer*/) { return {}; }
  /// The fabric's counters, for Runtime::counters: calls `add` with the name and value of each.
  virtual void counts(const std::function<void(std::string_view, std::uint64_t)>& /*add*/) const {}

 protected:
  ~facts() = default;
};

class network {
 public:
  virtual ~network() = default;

  [[nodiscard]] virtual const capabilities& caps() const noexcept = 0;

  virtual status register_region(void* at, std::size_t bytes, region_key& key) noexcept = 0;
  virtual void deregister_region(const region_key& key) noexcept = 0;
  /// Announces an operation with several pieces of local memory. A network that registers memory when it is used may
  /// register all of them at once.
  virtual void expect_pieces(const piece_bounds& /*pieces*/) noexcept {}

  /// With an immediate, or silent, it has one piece at the peer. `not_supported` with an immediate: not from this
  /// memory.
  virtual status write(int peer, std::span<const local_slice> from, const region_key& region,
                       std::span<const remote_slice> to, std::uint64_t token, write_flags how = {}) noexcept = 0;
  virtual status read(int peer, std::span<const local_slice> to, const region_key& region,
                      std::span<const remote_slice> from, std::uint64_t token) noexcept = 0;
  virtual status fetch_add(int peer, const region_key& region, std::uint64_t address, std::uint64_t operand,
                           std::uint64_t& old, std::uint64_t token, posting when = posting::now) noexcept = 0;
  virtual status compare_swap(int peer, const region_key& region, std::uint64_t address, std::uint64_t expected,
                              std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                              posting when = posting::now) noexcept = 0;

  /// Sends a control message; header and payload are copied. `retry_queue_full` if there is no room now.
  virtual status send(int peer, std::uint16_t kind, std::span<const std::byte> header,
                      std::span<const std::byte> payload) noexcept = 0;
  /// The bulk channel: sends a gather list directly into the next receive posted by the peer, in order. A send without
  /// a receive waits for it. `message_too_long` at both ends if the receive is shorter. `not_supported`: no bulk
  /// channel, or not with this memory; `retry_queue_full`: too many sends to this peer are pending; `bad_argument`: a
  /// longer list than `bulk_pieces_max`, or more bytes than `transfer_bytes_max`. A send of no pieces is never
  /// `not_supported`.
  virtual status send_bulk(int peer, std::span<const local_slice> from, std::uint64_t token) noexcept = 0;
  virtual status post_bulk_receive(int peer, std::span<const local_slice> to, std::uint64_t token) noexcept = 0;

  /// Passes at most `limit` events to `to`; returns their number.
  virtual unsigned poll(sink& to, unsigned limit) noexcept = 0;

  // Interfaces beside the operations, of every fabric or of some.
  [[nodiscard]] liveness& as_liveness() const noexcept { return *liveness_; }
  [[nodiscard]] facts& as_facts() const noexcept { return *facts_; }
  /// Null if the fabric has no reservations.
  [[nodiscard]] reservations* as_reservations() const noexcept { return reservations_; }

 protected:
  network(liveness& live, facts& about, reservations* bound = nullptr) noexcept
      : liveness_(&live), facts_(&about), reservations_(bound) {}

 private:
  liveness* liveness_;
  facts* facts_;
  reservations* reservations_;
};

}  // namespace rma::fabric
