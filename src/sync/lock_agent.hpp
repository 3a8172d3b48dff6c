// SPDX-License-Identifier: Apache-2.0
/// \file
/// The lock manager of one rank's part of a window: takes the lock for ranks that cannot, in the order of their
/// requests (but shared requests pass waiting writers), and runs the epochs of lock "two-sided".
///
///   origin: ask ------> target: waits for its turn, takes the lock --answer--> origin: operations ... leave -->
///   origin: epoch of lock, operations and unlock -----> target: its turn: lock, run, unlock --answer--> origin
///
/// With lock "hybrid" it also migrates the lock (lock_hybrid.hpp): `migrates` makes the origin move it to the network
/// word, `moved` means that it is there already or is migrating.
///
/// With lock "network", scheme "agent", it counts the readers, and holds the network word for them (reader_hold.hpp).
///
/// With lock "two-sided" the manager is the lock, for all ranks alike. With "cpu" it takes the CPU lock
/// (lock_cpu.hpp) for ranks that do not map it, and competes with those that do.
///
/// It runs under the progress lock of the target: in its handlers, and in each round while there are waiters or
/// holders. A target that computes does not answer (RMA_PROGRESS_THREAD=1 helps).
///
/// Death of a holder: its hold is released (RMA_LOCK_RECOVERY=on), and current waiters get peer_failed.
/// Source: dissertation ch. 4 (two-sided, fig. 4.2 b), ch. 5 (lock manager, fig. 5.3).
#pragma once

#include <boost/container/deque.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sync/lock_cpu.hpp"
#include "sync/lock_machine.hpp"
#include "sync/lock_turns.hpp"
#include "sync/reader_hold.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

enum class manager_duty : std::uint8_t;

class lock_agent {
 public:
  explicit lock_agent(window_core& w);

  // The caller holds the progress lock.
  /// False if the message is malformed.
  bool take_message(int source, const lock_header& h, std::span<const std::byte> body) noexcept;
  /// Requests this rank's own lock for itself.
  void ask_own(std::uint32_t number, lock_kind kind) noexcept;
  void release_own(std::uint32_t number) noexcept { release(w_.ctx->rank(), number); }
  /// Serves the next requests; returns their number.
  unsigned serve() noexcept;
  /// As `serve`, in a round of progress, where it may post to the adapter.
  unsigned advance() noexcept;
  [[nodiscard]] bool busy() const noexcept {
    return granted_.has_value() || turns_.busy() || !arriving_.empty() || (readers_ && readers_->busy());
  }
  /// Posts no more to the adapter; true once nothing is pending there.
  bool stop() noexcept { return !readers_ || readers_->stop(); }
  /// Drops all holders and waiters, before the window is freed.
  void close() noexcept;

 private:
  struct queued_request {
    int source = -1;  ///< world rank
    std::uint32_t number = 0;
    std::int32_t target = 0;
    lock_kind kind = lock_kind::shared;
    bool is_epoch = false;
    bool is_noted = false;  ///< it is counted in the ledger of migrations
    bool migrates = false;
    std::uint8_t late = 0;            ///< see excess_locks()
    std::vector<std::byte> messages;  ///< operations of the epoch
    std::int64_t since_ns = 0;        ///< time of its arrival
  };
  /// A request whose rank is to move the lock to the network word.
  struct grant {
    int source;
    std::uint32_t number;
  };
  void enqueue(queued_request&& c) noexcept;
  bool take_piece(int source, const lock_header& h, std::span<const std::byte> body) noexcept;
  void release(int source, std::uint32_t number) noexcept;
  bool may_come(int source) noexcept;
  void comes(int source) noexcept;
  void stays(int source) noexcept;
  void take_back_grant() noexcept;
  [[nodiscard]] manager_duty duty() const noexcept;
  [[nodiscard]] bool takes_cpu_lock() const noexcept;
  // The interface for the steps of lock_turns.
  lock_turn take(queued_request& c) noexcept;
  bool take_beside(const queued_request& c) noexcept;
  void end_wait() noexcept;
  void run(const queued_request& c) noexcept;
  void give_back(const queued_request& c) noexcept;
  void answer(const queued_request& c, lock_answer result, int blamed) noexcept;
  [[nodiscard]] bool dead(int source) const noexcept { return w_.ctx->dead(source); }
  [[nodiscard]] bool recovers() const noexcept { return !w_.ctx->config().is(knob::lock_recovery, "off"); }
  void lose(const queued_request& c) noexcept;

