// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operation engine executes operations that an inlined call does not complete itself. It has all windows of the
/// runtime, the pending operations, and the handlers that serve other ranks.
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
#include "xfer/wire.hpp"

namespace rma::detail {

class bulk_streams;
class layout_exchange;
struct window_core;
struct checked_operation;
struct dropped_header;
class engine;

struct target_state;

/// The state of a step of a synchronization: `under_way` if a thread is in it, `awaited` if another thread also waits
/// for its end.
enum class task_step : std::uint8_t { none, under_way, awaited };

struct request_node;
/// This deque allocates nothing before the first node, unlike a std::deque, and does not move nodes.
using request_nodes = boost::container::deque<request_node>;

/// The state behind a user's Request: an operation, a synchronization, or another awaited event.
struct request_node {
  engine* owner = nullptr;  ///< null if the node is free, or has outlived its engine
  operation_record* operation = nullptr;
  std::unique_ptr<sync_task> task{};  ///< instead of an operation
  awaited* outside = nullptr;         ///< or instead of both
  std::uint64_t window = 0;           ///< id of the window
  int rank = -1;                      ///< world rank of the target
  status ended = status::not_yet;     ///< result of the task; of any request, once the engine is gone
  status reached = status::not_yet;   ///< result of the task's last step, before its conclusion
  std::atomic<bool> silent = false;   ///< the task was silent in its last step
  task_step step = task_step::none;   ///< a step lets other threads into the window while it waits
  request_node* next_free = nullptr;
  /// Keeps the node's memory once the engine is gone; `ended` has the result.
  std::shared_ptr<request_nodes> kept{};
};
static_assert(sizeof(request_node) <= 72);

/// `done` if this thread may test the request, else `wrong_thread`.
status may_ask(const request_node& node) noexcept;
/// The request's result, or not_yet, without progress of the network; a synchronization takes one step.
status request_state(request_node& node) noexcept;

/// The way in which puts and gets access the user memory of another process.
enum class user_memory : std::uint8_t { automatic, handler, shared, staged, cma };

/// The limit of windows' numbers in immediates: two bits are left for the immediate's meaning.
inline constexpr std::uint32_t window_slot_max = immediate_value_max >> 2;

class engine {
  friend class bulk_streams;

 public:
  explicit engine(context& ctx);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  /// Requests that outlive the engine keep their nodes.
  ~engine();

  [[nodiscard]] context& ctx() noexcept { return ctx_; }
  [[nodiscard]] user_memory forced() const noexcept { return forced_; }

  /// The transfers over the bulk channel.
  [[nodiscard]] bulk_streams& bulk() noexcept { return *bulk_; }
  /// The layouts that messages between nodes name.
  [[nodiscard]] layout_exchange& layouts() noexcept { return *layouts_; }
  void reject_malformed(int source, message kind, std::span<const std::byte> payload, malformed_reason why) noexcept;

  // ---- windows; the caller holds the progress lock ------------------------------------------------------------
  void add(window_core& w);
  void remove(window_core& w);
  /// Returns a number for the next window, by which immediates to this rank name it.
  [[nodiscard]] std::uint32_t new_slot() noexcept;
  [[nodiscard]] window_core* find(std::uint64_t id) noexcept {
    if (last_found_ == nullptr || last_id_ != id) {
      const auto at = windows_.find(id);
      last_id_ = id;
      last_found_ = at == windows_.end() ? nullptr : at->second;
    }
    return last_found_;
  }

  /// Finds a window by its number in immediates; null if there is none.
  [[nodiscard]] window_core* find_slot(std::uint32_t slot) noexcept {
    const auto found = slots_.find(slot);
    return found == slots_.end() ? nullptr : found->second;
  }

