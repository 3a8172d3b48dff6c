// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operation engine: what an inlined call does not do itself. Knows every window of the runtime, the
/// operations under way, and the handlers that serve other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "channel/context.hpp"
#include "rma/detail/view.hpp"
#include "rma/layout.hpp"
#include "xfer/sync_task.hpp"

namespace rma::detail {

struct window_core;
struct dropped_header;
class engine;

struct target_state;

/// What a posted operation of a fabric has to end: in one or more pieces.
struct posted_operation : fabric::completion {
  std::uint32_t pieces = 0;      ///< not over yet, and one more while they are being posted
  bool detached = false;         ///< nobody looks at it: given back when it is over
  bool immediate = false;        ///< its fence counts it at the target
  status result = status::done;  ///< the worst of its pieces
  word32 over{};
  target_state* state = nullptr;  ///< whose fabric_pending counts it, if any; null if it is over and has not failed
  std::uint32_t reports = 0;      ///< state's, when it failed
  std::uint64_t value = 0;        ///< where the old value of an atomic goes
  std::vector<std::byte> copy;    ///< of what goes out, where the origin's memory may change meanwhile
  engine* owner = nullptr;
  posted_operation* next_free = nullptr;
};

/// An operation that somebody may wait for: over when the peer has acknowledged its last message, or when what was
/// posted to a fabric is.
struct request_node {
  engine* owner = nullptr;  ///< null if the node is free, or outlives its engine
  context::peer* peer = nullptr;
  int rank = -1;  ///< of the peer, in the world
  std::uint64_t operation = 0;
  posted_operation* posted = nullptr;  ///< instead of the two
  std::uint32_t protests = 0;          ///< the peer's before
  std::uint64_t window = 0;            ///< its id
  request_node* next_free = nullptr;
  std::unique_ptr<sync_task> task{};  ///< instead of all of them
  status ended = status::not_yet;     ///< of the task, or of an operation that the target has turned down
  std::uint32_t reports = 0;          ///< of the target's failures, when it did
  std::uint64_t ticket = 0;           ///< of the operation's result
  bool last_owner = false;            ///< of the ticket: the result is not wanted any more when the request is gone
  std::shared_ptr<std::deque<request_node>>
      kept{};  ///< what it lies in, once the engine is gone; `ended` says the rest
};

/// Where the data of a get, get_accumulate, fetch_and_op or compare_and_swap go when the reply comes.
struct result_ticket {
  std::byte* at = nullptr;
  Layout shape;  ///< if not contiguous
  bool contiguous = true;
  std::uint64_t bytes = 0;
  std::uint64_t arrived = 0;  ///< of these, in order
  std::uint64_t window = 0;   ///< whose operation it is; 0: it is free
  int rank = -1;              ///< who answers, in the world
  std::uint32_t generation = 0;
  std::uint32_t next_free = 0;
};

/// Whether this thread may: `wrong_thread` else.
status may_ask(const request_node& node) noexcept;
/// done, not_yet or peer_failed, without making progress; a synchronisation goes one step.
status request_state(request_node& node) noexcept;

/// How puts and gets reach the user memory of another process.
enum class user_memory : std::uint8_t { automatic, handler, shared, staged, cma };

class engine {
 public:
  explicit engine(context& ctx);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  /// Requests that outlive it keep their nodes.
  ~engine();

  [[nodiscard]] context& ctx() noexcept { return ctx_; }
  [[nodiscard]] user_memory forced() const noexcept { return forced_; }

  void refuse(int source, message kind, std::span<const std::byte> payload, nonsense why) noexcept;

  // ---- windows; the caller holds the progress lock ------------------------------------------------------------
  void add(window_core& w);
  void remove(window_core& w);
  /// What the next window is called in immediates to this rank.
  [[nodiscard]] std::uint32_t new_slot() noexcept;
  [[nodiscard]] window_core* find(std::uint64_t id) noexcept {
    if (last_found_ == nullptr || last_id_ != id) {
      const auto at = windows_.find(id);
      last_id_ = id;
      last_found_ = at == windows_.end() ? nullptr : at->second;
    }
    return last_found_;
  }

  /// The window's lock manager has something to do from now on.
  void busy(window_core& w);

