// SPDX-License-Identifier: Apache-2.0
/// \file
/// A network does this for protocols. Shaped like reliable-connected verbs, since the papers' protocols are.
///
/// Order: a read, an atomic or a message to a peer takes effect there after all writes that were posted to it before
/// (a message: if the capabilities say so); nothing else is ordered. What was posted ends, if only by an error: the
/// completion of everything towards a peer that dies comes with `peer_failed`. Towards a peer that lives an error is
/// `transfer_failed`: what a write or a read would have written is undefined then, and an atomic has not been done.
///
/// Peers are world ranks. A call returns `done` (over, no completion will come), `posted` (a completion with
/// the caller's token will come from `poll`), `retry_queue_full` (nothing happened) or an error. A token is 0, whose
/// completion may be left out, or that of a `completion`. Guarded by the progress lock of the runtime; nothing here
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

/// The completion of a write says one of these.
enum class write_completion : std::uint8_t {
  local,   ///< the origin's buffer may be reused
  acked,   ///< the target's adapter has it
  placed,  ///< it is in the target's memory, visible to its processor
};

/// Transfers of a fabric are expected to take so long: for choosing among protocols, never a promise.
struct transfer_costs {
  std::int64_t write_ns = 2'000;    ///< a write or read of few bytes, from its posting until a flush of it is over
  std::int64_t piece_ns = 200;      ///< for each further one that is posted with it
  double byte_ns = 0.1;             ///< on the way, for each byte
  std::int64_t message_ns = 4'000;  ///< a message to the target's handler, until it is acknowledged
  double message_byte_ns = 0.3;     ///< for each byte in messages, copies at both ends included
  std::int64_t list_entry_ns = 20;  ///< for each further entry of a gather or scatter list
};

/// Of which transfers the last byte appears in memory when all others are there, so that who looks at it needs no other
/// word; and a poll then finds the messages that were sent before it was posted.
enum class polled_end : std::uint8_t { none, write, read, both };

struct capabilities {
  std::string_view name;
  std::size_t gather_max = 1;
  std::size_t scatter_max = 1;
  std::size_t bulk_pieces_max = 0;    ///< in the list of a bulk send or receive; 0: there is no bulk channel
  std::size_t inline_bytes_max = 0;   ///< of a write that has been read from the origin's memory when the call returns
  std::size_t remote_slices_max = 1;  ///< pieces at the peer of one write or read, paired with as many here; a fabric
                                      ///< may refuse several (`not_supported`) where it takes each by itself
  std::size_t transfer_bytes_max = ~std::size_t{0};  ///< of one write or read
  std::size_t message_bytes_max = 0;
  write_completion write_means = write_completion::local;
  bool in_order_placement = false;
  polled_end polls = polled_end::none;  ///< of transfers of one piece
  /// A message is handled when the writes posted before it are in memory, and no write is there before a message that
  /// was sent before it has come.
  bool messages_after_writes = false;
  bool write_with_immediate = false;
  bool atomics = false;                    ///< fetch_add and compare_swap of 64 bits, atomic to each other
  bool words = false;                      ///< silent writes
  bool one_sided = false;                  ///< write and read need nothing of the target's processor
  std::string_view not_one_sided_because;  ///< where the machine keeps a fabric from it: why, and what would help
  /// Where they do need it: up to so many bytes are cheaper in messages to its handler, in one piece and in several. A
  /// put in pieces that fits one message is so at least.
  std::size_t handler_bytes_max = ~std::size_t{0};
  std::size_t handler_pieces_bytes_max = ~std::size_t{0};
  transfer_costs costs{};
  bool copies_by_cpu = false;  ///< write and read are copies by this processor, over when they return
  bool maps_memory = false;    ///< memory of library windows can be mapped
  bool pins_memory = false;    ///< a region takes its memory when it is registered, so that it must not be sparse
};

/// A peer needs a key in order to reach a region of ours.
struct region_key {
  std::uint64_t address = 0;  ///< in the owner's process
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;  ///< fabric's own
};

struct local_slice {
  void* at = nullptr;
  std::size_t bytes = 0;
};

struct remote_slice {
  std::uint64_t address = 0;  ///< in the owner's process
  std::size_t bytes = 0;
};

/// A posted operation continues with its completion when it is over: a base of the record that its caller keeps until
/// then.
struct completion {
  /// Runs under the progress lock, once, from `poll`; may post and send, must not wait. `bytes`: see sink.
  void (*run)(completion& self, status result, std::uint64_t bytes) noexcept = nullptr;
};

inline std::uint64_t token_of(completion& c) noexcept { return reinterpret_cast<std::uint64_t>(&c); }
/// `token` is not 0.
inline completion& completion_of(std::uint64_t token) noexcept { return *reinterpret_cast<completion*>(token); }

/// Receives what `poll` finds. Runs under the progress lock; may post and send, must not call `poll`.
class sink {
 public:
  /// `bytes`: of a bulk receive that is done, the length of the message that it got; else 0.
  virtual void on_completion(std::uint64_t token, status result, std::uint64_t bytes) noexcept = 0;
  virtual void on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept = 0;
  virtual void on_immediate(int source, std::uint32_t immediate) noexcept = 0;
  /// Nothing goes to the peer any more, though nobody has said that it is dead.
  virtual void on_broken(int /*peer*/) noexcept {}

 protected:
  ~sink() = default;
};

/// Whether a peer will handle the next message to it before it leaves the library.
enum class delivery_guarantee : std::uint8_t {
  certain,  ///< it waits for the message, which must follow at once
  no_room,  ///< it would, but there is no room for the message now
  asleep,   ///< it is in the library but sleeps
  none,
};

