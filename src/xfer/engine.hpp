// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operation engine: what an inlined call does not do itself. Knows every window of the runtime, the
/// operations under way, and the handlers that serve other ranks.
#pragma once

#include <atomic>
#include <boost/container/deque.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel/context.hpp"
#include "channel/immediate.hpp"
#include "core/assert.hpp"
#include "rma/detail/view.hpp"
#include "rma/layout.hpp"
#include "xfer/awaited.hpp"
#include "xfer/operation_record.hpp"
#include "xfer/sync_task.hpp"

namespace rma::detail {

class bulk_streams;
struct window_core;
struct checked_operation;
struct dropped_header;
class engine;

struct target_state;

/// A user's Request refers to an operation, or a synchronization.
/// Whether a thread is in a step of a synchronization; `awaited`: and another one wants it to be over.
enum class task_step : std::uint8_t { none, under_way, awaited };

struct request_node;
/// Needs no memory before the first one, unlike a std::deque; does not move them.
using request_nodes = boost::container::deque<request_node>;

struct request_node {
  engine* owner = nullptr;  ///< null if the node is free, or outlives its engine
  operation_record* operation = nullptr;
  std::unique_ptr<sync_task> task{};  ///< instead of it
  awaited* outside = nullptr;         ///< or this
  std::uint64_t window = 0;           ///< its id
  int rank = -1;                      ///< of the target, in the world
  status ended = status::not_yet;     ///< of the task; of any, when the engine is gone
  status reached = status::not_yet;   ///< what the task's steps ended with, which are to be concluded
  std::atomic<bool> silent = false;   ///< of the task, after its last step
  task_step step = task_step::none;   ///< of the task: lets other threads into the window while it waits
  request_node* next_free = nullptr;
  /// The memory that it lies in, once the engine is gone; `ended` says the rest.
  std::shared_ptr<request_nodes> kept{};
};
static_assert(sizeof(request_node) <= 72);

/// Whether this thread may: `wrong_thread` else.
status may_ask(const request_node& node) noexcept;
/// done, not_yet or peer_failed, without making progress; a synchronization goes one step.
status request_state(request_node& node) noexcept;

/// How puts and gets reach the user memory of another process.
enum class user_memory : std::uint8_t { automatic, handler, shared, staged, cma };

/// Of what windows are called in immediates: two bits are left for what the immediate says.
inline constexpr std::uint32_t window_slot_max = immediate_value_max >> 2;

class engine {
  friend class bulk_streams;

 public:
  explicit engine(context& ctx);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  /// Requests that outlive it keep their nodes.
  ~engine();

  [[nodiscard]] context& ctx() noexcept { return ctx_; }
  [[nodiscard]] user_memory forced() const noexcept { return forced_; }

  /// Transfers over the bulk channel.
  [[nodiscard]] bulk_streams& bulk() noexcept { return *bulk_; }
  void reject_malformed(int source, message kind, std::span<const std::byte> payload, malformed_reason why) noexcept;

  // ---- windows; the caller holds the progress lock ------------------------------------------------------------
  void add(window_core& w);
  void remove(window_core& w);
  /// The next window is called this in immediates to this rank.
  [[nodiscard]] std::uint32_t new_slot() noexcept;
  [[nodiscard]] window_core* find(std::uint64_t id) noexcept {
    if (last_found_ == nullptr || last_id_ != id) {
      const auto at = windows_.find(id);
      last_id_ = id;
      last_found_ = at == windows_.end() ? nullptr : at->second;
    }
    return last_found_;
  }

  /// By what it is called in immediates; null if there is none.
  [[nodiscard]] window_core* find_slot(std::uint32_t slot) noexcept {
    const auto found = slots_.find(slot);
    return found == slots_.end() ? nullptr : found->second;
  }

