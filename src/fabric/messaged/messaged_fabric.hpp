// SPDX-License-Identifier: Apache-2.0
/// \file
/// A fabric whose puts, gets and atomics are messages (wire.hpp), which the target handles when it is in the library.
/// A line below carries the messages: sockets (tcp), or UCX's endpoints.
///
/// - Messages made between two polls of the network are sent together, as one batch.
/// - The number of bytes that an origin requests is limited (asked_bytes_max), so that replies can always be sent and
///   two ranks never wait for each other with full connections.
/// - A connection that fails makes its peer a suspect: the peer may have died, ended the job or left. If the job does
///   not report that within `suspicion_ns`, the peer is presumed lost.
/// - A rank that leaves says goodbye, and serves the others until each has answered that it has no pending operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/death_notes.hpp"
#include "fabric/fabric.hpp"
#include "fabric/messaged/peer.hpp"
#include "fabric/messaged/wire.hpp"

namespace rma::messaged {

inline constexpr std::size_t message_bytes = 33 << 10;     ///< limit of a handler's message: 32 KiB and headers
inline constexpr std::size_t batch_bytes = 63 << 10;       ///< limit of a batch, which is sent as one packet
inline constexpr unsigned batch_messages = 64;             ///< limit of a batch
inline constexpr std::size_t asked_bytes_max = 4 << 20;    ///< limit of pending gets to one peer; several if they fit
inline constexpr std::uint32_t under_way_max = 1024;       ///< pending requests to one peer
inline constexpr std::int64_t suspicion_ns = 500'000'000;  ///< deaths are reported by then, and the job's end as well
inline constexpr std::size_t straight_slices_max = 40;     ///< limit of a transfer that is not copied into a batch
inline constexpr std::uint32_t unflushed_max = 512;        ///< writes that one flush ends

class messaged_fabric : public fabric::network, public fabric::liveness, public fabric::facts {
 public:
  using slices = std::span<const fabric::local_slice>;

  [[nodiscard]] const fabric::capabilities& caps() const noexcept override { return caps_; }
  [[nodiscard]] bool reaches(int rank) const noexcept override { return rank >= 0 && rank < size_; }
  /// Asks `job` how peers are reached; before anything is posted.
  void use(fabric::directory& job) noexcept { directory_ = &job; }

  status register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept override;
  void deregister_region(const fabric::region_key& key) noexcept override;

  status write(int to_rank, slices from, const fabric::region_key& region, std::span<const fabric::remote_slice> to,
               std::uint64_t token, fabric::write_flags how = {}) noexcept override;
  status read(int from_rank, slices to, const fabric::region_key& region, std::span<const fabric::remote_slice> from,
              std::uint64_t token) noexcept override;
  status fetch_add(int rank, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                   std::uint64_t& old, std::uint64_t token,
                   fabric::posting when = fabric::posting::now) noexcept override;
  status compare_swap(int rank, const fabric::region_key& region, std::uint64_t address, std::uint64_t expected,
                      std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                      fabric::posting when = fabric::posting::now) noexcept override;
  status send(int rank, std::uint16_t kind, std::span<const std::byte> header,
              std::span<const std::byte> payload) noexcept override;
  unsigned poll(fabric::sink& to, unsigned limit) noexcept override;

  void forget(int rank) noexcept override { deaths_.add(rank); }
  bool pending() noexcept override;
  bool quiet() noexcept override;
  bool expects_goodbye(int rank) noexcept override;
  void counts(const std::function<void(std::string_view, std::uint64_t)>& add) const override;

 protected:
  messaged_fabric(int rank, int size) noexcept : network(*this, *this), rank_(rank), size_(size) {}
  ~messaged_fabric() override = default;

  // ---- the line ---------------------------------------------------------------------------------------------
  [[nodiscard]] virtual std::unique_ptr<peer> make_peer(int rank) = 0;
  /// Begins a connection, which may be established later: messages wait for it.
  virtual status connect(peer& p) noexcept = 0;
  /// True if a reply can still be sent to the peer.
  [[nodiscard]] virtual bool can_answer(peer& p) noexcept = 0;
  /// True if there is room for one more operation or message of the caller.
  [[nodiscard]] virtual bool has_room(peer& p) noexcept = 0;
  /// The place for that many bytes of a message with its front, in a batch; there is always room.
  [[nodiscard]] virtual std::byte* room_for(peer& p, std::uint16_t kind, std::size_t bytes) noexcept = 0;
  virtual void send_batch(peer& p) noexcept = 0;
  /// A message with more than `straight_bytes_` of data, which the line takes from where they are.
  virtual void transmit_straight(peer& p, std::uint16_t kind, std::span<const std::byte> head, slices data,
                                 std::size_t bytes) noexcept = 0;
  /// Receives arrived messages and sends pending ones; returns the number of events.
  virtual unsigned look() noexcept = 0;
  /// False if there is no event and the descriptor will report the next one: then the caller may sleep.
  [[nodiscard]] virtual bool progress() noexcept = 0;
  /// Handles a message internal to the line.
  virtual void take_line_message(peer& p, std::uint16_t kind, std::span<const std::byte> payload) noexcept = 0;
  /// Called for a malformed message: the peer is no rank of the job, or its memory is damaged.
  virtual void distrust(peer& p) noexcept = 0;
  /// Ends the connection and its pending operations.
  virtual void drop(peer& p) noexcept = 0;
  /// True if the network has taken all sent messages.
  [[nodiscard]] virtual bool all_sent() noexcept = 0;
  /// Ends the writes before it when they are placed.
  virtual void start_flush(peer& p) noexcept;