/// A directory holds what ranks have published when they joined the job.
class directory {
 public:
  /// Finds what `peer` has published by this key. Waits for the launcher's answer; `peer_failed` if nobody can give it.
  virtual status look_up(int peer, std::string_view key, std::string& value) noexcept = 0;

 protected:
  ~directory() = default;
};

/// Message kinds below this are the fabric's own.
inline constexpr std::uint16_t first_kind = 16;

/// A write does this besides moving its bytes.
enum class write_kind : std::uint32_t {
  plain,
  immediate,  ///< the peer's sink gets a number when the bytes are in place (`capabilities::write_with_immediate`)
  /// One aligned word (`capabilities::words`). It is read from the origin before the call returns, which is `done`: no
  /// completion comes, and the word may be lost if the connection breaks. It is in place before what is sent later.
  silent,
};

struct write_flags {
  write_kind kind = write_kind::plain;
  std::uint32_t immediate = 0;
};

constexpr write_flags with_immediate(std::uint32_t value) noexcept { return {write_kind::immediate, value}; }
inline constexpr write_flags silent_write{write_kind::silent, 0};

/// When an atomic goes to the adapter. After `more_follow` another atomic to the same peer is posted next: the fabric
/// may keep this one and give them to the adapter together, by one doorbell and with one completion for all. They keep
/// their order. What is kept goes with the next `now`, or when the fabric is polled.
enum class posting : std::uint8_t { now, more_follow };

/// Whether there is something to do for a fabric, and for whom there will be nothing more.
class liveness {
 public:
  /// True if `poll` would find something: asked before sleeping.
  [[nodiscard]] virtual bool pending() noexcept = 0;
  /// True when nothing that this rank has posted or sent is on its way: asked before it leaves the job.
  [[nodiscard]] virtual bool quiet() noexcept = 0;
  /// The peer is dead: what is under way towards it ends with `peer_failed`, and nothing from it arrives any more.
  virtual void forget(int peer) noexcept = 0;
  /// True while what the peer said before it left the job may still be on its way, for fabrics whose ranks say goodbye
  /// to each other. Asked when a wait would end because it has left.
  [[nodiscard]] virtual bool expects_goodbye(int /*peer*/) noexcept { return false; }
  /// Becomes readable when there is news after `pending` said that there is none; -1 if who brings it rings the
  /// doorbell. Always the same descriptor.
  [[nodiscard]] virtual int event_fd() const noexcept { return -1; }

 protected:
  ~liveness() = default;
};

/// Messages whose receiver is bound to handle them: for fabrics that see whether a peer is inside the library.
class reservations {
 public:
  /// Promises `peer` one message of at most `bytes`, if it is `certain` to handle it before it leaves the library. Then
  /// the caller sends it at once, waiting for nothing in between. Else nothing happened.
  [[nodiscard]] virtual delivery_guarantee reserve_delivery(int peer, std::size_t bytes) noexcept = 0;
  /// True while this rank has been promised a message that it has not handled. Asked before it leaves or sleeps.
  [[nodiscard]] virtual bool owes_delivery() noexcept = 0;
  /// The memory by which messages go to and from a peer of the node, for who looks there himself; null: there is none.
  virtual shm::line_pair* lines_with(int /*peer*/) noexcept { return nullptr; }

 protected:
  ~reservations() = default;
};

/// People and choices of protocols ask this about a fabric; not on a data path.
class facts {
 public:
  [[nodiscard]] virtual bool reaches(int peer) const noexcept = 0;
  /// The part of this fabric that leads to the peer, in words for people; empty if there is nothing to say, or no way.
  /// It may connect, and allocates.
  virtual std::string route(int /*peer*/) { return {}; }
  /// Counts of the fabric's own, for Runtime::counters: calls `add` with each one's name and value.
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

  /// With an immediate or silent it has one piece at the peer. `not_supported` with an immediate: not from this memory.
  virtual status write(int peer, std::span<const local_slice> from, const region_key& region,
                       std::span<const remote_slice> to, std::uint64_t token, write_flags how = {}) noexcept = 0;
  virtual status read(int peer, std::span<const local_slice> to, const region_key& region,
                      std::span<const remote_slice> from, std::uint64_t token) noexcept = 0;
  virtual status fetch_add(int peer, const region_key& region, std::uint64_t address, std::uint64_t operand,
                           std::uint64_t& old, std::uint64_t token, posting when = posting::now) noexcept = 0;
  virtual status compare_swap(int peer, const region_key& region, std::uint64_t address, std::uint64_t expected,
                              std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                              posting when = posting::now) noexcept = 0;

  /// A control message: header and payload are copied. `retry_queue_full` if there is no room now.
  virtual status send(int peer, std::uint16_t kind, std::span<const std::byte> header,
                      std::span<const std::byte> payload) noexcept = 0;
  /// The bulk channel: data go straight from the gather list into the receive posted by the peer, in order. What has no
  /// receive yet waits for it. `message_too_long` at both ends if the receive is shorter. `not_supported`: none of it,
  /// or not with this memory; `retry_queue_full`: too many of this peer's are under way; `bad_argument`: a longer list
  /// than `bulk_pieces_max`, or more bytes than `transfer_bytes_max`. A send of no pieces is never `not_supported`.
  virtual status send_bulk(int peer, std::span<const local_slice> from, std::uint64_t token) noexcept = 0;
  virtual status post_bulk_receive(int peer, std::span<const local_slice> to, std::uint64_t token) noexcept = 0;

  /// Hands at most `limit` events to `to`; returns how many.
  virtual unsigned poll(sink& to, unsigned limit) noexcept = 0;

  // These belong to every fabric, or to some, besides its operations.
  [[nodiscard]] liveness& as_liveness() const noexcept { return *liveness_; }
  [[nodiscard]] facts& as_facts() const noexcept { return *facts_; }
  /// Null if no receiver is ever bound.
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
