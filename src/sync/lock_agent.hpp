// SPDX-License-Identifier: Apache-2.0
/// \file
/// The lock manager of one rank's part of a window: takes the lock for ranks that cannot, in the order in which they
/// asked (but shared holders let in others), and runs the epochs of lock "two-sided".
///
///   origin: ask ------> target: waits for its turn, takes the lock --answer--> origin: operations ... leave -->
///   origin: epoch of lock, operations and unlock -----> target: its turn: lock, run, unlock --answer--> origin
///
/// With lock "hybrid" it also gives the lock away for good (lock_hybrid.hpp): `migrates` means that the origin brings
/// it to the network word, `moved` that it is there already or on its way.
///
/// With lock "network", scheme "agent", it counts the readers, for which it holds the network word (reader_hold.hpp).
///
/// With lock "two-sided" the manager is the lock, for all ranks alike. With "cpu" it takes the CPU lock
/// (lock_cpu.hpp) for ranks that do not map it, and competes with those that do.
///
/// Runs under the progress lock of the target: by its handlers, and in each round while somebody waits or holds. A
/// target that computes answers nobody (RMA_PROGRESS_THREAD=1 helps).
///
/// Death of a holder: its hold is given back (RMA_LOCK_RECOVERY=on), and who waits at that time gets peer_failed.
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
  /// False if the message makes no sense.
  bool take_message(int source, const lock_header& h, std::span<const std::byte> body) noexcept;
  /// This rank wants its own lock.
  void ask_own(std::uint32_t number, lock_kind kind) noexcept;
  void leave_own(std::uint32_t number) noexcept { leave(w_.ctx->rank(), number); }
  /// Serves whose turn it is; returns how many were served.
  unsigned serve() noexcept;
  /// The same in a round of progress, where the adapter may be asked.
  unsigned work() noexcept;
  [[nodiscard]] bool busy() const noexcept {
    return granted_.has_value() || turns_.busy() || !arriving_.empty() || (readers_ && readers_->busy());
  }
  /// Asks the adapter for nothing any more; true once nothing is under way there.
  bool stop() noexcept { return !readers_ || readers_->stop(); }
  /// The window goes away: nobody holds or waits any more.
  void close() noexcept;

 private:
  struct queued_request {
    int source = -1;  ///< world rank
    std::uint32_t number = 0;
    std::int32_t target = 0;
    lock_kind kind = lock_kind::shared;
    bool is_epoch = false;
    bool is_noted = false;  ///< in the ledger of migrations
    bool migrates = false;
    std::uint8_t late = 0;            ///< see excess_locks()
    std::vector<std::byte> messages;  ///< of the epoch
    std::int64_t since_ns = 0;        ///< in the queue
  };
  /// A request whose rank has been told to bring the lock to the network word.
  struct grant {
    int source;
    std::uint32_t number;
  };
  void enqueue(queued_request&& c) noexcept;
  bool take_piece(int source, const lock_header& h, std::span<const std::byte> body) noexcept;
  void leave(int source, std::uint32_t number) noexcept;
  bool may_come(int source) noexcept;
  void comes(int source) noexcept;
  void stays(int source) noexcept;
  void take_back_grant() noexcept;
  [[nodiscard]] manager_duty duty() const noexcept;
  [[nodiscard]] bool takes_cpu_lock() const noexcept;
  // The steps of lock_turns ask for these.
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
  std::unordered_map<int, queued_request> arriving_;  ///< epochs of which pieces are missing, by source
  std::optional<cpu_wait> wait_;                      ///< of the first that waits, for the CPU lock
  std::optional<reader_hold> readers_;                ///< of lock "network", scheme "agent": its readers hold
  std::optional<grant> granted_;                      ///< it may die before, or give up
  std::uint32_t deaths_seen_ = 0;
};

/// Before the window goes away: nothing of its lock manager is under way at the adapter any more.
void quiesce_agent(window_core& w) noexcept;

// ---- origin's side
// ----------------------------------------------------------------------------------------------------

/// A new request to the target's lock manager; the caller holds the progress lock.
lock_request& begin_request(window_core& w, int target);
/// Its answer has come; the caller holds the progress lock.
void take_answer(window_core& w, int target, const lock_header& h) noexcept;
/// The answer to lock_word::home has come; the caller holds the progress lock.
void take_welcome(window_core& w, int target, bool welcome) noexcept;
/// The last request to the target's lock manager; the caller holds the progress lock.
lock_request& request_to(window_core& w, int target);
/// Sends a message to the manager of another rank; the caller holds the progress lock.
void tell_agent(window_core& w, int target, lock_word word, std::uint32_t number, lock_kind kind, bool last,
                std::span<const std::byte> body, std::uint32_t late = 0) noexcept;

/// Asks the target's lock manager, which will answer.
lock_request& ask_agent(window_core& w, int target, lock_kind kind, std::uint32_t late = 0) noexcept;
/// Waits for the lock manager's answer, and takes it: `migrates` and `moved` are those of lock "hybrid".
class agent_machine final : public lock_machine {
 public:
  agent_machine(window_core& w, int target, lock_kind kind, std::uint32_t late = 0) noexcept
      : agent_machine(w, target, ask_agent(w, target, kind, late)) {}
  /// For a request that has been sent.
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

/// A message that says that this rank lets go of the target's lock.
lock_header leave_message(window_core& w, int target);
/// Lets go of what it got, or gives up what it has asked for.
void release_by_agent(window_core& w, int target) noexcept;

/// A message to or from a lock manager; the caller holds the progress lock.
void serve_lock(engine& e, int source, std::span<const std::byte> payload) noexcept;
/// This rank's lock manager of the window does what it can now. Returns how much it did.
unsigned serve_agent(window_core& w) noexcept;
/// True while it has something to look after.
bool agent_is_busy(const window_core& w) noexcept;

}  // namespace rma::detail