  // ---- peers (messaged_fabric.cpp) --------------------------------------------------------------------------
  peer& known(int rank) noexcept;
  status reach(int rank, peer*& p) noexcept {
    if (last_peer_ == nullptr || last_peer_->rank != rank) [[unlikely]]
      last_peer_ = &known(rank);
    p = last_peer_;
    if (p->state != connection_state::open) [[unlikely]]
      return status::peer_failed;
    if (p->suspected_until_ns != 0) [[unlikely]]
      return status::retry_queue_full;
    return p->begun ? status::done : connect(*p);
  }
  void suspect(peer& p, std::int64_t for_ns = suspicion_ns) noexcept;
  void clear_suspicion(peer& p) noexcept;
  void abandon(peer& p) noexcept;
  void say_goodbye(std::int64_t until_ns) noexcept;
  void progress_until(std::int64_t until_ns, const std::function<bool()>& over) noexcept;

  // ---- what is posted (messaged_datapath.cpp) ---------------------------------------------------------------
  /// The place for that many bytes after the front of a message. `end_message` must follow.
  std::byte* begin_message(peer& p, std::uint16_t kind, std::size_t bytes) noexcept;
  void end_message(peer& p, departure when) noexcept;
  void transmit(peer& p, std::uint16_t kind, std::span<const std::byte> head, std::span<const std::byte> rest,
                departure when) noexcept;
  void transmit(peer& p, own_kind kind, std::span<const std::byte> head, departure when) noexcept {
    transmit(p, static_cast<std::uint16_t>(kind), head, {}, when);
  }
  /// Adds the peer to the list of those with a batch.
  void list_batch(peer& p) noexcept {
    if (!std::exchange(p.in_batches, true)) batches_.push_back(&p);
  }
  void send_batches() noexcept;
  /// A message with data from the caller's memory.
  void transmit_data(peer& p, std::uint16_t kind, std::span<const std::byte> head, slices data,
                     departure when) noexcept;
  void list_unflushed(peer& p) noexcept;
  void start_flushes() noexcept;
  unanswered& new_question(own_kind answered_by, std::uint64_t token) noexcept;
  void send_request(peer& p, unanswered& o) noexcept;
  void end_first(peer& p, status result) noexcept;
  void end(std::uint64_t token, status result, std::uint64_t bytes = 0) noexcept {
    if (token != 0) ended_.push_back({token, result, bytes});
  }

  // ---- what comes (messaged_receive.cpp) --------------------------------------------------------------------
  void take_own(peer& p, own_kind kind, std::span<const std::byte> payload) noexcept;
  /// Hands a message on, or keeps it for the next poll.
  void hand(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept;
  void hand_on(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept;
  [[nodiscard]] bool may_hand() const noexcept { return sink_ != nullptr && handed_ < handed_max_; }
  [[nodiscard]] bool has_told() const noexcept { return handed_ != 0 || !ended_.empty(); }
  [[nodiscard]] std::byte* own_memory(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) noexcept;

  const int rank_;
  const int size_;
  fabric::capabilities caps_;
  fabric::directory* directory_ = nullptr;
  std::unordered_map<int, std::unique_ptr<peer>> by_rank_;
  bool watches_peers_ = true;                     ///< pending operations to a peer that is gone end by themselves
  std::size_t straight_bytes_ = ~std::size_t{0};  ///< more is not copied into a batch
  std::uint32_t under_way_ = 0;                   ///< pending requests to all peers, and those that the line counts
  fabric::sink* sink_ = nullptr;
  std::uint64_t puts_ = 0, gets_ = 0, atomics_ = 0, messages_ = 0, batches_sent_ = 0;

 private:
  struct registered {
    std::uint64_t address, bytes;
  };
  struct ended {
    std::uint64_t token;
    status result;
    std::uint64_t bytes;
  };
  struct arrival {
    int source;
    std::uint16_t kind;
    std::vector<std::byte> bytes;
  };

  [[nodiscard]] bool is_resolved(const peer& p) const noexcept;
  void resolve_suspects(fabric::sink& to) noexcept;
  void take_deaths() noexcept;
  void answer_leavers() noexcept;
  status write_here(slices from, const fabric::region_key& region, std::uint64_t to, std::uint64_t token) noexcept;
  status read_here(slices to, const question& asked, std::uint64_t token) noexcept;
  status atomic(int rank, const question& asked, std::uint64_t& old, std::uint64_t token) noexcept;
  [[nodiscard]] static departure departure_of_question(const peer& p) noexcept;
  void hand_arrivals() noexcept;
  void take_put(peer& p, std::span<const std::byte> payload) noexcept;
  void take_question(peer& p, own_kind kind, std::span<const std::byte> payload) noexcept;
  void take_answer(peer& p, own_kind kind, std::span<const std::byte> payload) noexcept;

  std::unordered_map<std::uint64_t, registered> regions_;  ///< regions of this rank, by key
  std::uint64_t next_key_ = 1;
  peer* last_peer_ = nullptr;     ///< the one that was used last
  std::vector<peer*> unflushed_;  ///< with unflushed writes
  std::vector<peer*> batches_;    ///< with messages that have not left
  std::vector<peer*> suspects_;
  std::vector<peer*> leavers_;          ///< have said goodbye, and still serve this rank
  std::vector<ended> ended_, handing_;  ///< for the next poll
  std::deque<arrival> arrivals_;        ///< messages that came while none could be handed on, and this rank's to itself
  std::deque<std::unique_ptr<unanswered>> questions_;
  unanswered* free_question_ = nullptr;
  bool handing_on_ = false;
  unsigned handed_ = 0, handed_max_ = 0;
  fabric::death_notes deaths_;
};

}  // namespace rma::messaged