  lock_turn take_hybrid(queued_request& c) noexcept;
  lock_turn wait_for_cpu(const queued_request& c, lock_kind kind, std::uint64_t tag) noexcept;
  unsigned remove_dead() noexcept;
  unsigned remove_dead_writer() noexcept;
  void settle_grant() noexcept;
  [[nodiscard]] std::uint64_t proxy_of(const queued_request& c) const noexcept {
    return lock_tag(static_cast<std::uint32_t>(c.source)) | lock_proxy;
  }

  using turns = lock_turns<boost::container::deque<queued_request>>;  // without memory until it is used
  friend turns;

  window_core& w_;
  turns turns_;
  std::unordered_map<int, queued_request> arriving_;  ///< epochs with missing pieces, by source
  std::optional<cpu_wait> wait_;                      ///< the first waiter's wait for the CPU lock
  std::optional<reader_hold> readers_;                ///< the readers' hold of lock "network", scheme "agent"
  std::optional<grant> granted_;                      ///< its rank may die or give up before it moves the lock
  std::uint32_t deaths_seen_ = 0;
};

/// Waits, before the window is freed, until nothing of its lock manager is pending at the adapter.
void quiesce_agent(window_core& w) noexcept;

// ---- origin's side
// ----------------------------------------------------------------------------------------------------

/// Makes a new request to the target's lock manager; the caller holds the progress lock.
lock_request& begin_request(window_core& w, int target);
/// Handles its reply; the caller holds the progress lock.
void take_answer(window_core& w, int target, const lock_header& h) noexcept;
/// Handles the reply to lock_word::home; the caller holds the progress lock.
void take_migrate_reply(window_core& w, int target, bool may_migrate) noexcept;
/// The last request to the target's lock manager; the caller holds the progress lock.
lock_request& request_to(window_core& w, int target);
/// Sends a message to the manager of another rank; the caller holds the progress lock.
void tell_agent(window_core& w, int target, lock_word word, std::uint32_t number, lock_kind kind, bool last,
                std::span<const std::byte> body, std::uint32_t late = 0) noexcept;

/// Sends a request to the target's lock manager, which will reply.
lock_request& ask_agent(window_core& w, int target, lock_kind kind, std::uint32_t late = 0) noexcept;
/// Waits for the lock manager's reply: `migrates` and `moved` are those of lock "hybrid".
class agent_machine final : public lock_machine {
 public:
  agent_machine(window_core& w, int target, lock_kind kind, std::uint32_t late = 0) noexcept
      : agent_machine(w, target, ask_agent(w, target, kind, late)) {}
  /// Waits for the reply to a request that has been sent.
  agent_machine(window_core& w, int target, lock_request& sent) noexcept : w_(w), target_(target), request_(sent) {}
  [[nodiscard]] const lock_request& request() const noexcept { return request_; }

  bool may_advance() noexcept override { return request_.answered.load() == request_.number; }
  [[nodiscard]] std::int64_t resumes_at_ns() const noexcept override { return by_message; }
  [[nodiscard]] int answers_from() const noexcept override { return w_.world_rank(target_); }
  status failed() noexcept override;

 protected:
  lock_step go_on() noexcept override;
  void take_back() noexcept override;

 private:
  window_core& w_;
  int target_;
  lock_request& request_;
};

/// The message that releases the target's lock.
lock_header leave_message(window_core& w, int target);
/// Releases the lock, or cancels the request.
void release_by_agent(window_core& w, int target) noexcept;

/// Handles a message to or from a lock manager; the caller holds the progress lock.
void serve_lock(engine& e, int source, std::span<const std::byte> payload) noexcept;
/// Lets this rank's lock manager of the window make progress. Returns the amount of work done.
unsigned serve_agent(window_core& w) noexcept;
/// True while it has waiters or holders.
bool agent_is_busy(const window_core& w) noexcept;

}  // namespace rma::detail