  // ---- operations under way; the caller holds the progress lock ------------------------------------------------
  /// Room for so much, until the next call.
  [[nodiscard]] std::span<std::byte> scratch(std::size_t bytes) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return {scratch_.data(), bytes};
  }
  request_node* new_request(const window_core& w, int rank, std::uint64_t operation, std::uint64_t ticket);
  request_node* new_request(const window_core& w, int rank, posted_operation* posted);
  request_node* new_request(const window_core& w, std::unique_ptr<sync_task> task);
  void free_request(request_node* node) noexcept;
  /// Nothing of it is under way yet: one piece, detached or not as its user says before the first one is posted.
  posted_operation* new_posted() {
    posted_operation* const op = free_posted_ != nullptr ? free_posted_ : one_more_posted();
    free_posted_ = op->next_free;
    op->pieces = 1;
    op->detached = false;
    op->immediate = false;
    op->result = status::done;
    op->over.store(0, std::memory_order_relaxed);
    op->state = nullptr;
    return op;
  }
  void free_posted(posted_operation* op) noexcept {
    op->next_free = free_posted_;
    free_posted_ = op;
  }
  /// The failure of an operation that is over has been reported to its own user: flushes need not do it again.
  void told(const posted_operation& op) noexcept;
  /// The same of what a target has turned down.
  void told(const request_node& node) noexcept;
  /// Operations towards a target of a window that goes away.
  void forget(const target_state& state) noexcept;
  /// Synchronisations of a window that goes away, as far as they may be dropped.
  void give_up_tasks(window_core& w) noexcept;
  /// `shape` is null where the result is contiguous; `rank` of the world will answer.
  std::uint64_t new_ticket(const window_core& w, int rank, void* at, std::uint64_t bytes, const Layout* shape);
  /// What still comes for it is not wanted any more.
  void drop_ticket(std::uint64_t ticket) noexcept;
  /// What is still to come for operations of the window to this rank (-1: to any) is not written any more: their
  /// buffers may be gone. Except for those that somebody has a request of, until that is dropped.
  void drop_results(std::uint64_t window, int rank);
  [[nodiscard]] std::size_t requests_made() const noexcept { return requests_->size(); }

  /// What becomes of an operation when all of it is posted, with what result so far: waited for (`now`), somebody's
  /// request (if not null), or nobody's. `done`, `posted` or what it ended with.
  status leave(std::unique_lock<small_lock>& guard, posted_operation& op, const window_core& w, int world_rank,
               bool now, request_node** request) noexcept;
  /// Blocks until the operation is over; its result. Gives the lock up meanwhile.
  status wait_posted(std::unique_lock<small_lock>& guard, posted_operation& op) noexcept;

 private:
  posted_operation* one_more_posted();
  void end_piece(posted_operation& op, status result) noexcept;
  request_node* take_request();
  /// What is known of a target, by its world rank, whose handler this window has asked; else null.
  [[nodiscard]] target_state* asked_target(std::uint64_t window, int rank) noexcept;
  void fail_dropped(int source, context::peer& peer, const dropped_header& h) noexcept;
  static void on_posted(fabric::completion& over, status result, std::uint64_t bytes) noexcept;
  void take_result(std::uint64_t ticket, std::span<const std::byte> data) noexcept;
  static void on_operation(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_reply(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_acknowledge(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_share(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_refuse(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_lock(void* self, int source, std::span<const std::byte> payload) noexcept;
  static unsigned on_duty(void* self) noexcept;
  static std::string describe(void* self);
  static void on_notify(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_fence(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_range(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_immediate(void* self, int source, std::uint32_t value) noexcept;

  context& ctx_;
  user_memory forced_ = user_memory::automatic;
  std::uint64_t last_id_ = 0;  ///< the window that was found last
  window_core* last_found_ = nullptr;
  std::unordered_map<std::uint64_t, window_core*> windows_;
  std::unordered_map<std::uint32_t, window_core*> slots_;
  std::uint32_t last_slot_ = 0;
  std::vector<std::byte> scratch_;
  std::vector<window_core*> busy_;  ///< whose lock managers have something to look after
  /// Grows to the largest number outstanding; reused after that.
  std::shared_ptr<std::deque<request_node>> requests_ = std::make_shared<std::deque<request_node>>();
  request_node* free_requests_ = nullptr;
  std::deque<posted_operation> posted_;  ///< the same
  posted_operation* free_posted_ = nullptr;
  std::deque<result_ticket> tickets_;
  std::uint32_t free_ticket_ = 0;  ///< index + 1
};

}  // namespace rma::detail