  // ---- operations under way; the caller holds the progress lock ------------------------------------------------
  /// Room for so much, until the next call.
  [[nodiscard]] std::span<std::byte> scratch(std::size_t bytes) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return {scratch_.data(), bytes};
  }
  request_node* new_request(const window_core& w, int rank, operation_record& op);
  /// `w` has counted it.
  request_node* new_request(const window_core& w, std::unique_ptr<sync_task> task);
  /// No round of progress goes on with it any more.
  void stop_advancing(const request_node& node) noexcept;
  /// A synchronization has ended so. The caller is alone in the window, and does not hold the progress lock.
  status end_task(request_node& node, window_core& w, status s) noexcept;
  request_node* new_request(awaited& what);
  /// Returns what is to be destroyed without the lock.
  [[nodiscard]] std::shared_ptr<void> free_request(request_node* node) noexcept;
  /// A fresh record with one piece, which stands for the posting. Set `detached` before the first piece is posted.
  operation_record& new_operation() {
    operation_record& op = free_operations_.empty() ? one_more_operation() : free_operations_.front();
    free_operations_.pop_front();
    restart(op);
    return op;
  }
  /// The record that was held, if there is one, which is the protocol's from now on; else a fresh one.
  operation_record& record_of(operation_record*& held) {
    if (held == nullptr) [[likely]]
      return new_operation();
    operation_record& op = *std::exchange(held, nullptr);
    restart(op);
    return op;
  }
  /// Gives a record back that is over, or of which nothing was posted.
  void free_operation(operation_record& op) noexcept;
  /// Puts it into its target's list, until it is over.
  void track(operation_record& op, target_state& state, bool write) noexcept;
  /// The same of one by messages, before its last one is sent.
  void track_message(operation_record& op, target_state& state) noexcept;
  /// A record for what the target's handler does, whose messages are about to be sent.
  operation_record& message_record_of(operation_record*& held, const context::peer& peer);
  /// Room for the layouts of the operation.
  operation_shapes& shapes_of(operation_record& op);
  /// The window's trace, if it has one, gets an event of the operation when it is over. `o` says what is chosen.
  void trace_operation(operation_record& op, const window_core& w, const checked_operation& o);
  /// Where the result of an operation by message goes. `shape` is null where it is contiguous.
  void expect_result(operation_record& op, void* into, std::uint64_t bytes, const Layout* shape);
  /// All its messages have been sent: it is over when the peer acknowledges the last. `state` may be null.
  void await_acknowledgement(operation_record& op, context::peer& peer, target_state* state) noexcept;
  /// The failure of an operation that is over has been reported to its own user: flushes need not do it again.
  void mark_failure_reported(const operation_record& op) noexcept;
  /// Operations towards a target of a window that goes away.
  void forget(target_state& state) noexcept;
  /// Synchronizations of a window that goes away, as far as they may be dropped.
  void give_up_tasks(window_core& w) noexcept;
  /// Results that are still to come from the target's handler are not written any more: their buffers may be gone.
  /// Those that a request waits for are, until it is dropped.
  void drop_results(target_state& state) noexcept;

  // ---- operations that wait for room in the network; the caller holds the progress lock -----------------------
  /// The last operation of the target's queue is one of them from now on.
  void add_waiting(target_state& state);
  /// Goes on with those of the target, as far as there is room now. Returns how many have left its queue.
  unsigned drain(target_state& state) noexcept;
  /// None of the target's will go any more: their users, or flushes, are told why.
  void end_waiting(target_state& state, status why) noexcept;
  /// The same for those that nobody has a request of, without a word.
  void cancel_waiting(target_state& state) noexcept;
  /// Returns when fewer wait than RMA_WAITING_OPERATIONS allows. The caller does not hold the progress lock.
  void keep_bounded() noexcept;

  /// The peer is gone: none of them will be acknowledged.
  void end_sent(context::peer& peer) noexcept;
  [[nodiscard]] std::size_t requests_made() const noexcept { return requests_->size(); }

