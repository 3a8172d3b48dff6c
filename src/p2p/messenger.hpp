// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tagged messages between two ranks: the public calls and the schedules of collectives post their sends and receives
/// here.
///
/// Nothing here waits or, in steady state, allocates. Callers hold the progress lock and own the operation records:
///
///   struct round : receive_operation { schedule* of; };
///   r.context = message_context(team.id, message_user::collectives);
///   r.peer = team.world_rank(left), r.tag = turn, r.at = buffer, r.bytes = size;
///   r.over = [](message_operation& self) noexcept { static_cast<round&>(self).of->go_on(); };
///     if (messages.receive(r) != status::posted) go_on();    // complete at once, or its source is dead: see r.result
///
/// Messages from one rank to another with the same context are matched in the order in which their sends were started,
/// each by the first receive that matches. A message may be shorter than the receive. Nothing of a longer one
/// is written: the receive ends with `message_too_long`, and the send as if it had been received. Pending operations
/// with a rank that dies or leaves the job end with `peer_failed`; receives of any source do not, since another rank
/// may still send.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel/context.hpp"
#include "channel/message_pool.hpp"
#include "core/trace.hpp"
#include "datatype/copy_experience.hpp"
#include "p2p/match_table.hpp"
#include "p2p/operation.hpp"
#include "p2p/operation_ids.hpp"
#include "p2p/pieces.hpp"
#include "p2p/posted.hpp"
#include "p2p/transfer.hpp"
#include "p2p/unexpected.hpp"
#include "p2p/wire.hpp"

namespace rma::detail {

class messenger {
 public:
  explicit messenger(context& ctx);
  messenger(const messenger&) = delete;
  messenger& operator=(const messenger&) = delete;
  ~messenger();

  [[nodiscard]] context& ctx() noexcept { return ctx_; }
  /// Adds an event to the trace whenever an operation completes.
  void trace_to(trace_file* file) noexcept {
    trace_ = file;
    quick_ = quick_ && file == nullptr;
  }
  /// Called before and after each step of a protocol, and between what a step sends and posts, under the progress
  /// lock: tests end a rank there.
  struct step_watcher {
    void (*run)(void* self) noexcept = nullptr;
    void* self = nullptr;
  };
  void watch_steps(const step_watcher& by) noexcept { step_watcher_ = by; }
  /// A readable description of the protocols that messages use on a fabric.
  [[nodiscard]] std::string describe(const fabric::capabilities& caps) const;

  // ---- the caller holds the progress lock -------------------------------------------------------------------------
  /// Starts a send. Returns `posted` if it completes later: `op.over` is called then. Otherwise it is complete with the
  /// returned result, and `op.over` is not called.
  status send(send_operation& op) noexcept;
  /// Starts a receive; the result is as for `send`.
  status receive(receive_operation& op) noexcept;
  enum class cancel_result : std::uint8_t { canceled, asked, too_late };
  /// Cancels a receive that no message has matched yet, or a send whose envelope has not been sent.
  /// `canceled`: it is complete, and `op.over` is not called. `asked`: the source of the receive may already be writing
  /// to its buffer, and was asked; the receive ends when the source has answered, as usual if a message has matched it,
  /// else with the result `done` and without a source. `too_late`: it continues.
  cancel_result cancel(message_operation& op) noexcept;
  /// Ends an operation that is not needed any more, since its team is revoked or a member of the team is dead. Returns
  /// true if it is complete with this result: its buffer is not accessed any more, and `op.over` is not called. Returns
  /// false if a pending transfer cannot be canceled; the operation ends soon, and `op.over` is called then. The other
  /// side's operation ends with `transfer_failed` if it has begun.
  bool withdraw(message_operation& op, status result) noexcept;