  // ---- pending operations; the caller holds the progress lock --------------------------------------------------
  /// Memory of the handler for the data of one reply. Waits run handlers, and have little stack.
  [[nodiscard]] std::span<std::byte, operation_message_max> reply_room() {
    if (reply_room_ == nullptr) [[unlikely]]
      reply_room_.reset(new std::byte[operation_message_max]);
    return std::span<std::byte, operation_message_max>(reply_room_.get(), operation_message_max);
  }
  /// Returns a buffer of so many bytes, valid until the next call.
  [[nodiscard]] std::span<std::byte> scratch(std::size_t bytes) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return {scratch_.data(), bytes};
  }
  request_node* new_request(const window_core& w, int rank, operation_record& op);
  /// The caller has counted the task in `w`.
  request_node* new_request(const window_core& w, std::unique_ptr<sync_task> task);
  /// Progress does not advance this synchronization any more.
  void stop_advancing(const request_node& node) noexcept;
  /// Concludes a synchronization with a result. The caller is alone in the window, and does not hold the progress lock.
  status end_task(request_node& node, window_core& w, status s) noexcept;
  request_node* new_request(awaited& what);
  /// Returns an object to be destroyed without the lock.
  [[nodiscard]] std::shared_ptr<void> free_request(request_node* node) noexcept;
  /// A fresh record with one piece, which stands for the posting. Set `detached` before the first piece is posted.
  operation_record& new_operation() {
    operation_record& op = free_operations_.empty() ? one_more_operation() : free_operations_.front();
    free_operations_.pop_front();
    restart(op);
    return op;
  }
  /// Returns the held record, if there is one, which the protocol owns from now on; else a fresh one.
  operation_record& record_of(operation_record*& held) {
    if (held == nullptr) [[likely]]
      return new_operation();
    operation_record& op = *std::exchange(held, nullptr);
    restart(op);
    return op;
  }
  /// Returns a record to the pool: its operation is complete, or nothing of it was posted.
  void free_operation(operation_record& op) noexcept;
  /// Puts the operation into its target's list, until it is complete.
  void track(operation_record& op, target_state& state, bool write) noexcept;
  /// Does the same for an operation by messages, before its last message is sent.
  void track_message(operation_record& op, target_state& state) noexcept;
  /// Returns a record for an operation of the target's handler, before its messages are sent.
  operation_record& message_record_of(operation_record*& held, const context::peer& peer);
  /// Returns room for the layouts of the operation.
  operation_shapes& shapes_of(operation_record& op);
  /// Adds an event to the window's trace, if there is one, when the operation completes. `o` has the chosen protocol.
  void trace_operation(operation_record& op, const window_core& w, const checked_operation& o);
  /// Sets the destination of the result of an operation by message. `shape` is null if it is contiguous.
  void expect_result(operation_record& op, void* into, std::uint64_t bytes, const Layout* shape);
  /// Called when all its messages are sent: it completes when the peer acknowledges the last one. `state` may be null.
  void await_acknowledgement(operation_record& op, context::peer& peer, target_state* state) noexcept;
  /// Notes that the failure of a complete operation was reported to its own user: flushes need not report it again.
  void mark_failure_reported(const operation_record& op) noexcept;
  /// Detaches operations to a target of a window that is being freed.
  void forget(target_state& state) noexcept;
  /// Gives up synchronizations of a window that is being freed, as far as they may be dropped.
  void give_up_tasks(window_core& w) noexcept;
  /// Discards results that are still to come from the target's handler: their buffers may be gone. Results of requests
  /// are written until the request is dropped.
  void drop_results(target_state& state) noexcept;

  // ---- operations that wait for room in the network; the caller holds the progress lock -----------------------
  /// Adds the last operation of the target's queue to those that wait for room.
  void add_waiting(target_state& state);
  /// Resumes operations of the target, as far as there is room now. Returns the number that have left its queue.
  unsigned drain(target_state& state) noexcept;
  /// Ends all waiting operations of the target: their requests, or flushes, report the reason.
  void end_waiting(target_state& state, status why) noexcept;
  /// Ends those without a request, and reports nothing.
  void cancel_waiting(target_state& state) noexcept;
  /// Returns when fewer operations wait than RMA_WAITING_OPERATIONS allows. The caller does not hold the progress
  /// lock.
  void keep_bounded() noexcept;
  /// The number of operations that may wait, RMA_WAITING_OPERATIONS.
  [[nodiscard]] std::uint64_t waiting_max() const noexcept { return waiting_max_; }

  /// Ends the sent operations of a peer that has gone: none will be acknowledged.
  void end_sent(context::peer& peer) noexcept;
  [[nodiscard]] std::size_t requests_made() const noexcept { return requests_->size(); }

  /// Called when all of an operation is posted, with a result so far: waits for it (`now`), makes a request of it (if
  /// not null), or leaves it to flushes. Returns `done`, `posted` or its failure.
  status finish_posting(std::unique_lock<small_lock>& guard, operation_record& op, const window_core& w, int world_rank,
                        bool now, request_node** request) noexcept;
  /// Does the same while the rest of it waits for room.
  status leave_operation(std::unique_lock<small_lock>& guard, operation_record& op, const window_core& w,
                         int world_rank, bool now, request_node** request) noexcept;
  /// Ends a piece of the operation, or its posting, for which one piece stands.
  void end_piece(operation_record& op, status result) noexcept;
  /// Blocks until the operation on a rank is complete; returns its result. Releases the lock meanwhile.
  status wait_posted(std::unique_lock<small_lock>& guard, operation_record& op, int world_rank) noexcept;

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
  std::uint64_t last_id_ = 0;  ///< id of the window found last
  window_core* last_found_ = nullptr;
  std::unordered_map<std::uint64_t, window_core*> windows_;
  std::unordered_map<std::uint32_t, window_core*> slots_;
  std::uint32_t last_slot_ = 0;
  std::vector<std::byte> scratch_;
  std::unique_ptr<std::byte[]> reply_room_;
  std::vector<target_state*> waiting_;  ///< targets with operations that wait for room
  std::size_t next_waiting_ = 0;        ///< next target in turn
  word64 waiting_count_{};              ///< number of these operations
  std::uint64_t waiting_max_;
  /// These pools grow to the largest number outstanding; entries are reused.
  std::shared_ptr<request_nodes> requests_ = std::make_shared<request_nodes>();
  request_node* free_requests_ = nullptr;
  std::vector<request_node*> tasks_;         ///< synchronizations that have not been concluded
  std::atomic<bool> advancing_ = false;      ///< a thread runs advance_tasks
  std::int64_t task_pause_ns_ = 0;           ///< until silent ones are tested again; 0: none is silent
  std::deque<operation_record> operations_;  ///< a pool
  operation_record::queue free_operations_;
  std::unordered_map<const context::peer*, sent_operations> sent_;
  std::list<operation_shapes> shapes_;  ///< a pool
  operation_shapes* free_shapes_ = nullptr;
  std::list<operation_note> notes_;  ///< a pool
  operation_note* free_notes_ = nullptr;
  std::unique_ptr<layout_exchange> layouts_;
  std::unique_ptr<bulk_streams> bulk_;
};

}  // namespace rma::detail