  /// Decides what becomes of an operation when all of it is posted, with a result so far: waited for (`now`),
  /// somebody's request (if not null), or nobody's. `done`, `posted` or what it ended with.
  status finish_posting(std::unique_lock<small_lock>& guard, operation_record& op, const window_core& w, int world_rank,
                        bool now, request_node** request) noexcept;
  /// The same while the rest of it waits for room.
  status leave_operation(std::unique_lock<small_lock>& guard, operation_record& op, const window_core& w,
                         int world_rank, bool now, request_node** request) noexcept;
  /// A piece of the operation is over, or its posting, for which one piece stands.
  void end_piece(operation_record& op, status result) noexcept;
  /// Blocks until the operation is over; its result. Gives the lock up meanwhile.
  status wait_posted(std::unique_lock<small_lock>& guard, operation_record& op) noexcept;

 private:
  static void restart(operation_record& op) noexcept {
    RMA_ASSERT(op.state == nullptr && op.held == hold_reason::none);
    op.pieces = 1;
    op.result = status::done;
    op.detached = op.immediate = op.by_message = op.request_owns_result = false;
    op.over.store(0, std::memory_order_relaxed);
  }
  operation_record& one_more_operation();
  void end_note(operation_record& op) noexcept;
  operation_record* find_operation(std::uint64_t id) noexcept;
  operation_record& take_waiting(target_state& state) noexcept;
  void leave_waiting(target_state& state, std::uint64_t count) noexcept;
  unsigned drain_some() noexcept;
  void take_acknowledgements(context::peer& peer, std::uint64_t count) noexcept;
  void end_message_operation(context::peer& peer, operation_record& op) noexcept;
  request_node* take_request();
  static unsigned advance_tasks(void* self) noexcept;
  request_node* enter_task(std::size_t i, window_core*& w, bool& more) noexcept;
  void pace_tasks(bool came_further) noexcept;
  void fail_dropped(int source, context::peer& peer, const dropped_header& h) noexcept;
  static void on_posted(fabric::completion& over, status result, std::uint64_t bytes) noexcept;
  void take_result(std::uint64_t id, std::span<const std::byte> data) noexcept;
  static void on_operation(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_batch(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_reply(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_acknowledge(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_share(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_refuse(void* self, int source, std::span<const std::byte> payload) noexcept;
  static unsigned on_duty(void* self) noexcept;
  static std::string describe(void* self);
  static void on_notify(void* self, int source, std::span<const std::byte> payload) noexcept;

  context& ctx_;
  user_memory forced_ = user_memory::automatic;
  std::uint64_t last_id_ = 0;  ///< the window that was found last
  window_core* last_found_ = nullptr;
  std::unordered_map<std::uint64_t, window_core*> windows_;
  std::unordered_map<std::uint32_t, window_core*> slots_;
  std::uint32_t last_slot_ = 0;
  std::vector<std::byte> scratch_;
  std::vector<target_state*> waiting_;  ///< targets that operations wait for room towards
  std::size_t next_waiting_ = 0;        ///< whose turn it is
  word64 waiting_count_{};              ///< of these operations
  std::uint64_t waiting_max_;
  /// Grows to the largest number outstanding; reused after that.
  std::shared_ptr<request_nodes> requests_ = std::make_shared<request_nodes>();
  request_node* free_requests_ = nullptr;
  std::vector<request_node*> tasks_;         ///< synchronizations that have not been concluded
  std::atomic<bool> advancing_ = false;      ///< a thread is in advance_tasks
  std::int64_t task_pause_ns_ = 0;           ///< until silent ones are asked again; 0: none is silent
  std::deque<operation_record> operations_;  ///< the same
  operation_record::queue free_operations_;
  std::unordered_map<const context::peer*, sent_operations> sent_;
  std::list<operation_shapes> shapes_;  ///< the same
  operation_shapes* free_shapes_ = nullptr;
  std::list<operation_note> notes_;  ///< the same
  operation_note* free_notes_ = nullptr;
  std::unique_ptr<bulk_streams> bulk_;
};

}  // namespace rma::detail