  /// True if the data would be sent with the envelope.
  [[nodiscard]] bool is_eager(const send_operation& op) { return is_eager(peer_of(op.peer), op); }
  /// The first message that a receive of this key would get, or null; it stays in the queue.
  [[nodiscard]] unexpected_message* peek(const match_key& key) noexcept {
    unexpected_message* const found = unexpected_.find(key);
    if (found == nullptr && crowded_ != 0) [[unlikely]]
      lend_to(key.source);
    return found;
  }
  /// Removes the message from the queue for one receive; a held message must be received or discarded.
  void hold(unexpected_message& m) noexcept { unexpected_.remove(m); }
  /// Starts a receive of a held message; the result is as for `receive`.
  status receive_held(receive_operation& op, unexpected_message& m) noexcept;
  void discard(unexpected_message& m) noexcept;
  /// Calls `visit(key, bytes)` for each unexpected message, in the order of their arrival.
  template <class Visit>
  void for_each_unexpected(Visit&& visit) {
    unexpected_.for_each([&](unexpected_message& m) { visit(std::as_const(m.key), m.bytes); });
  }
  /// Hints that many messages will arrive from this rank: RMA_RING_SET=hint.
  void expect_many(int from) noexcept { peer_of_many(from); }
  /// The bytes of unexpected messages, and the upper bound on those of all other ranks together, except while a receive
  /// waits for a message behind more than that.
  [[nodiscard]] std::size_t unexpected_bytes() const noexcept { return unexpected_.reserved_bytes(); }
  [[nodiscard]] std::size_t unexpected_bytes_max() const noexcept {
    return static_cast<std::size_t>(ctx_.size()) * units_max_ * unexpected_messages::unit_bytes;
  }

  /// The longest message that is sent eagerly over such a fabric, if it fits one of its messages.
  [[nodiscard]] static std::size_t eager_bytes(const settings& config, const fabric::capabilities& caps) noexcept;
  /// Number of other ranks from which messages have arrived.
  [[nodiscard]] std::size_t sources() const noexcept;
  /// Bytes of the rings that this rank reads, and of the copies of those that it writes.
  [[nodiscard]] std::size_t ring_bytes() const noexcept;

  // ---- the caller does not hold it --------------------------------------------------------------------------------
  /// True if short messages between ranks of a node are sent without an operation, see p2p/quick.hpp.
  [[nodiscard]] bool is_quick() const noexcept { return quick_; }
  /// True if the last message was long that a receive with room for a long one got.
  [[nodiscard]] bool last_was_long() const noexcept { return last_was_long_.load(std::memory_order_relaxed); }
  void note_length(bool is_long) noexcept {
    if (is_long != last_was_long()) last_was_long_.store(is_long, std::memory_order_relaxed);
  }
  /// Returns null if messages with this rank are not sent that way.
  [[nodiscard]] shm::line_pair* lines_with(int rank) noexcept;
  /// Returns true if the message has been sent; otherwise nothing has happened.
  [[nodiscard]] bool send_quickly(shm::line_pair& to, std::uint64_t context, int tag, const void* at,
                                  std::size_t bytes) noexcept;
  enum class quick_result : std::uint8_t { done, done_and_tell, not_yet, no };
  /// `done`: the message was received, and `tag` and `bytes` are set. `not_yet`: none has arrived. `no`: this receive
  /// needs an operation.
  [[nodiscard]] quick_result receive_quickly(shm::line_pair& from, std::uint64_t context, int& tag, void* at,
                                             std::size_t& bytes) noexcept;
  /// The same for 8 bytes where nothing is in the way, so that they need no call. `no` also where they would: nothing
  /// has happened. After `done_and_tell`, `tell_sent` or `tell_received` must follow.
  [[nodiscard]] quick_result send_word(shm::line_pair& to, std::uint64_t context, int tag, const void* at) noexcept;
  [[nodiscard]] quick_result receive_word(shm::line_pair& from, std::uint64_t context, int& tag, void* at) noexcept;
  void tell_sent(const shm::line_pair& to) noexcept;
  void tell_received(const shm::line_pair& from) noexcept;
  /// Called when no rank receives on this team any more: drops its unexpected messages, and completes their sends.
  void forget_team(std::uint64_t team_id) noexcept;
  /// Called when the program receives no more, on any team: completes the sends to this rank that no receive has
  /// matched. So ranks that end do not wait for each other's receives, nor a rank for its own.
  void end_program() noexcept;
  /// Blocks until the operation is complete; returns its result. `failed` is as wait_spec::fails_if: when it reports
  /// that the operation cannot complete any more, the operation is withdrawn.
  template <class Failed>
  status wait(message_operation& op, Failed&& failed) noexcept {
    const auto over = [&op]() noexcept { return op.ended.load(std::memory_order_acquire) != 0; };
    if (over() || spin_near(op)) return op.result;
    const status s = ctx_.wait({.until = over, .fails_if = failed});
    if (s == status::done) return op.result;
    {
      const std::lock_guard guard(ctx_.lock());
      if (over() || withdraw(op, s)) return op.result;
    }
    (void)ctx_.wait({.until = over});
    return op.result;
  }

 private:
  struct peer;
  peer& peer_of(int rank);
  peer& find_peer(int rank);

  // Short messages within the node.
  void fill_line(shm::line_pair& l, std::byte* room, std::uint64_t context, int tag, const void* at,
                 std::size_t bytes) noexcept;
  bool release_line(shm::line_pair& from, std::uint32_t freed) noexcept;
  bool put_line(shm::line_pair& l, std::uint64_t context, int tag, const void* at, std::size_t bytes) noexcept;
  void find_lines(peer& p) noexcept;
  void ring(const peer& p) noexcept;
  void took(peer& p) noexcept;
  bool spin_near(message_operation& op) noexcept;
  void take_near(shm::line_pair& l) noexcept;

  // Sends.
  [[nodiscard]] bool is_eager(const peer& p, const send_operation& op) const noexcept;
  status depart(peer& p, send_operation& op) noexcept;
  status try_eager(peer& p, send_operation& op) noexcept;
  status try_announce(peer& p, send_operation& op) noexcept;
  void queue(peer& p, send_operation& op) noexcept;
  void send_queued(peer& p) noexcept;
  void stream(peer& p) noexcept;
  [[nodiscard]] std::span<const std::byte> data_of(const message_operation& op, std::size_t from,
                                                   std::size_t bytes) noexcept;

  // Rendezvous.
  void choose(const peer& p, send_operation& op) noexcept;
  void note_replaced(int with) noexcept;
  [[nodiscard]] bool is_mapped(const message_operation& op) const noexcept;
  [[nodiscard]] static std::string_view describe_choice(const fabric::capabilities& caps) noexcept;
  [[nodiscard]] rendezvous_kind possible(rendezvous_kind wanted, const fabric::capabilities& caps,
                                         std::size_t bytes = 0) const noexcept;
  bool expose(message_operation& op) noexcept;
  void conceal(message_operation& op) noexcept;
  void report_step() const noexcept {
    if (step_watcher_.run != nullptr) [[unlikely]]
      step_watcher_.run(step_watcher_.self);
  }
  void sender_event(send_operation& op, rendezvous_event event) noexcept;
  void receiver_event(receive_operation& op, rendezvous_event event) noexcept;
  void carry_out(message_operation& op, std::uint32_t actions) noexcept;
  void finish_rendezvous(message_operation& op) noexcept;
  void fall_back(message_operation& op, bool is_send) noexcept;
  void move_data(message_operation& op, bool write) noexcept;
  static void on_piece_over(fabric::completion& self, status result, std::uint64_t bytes) noexcept;
  void end_transfer(transfer& t) noexcept;
  void wait_in_line(transfer& t) noexcept;
  void leave_line(transfer& t) noexcept;
  unsigned move_on() noexcept;
  void begin_stream(send_operation& op) noexcept;
  void request_data(receive_operation& op, bool polls) noexcept;
  [[nodiscard]] static std::byte* last_byte(const message_operation& op) noexcept;
  void prepare_last_byte(receive_operation& op) noexcept;
  static void restore_last_byte(receive_operation& op, status result) noexcept;
  [[nodiscard]] bool is_end_seen(const message_operation& op) const noexcept;
  void begin_polling(receive_operation& op) noexcept;
  void stop_polling(message_operation& op) noexcept;
  unsigned poll_ends() noexcept;
  static void before_sleep(void* self) noexcept;

  // Data in pieces, over the bulk channel.
  [[nodiscard]] std::size_t part_bytes(const message_operation& op, std::size_t limit) const noexcept;
  [[nodiscard]] bool are_lists_cheaper(const message_operation& op, std::size_t part) const noexcept;
  piece_transfer& new_pieces(int rank, bool sends);
  void begin_pieces(message_operation& op, bool sends) noexcept;
  void abandon_pieces(message_operation& op) noexcept;
  void stop_posting(piece_transfer& t) noexcept;
  void end_pieces_if_over(piece_transfer& t) noexcept;
  void take_grant(int source, send_operation* op, const transfer_request& r) noexcept;
  static bulk_turn::progress post_receives(bulk_turn& self);
  static bulk_turn::progress post_lists(bulk_turn& self);
  static void on_lists_posted(bulk_turn& self);
  static void on_list_over(fabric::completion& self, status result, std::uint64_t bytes) noexcept;

  // Requests of receives whose messages have not been announced.
  struct early_entry;
  void consider_asking(receive_operation* op) noexcept;
  void take_back_request(receive_operation& op) noexcept;
  void give_back_request(const message_operation& op) noexcept;
  void recall_request(receive_operation& op) noexcept;
  bool use_request(peer& p, send_operation& op) noexcept;
  void write_as_asked(send_operation& op, const transfer_request& where, bool wants_word) noexcept;
  [[nodiscard]] early_entry* find_request(int source, const envelope& of, std::uint64_t receive) noexcept;
  void drop_requests(int source) noexcept;
  void forget_use(const match_key& key) noexcept;
  bool tell_use(peer& p, const send_operation& op) noexcept;
  void on_used(receive_operation& op) noexcept;
  void end_early(receive_operation& op, std::uint64_t bytes) noexcept;
  static void on_early_request(void* self, int source, std::span<const std::byte> payload) noexcept;

  // Rings.
  struct ring_write;
  struct ring_out_state;
  void open_ring_to(peer& p, const credit_message& m) noexcept;
  void close_ring_to(peer& p) noexcept;
  bool try_ring(peer& p, const envelope& e, const send_operation& op) noexcept;
  bool post_slot(ring_out_state& out, std::uint32_t slot) noexcept;
  static void on_ring_write(fabric::completion& self, status result, std::uint64_t bytes) noexcept;
  void post_rings() noexcept;
  enum class ring_policy : std::uint8_t { first, traffic, hint };
  enum class ring_order : std::uint8_t { circular, sequential, priority };
  void peer_of_many(int from) noexcept;
  void consider_ring(peer& p) noexcept;
  bool make_place(const peer& p) noexcept;
  void withdraw_ring(peer& p) noexcept;
  void age_rings() noexcept;
  unsigned poll_ring(peer& p) noexcept;
  unsigned poll_rings() noexcept;
  void tell_ring_credits(peer& p) noexcept;
  bool delay(peer& p, message kind, std::uint16_t sequence, std::span<const std::byte> payload) noexcept;
  void take_delayed(peer& p) noexcept;
  void take_next(peer& p) noexcept;
  void drain_ring(peer& p) noexcept;
  static void on_ring_immediate(void* self, int source, std::uint32_t value) noexcept;
  [[nodiscard]] bool is_read_from_map(const message_operation& op, const fabric::capabilities& caps) const noexcept;
  void choose_copy(receive_operation& op) noexcept;
  void note_copy(const message_operation& op) noexcept;
  void choose_ring(peer& p, const fabric::capabilities& caps) const noexcept;
  void close_rings_before_sleep(std::int64_t now_ns) noexcept;
  /// Sets the time when a sleeping rank tests its memory again; the duties that follow report it to the context.
  void look_again(std::int64_t at_ns) noexcept {
    look_again_ns_ = look_again_ns_ == 0 ? at_ns : std::min(look_again_ns_, at_ns);
  }

  // Receives.
  void take_eager(peer& p, std::span<const std::byte> payload) noexcept;
  void take_announcement(peer& p, std::span<const std::byte> payload) noexcept;
  void post(receive_operation& op) noexcept;
  void unpost(receive_operation& op) noexcept;
  status accept_data(receive_operation& op, const match_key& from, std::span<const std::byte> data) noexcept;
  status accept_announced(receive_operation& op, const match_key& from, const announced_message& m) noexcept;
  void give_back(peer& p, std::uint32_t units) noexcept;
  void give_back_held(peer& p, std::uint32_t units) noexcept;
  void hold_units(peer& p, std::uint32_t units) noexcept;
  void note_room(peer& p) noexcept;
  void lend_to(int source) noexcept;
  void lend(peer& p) noexcept;
  [[nodiscard]] bool awaits(int source) noexcept;
  void tell(int to, std::uint64_t id, std::uint64_t from, rendezvous_step step, std::uint64_t bytes = 0) noexcept;

  void finish(message_operation& op, status result) noexcept;
  /// Runs `begin` for an operation that is being started. Returns its result if it has completed by then; its `over` is
  /// not called in that case.
  template <class Begin>
  status started(message_operation& op, Begin&& begin) noexcept {
    message_operation* const outer = std::exchange(starting_, &op);
    begin();
    const bool over = std::exchange(starting_, outer) == nullptr;
    return over ? started_result_ : status::posted;
  }
  status end_now(message_operation& op, status result) noexcept;
  void trace_operation(const message_operation& op) noexcept;
  void trace_message(const peer& p, std::uint64_t number, bool leaves) noexcept;
  void dequeue(peer& p) noexcept;
  void arrive(peer& p) noexcept;
  void detach(message_operation& op) noexcept;
  void busy(peer& p) noexcept;
  void fail_all_of(peer& p) noexcept;
  unsigned look_at_peers() noexcept;  ///< returns the number of ranks found gone for good, with all operations ended
  /// True if nothing more can arrive from a rank that has left.
  bool has_said_all(peer& p) noexcept;
  void await_last_words() noexcept;

  static void on_eager(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_announce(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_rendezvous(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_stream(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_credit(void* self, int source, std::span<const std::byte> payload) noexcept;
  static unsigned on_duty(void* self) noexcept;
  static void on_news(void* self) noexcept;
  static void on_request(void* self, int source, std::span<const std::byte> payload) noexcept;
  void on_finished(message_operation& op, std::uint64_t bytes) noexcept;
  void on_gone(message_operation& op) noexcept;
  void on_unknown(int source, const rendezvous_message& m) noexcept;
  void keep(unexpected_message& m, peer& p) noexcept;

  context& ctx_;
  std::uint32_t units_max_;        ///< limit on the memory of one peer's unexpected messages
  std::uint32_t eager_units_max_;  ///< limit of these, without the part reserved for announcements
  std::uint32_t credit_units_;     ///< a credit message is sent for that many freed units
  std::unordered_map<int, std::unique_ptr<peer>> peers_;
  int last_rank_ = -1;
  peer* last_peer_ = nullptr;
  std::vector<peer*> busy_;  ///< peers with queued or streaming operations
  posted_receives posted_;
  std::uint32_t crowded_ = 0;  ///< ranks that have used up their share of this one's memory
  bool program_ended_ = false;
  std::atomic<bool> last_was_long_ = false;
  bool quick_ = true;  ///< short messages within the node are sent without an operation
  unexpected_messages unexpected_;
  match_table announced_;  ///< sends that have been announced to their receivers, by destination and tag
  match_table used_;       ///< early requests that were used, which their receivers may not have noticed
  match_table requests_;   ///< early requests of other ranks' receives, which no send has used
  transfer_pool transfers_;
  piece_pool pieces_;
  transfer::line line_;                     ///< transfers that have more to post
  std::vector<receive_operation*> polled_;  ///< receives whose last byte is polled
  std::vector<std::unique_ptr<early_entry>> request_memory_;
  early_entry* free_requests_ = nullptr;
  std::vector<peer*> rings_in_;  ///< the polling set
  std::size_t ring_turn_ = 0;
  using copy_experiences = std::array<copy_experience, copy_classes>;
  std::unique_ptr<copy_experiences> copies_{};  ///< costs of copies of private memory in the node; null: none yet
  std::uint64_t signalled_rings_ = 0;           ///< open rings that are not polled, since their writes have immediates
  std::uint64_t ring_peers_max_ = 0;
  std::uint32_t ring_slots_ = 0;
  ring_policy ring_policy_ = ring_policy::first;
  ring_order ring_order_ = ring_order::circular;
  std::uint32_t ring_age_ = 0;  ///< ring messages since the traffic counters were last halved
  bool unposted_rings_ = false;
  std::int64_t look_again_ns_ = 0;
  bool is_awaiting_ = false;  ///< the last messages of ranks that have left may still arrive
  message_pool delayed_;      ///< messages that arrived out of order
  std::uint64_t random_ = 0;
  message_operation* starting_ = nullptr;
  status started_result_ = status::done;
  trace_file* trace_ = nullptr;
  bool assume_ends_ = false;
  bool replaced_noted_ = false;                     ///< `note_replaced` has printed its line
  bool automatic_ = true;                           ///< the rendezvous protocol is chosen for each message
  bool may_ask_ = false;                            ///< receives may request their messages before these are announced
  rendezvous_kind kind_ = rendezvous_kind::getcqe;  ///< the protocol set by the user
  step_watcher step_watcher_;
  operation_ids ids_;
  std::vector<std::byte> scratch_;
};

}  // namespace rma::detail
