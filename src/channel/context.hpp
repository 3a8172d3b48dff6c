// SPDX-License-Identifier: Apache-2.0
/// \file
/// The progress context of a runtime: one lock, one place that polls the fabric, runs handlers and waits.
///
/// Every wait of the library is `wait`: it spins a little, then drives the fabric, then sleeps for all
/// sources at once. Handlers run under the lock; they never wait and never re-enter.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "boot/boot.hpp"
#include "channel/bulk_order.hpp"
#include "channel/gone_ranks.hpp"
#include "channel/hooks.hpp"
#include "channel/immediate.hpp"
#include "channel/long_wait.hpp"
#include "channel/message_pool.hpp"
#include "channel/wait.hpp"
#include "core/assert.hpp"
#include "core/settings.hpp"
#include "core/small_lock.hpp"
#include "core/trace.hpp"
#include "fabric/fabric.hpp"
#include "fabric/platform.hpp"
#include "rma/detail/word.hpp"

namespace rma::detail {

/// Kinds of control messages.
enum class message : std::uint16_t {
  notify = fabric::first_kind,  ///< raise a counter of a window
  operation,                    ///< put, get, accumulate, ... run by the target's handler
  reply,                        ///< data for the origin
  acknowledge,                  ///< number of operations that are done
  share,                        ///< do your half of a large copy
  refusal,                      ///< an operation or a copy that could not be done
  lock,                         ///< between a rank that wants a lock and the lock manager of its target
  malformed_notice,             ///< reports a malformed message to its sender
  fence,                        ///< how far a rank is with a fence
  range,                        ///< a lock of bytes of a window
  notification,                 ///< a rank has come to a round of a barrier
  notification_word,            ///< permission to report that by writing a word, and its recall
  revoke,                       ///< revokes a team or window
  dropped,                      ///< members have dropped a window or a team, or all have
  eager,                        ///< point-to-point: an envelope with its data
  announce,                     ///< an envelope whose data wait for a receive
  rendezvous,                   ///< between the two sides of a rendezvous
  request,                      ///< a receive's buffer for the data of an announced message
  early_request,                ///< a receive's buffer for a message that has not been announced
  stream,                       ///< data of a rendezvous without RDMA
  credit,                       ///< memory for unexpected messages has been released
  bulk,                         ///< a transfer over the fabric's bulk channel
  batch,                        ///< several operations for the target's handler, and the end of their epoch
  collective_failed,            ///< a member's call was invalid, which the others cannot see
  put_channel,                  ///< landing memory for puts of collectives: asked for, granted, free again
  layout,                       ///< describes a layout that other messages name, or asks for it
  count_
};

/// The reason why a message is malformed.
enum class malformed_reason : std::uint16_t { unknown_kind, wrong_length, wrong_contents, protected_memory };

/// Counts that `Runtime::counters` reports. Guarded by the progress lock.
enum class counter : std::uint8_t {
  messages_sent,
  messages_received,
  messages_refused,
  malformed_notices,
  sends_queued,
  sleeps,
  operations_handler,
  operations_fabric,
  stripe_waits,
  placement_reads,
  lock_waits,
  locks_local,
  locks_remote,
  lock_migrations,
  barrier_words,  ///< rounds of barriers reported by a word instead of a message
  deaths,
  eager_messages,        ///< point-to-point messages with their data
  announced_messages,    ///< point-to-point messages without their data
  unexpected_messages,   ///< messages that came before their receives
  rendezvous_messages,   ///< control messages of rendezvous, announcements included
  rendezvous_transfers,  ///< reads and writes of rendezvous
  ring_messages,         ///< eager messages that were written into a ring
  layout_requests,       ///< writes, reads and sends of lists for operations with layouts
  layout_bytes,          ///< bytes of layouts in messages: descriptions, numbers, rows
  layouts_asked,         ///< requests for descriptions that the cache had dropped
  layout_plans,          ///< new plans that cut two layouts into lists
  target_wait_ns,        ///< time that calls waited for an operation's target, if its reply was not there at once
  collective_puts,       ///< puts with a signal of collectives
  count_
};

struct sent_operations;

class context final : public fabric::sink, public fabric::directory {
 public:
  using handler = void (*)(void* self, int source, std::span<const std::byte> payload) noexcept;
  using immediate_handler = void (*)(void* self, int source, std::uint32_t value) noexcept;

  /// Per-peer state, made when the peer is first used.
  struct peer {
    fabric::network* network = nullptr;     ///< the fabric that reaches it
    std::uint64_t operations_sent = 0;      ///< handler operations, counted by message
    std::uint64_t last_naming = 0;          ///< the last of these that names a layout, which the peer may ask for
    word64 operations_done{};               ///< those that it has acknowledged
    std::uint32_t pending_acks = 0;         ///< its operations that are done here but not acknowledged
    sent_operations* sent = nullptr;        ///< the engine's operations that are not acknowledged; null until the first
    word32 malformed_notices{};             ///< messages of this rank that it found malformed
    std::uint32_t missed_reservations = 0;  ///< reservations that failed because it slept
    bool is_held = false;                   ///< its messages wait until they may be handled
    message_pool::queue held;               ///< these messages
    message_pool::queue waiting;            ///< messages for which the fabric had no room
    [[nodiscard]] std::size_t waiting_count() const noexcept { return waiting.size(); }
  };

  /// `node` reaches the ranks of this node; `wide`, which may be null, reaches every rank including this one.
  context(const settings& s, boot::client& boot, fabric::network& node, platform& around,
          fabric::network* wide = nullptr);
  ~context();

  [[nodiscard]] int rank() const noexcept { return boot_.rank(); }
  [[nodiscard]] int size() const noexcept { return boot_.size(); }
  [[nodiscard]] const settings& config() const noexcept { return settings_; }
  [[nodiscard]] thread_level threads() const noexcept { return threads_; }
  /// `wrong_thread` if the thread level does not let this thread call.
  [[nodiscard]] status check_caller() const noexcept {
    return is_single_threaded() && ::pthread_equal(::pthread_self(), maker_) == 0 ? status::wrong_thread : status::done;
  }
  /// True if the thread level lets only one thread call.
  [[nodiscard]] bool is_single_threaded() const noexcept {
    return threads_ == thread_level::single || threads_ == thread_level::funneled;
  }
  /// The fabric that reaches the ranks whose memory is mapped.
  [[nodiscard]] fabric::network& node() const noexcept { return node_; }
  /// The fabric between nodes; null if there is none.
  [[nodiscard]] fabric::network* wide() const noexcept { return wide_; }
  /// The fabric that reaches this rank.
  [[nodiscard]] fabric::network& network_of(int rank) const noexcept {
    return wide_ == nullptr || (near_ && node_.as_facts().reaches(rank)) ? node_ : *wide_;
  }
  /// Expected costs of transfers to that rank: measured (RMA_TUNING), or those of its fabric's capabilities.
  [[nodiscard]] const fabric::transfer_costs& costs_of(int rank) const noexcept {
    const fabric::network& network = network_of(rank);
    return costs_are_measured_ && &network == wide_ ? measured_costs_ : network.caps().costs;
  }
  void use_costs(const fabric::transfer_costs& measured) noexcept {
    measured_costs_ = measured;
    costs_are_measured_ = true;
  }
  /// The measured costs of the fabric between nodes; null if they were not measured.
  [[nodiscard]] const fabric::transfer_costs* measured_costs() const noexcept {
    return costs_are_measured_ ? &measured_costs_ : nullptr;
  }
  [[nodiscard]] platform& around() const noexcept { return around_; }
  [[nodiscard]] bool keeps_accounts() const noexcept { return accounts_; }
  /// The trace of calls that are not on a window; null: nothing is traced.
  void trace_to(trace_file* file) noexcept { trace_ = file; }
  [[nodiscard]] trace_file* trace() const noexcept { return trace_; }
  /// Number of times that a wait for memory tests its condition, at least, before it sleeps.
  [[nodiscard]] unsigned looks_before_sleep() const noexcept {
    return std::max(patience_.first_spins, patience_.looks_before_sleep);
  }
  /// True if waits spin before they sleep.
  [[nodiscard]] bool waits_spin() const noexcept { return patience_.spin_ns != 0; }
  [[nodiscard]] small_lock& lock() noexcept { return lock_; }
  /// True if two threads of this rank may be in the library at the same time.
  [[nodiscard]] bool several_threads() const noexcept { return shared_; }
  /// For assertions: true if the progress lock is held, or only one thread can be in the library.
  [[nodiscard]] bool is_guarded() const noexcept { return !shared_ || lock_.is_taken(); }
  /// Looks at something of its own before a wait goes on with everything.
  [[nodiscard]] unsigned first_spins() const noexcept { return patience_.first_spins; }
  /// 0 where ranks do not outnumber them.
  [[nodiscard]] unsigned cores() const noexcept { return patience_.cores; }

  // ---- messages; the caller holds the lock ------------------------------------------------------------------
  void set_handler(message kind, handler run, void* self) noexcept {
    RMA_ASSERT(run != nullptr && kind < message::count_);
    handlers_[static_cast<std::size_t>(kind)] = {run, self};
  }
  /// Runs the handler of a message that was contained in another one.
  void run_handler(int source, message kind, std::span<const std::byte> payload) noexcept {
    const registered<handler>& of = handlers_[static_cast<std::size_t>(kind)];
    if (of.run != nullptr) of.run(of.self, source, payload);
  }
  /// Called by the handler of a message that cannot be handled yet, and has had no effect: it and the source's later
  /// messages, except those of kind `layout`, are held, in their order, until they are released.
  void hold_message(int source, message kind, std::span<const std::byte> payload);
  void release_messages(int source) noexcept;
  /// Drops the held messages of a rank that has gone.
  void drop_held(int source) noexcept;
  /// Sends or queues the message. Never fails; messages to dead ranks are dropped.
  void send(int to, message kind, std::span<const std::byte> header, std::span<const std::byte> payload) noexcept;
  /// Sends the message at once, or returns false if there is no room now; then nothing happened.
  [[nodiscard]] bool try_send(int to, message kind, std::span<const std::byte> header,
                              std::span<const std::byte> payload) noexcept;
  template <class Header>
  void send_record(int to, message kind, const Header& header, std::span<const std::byte> payload = {}) noexcept {
    send(to, kind, {reinterpret_cast<const std::byte*>(&header), sizeof header}, payload);
  }
  [[nodiscard]] peer& peer_of(int rank) noexcept { return rank == last_rank_ ? *last_peer_ : find_peer(rank); }
  /// True if the current round has handled all messages that had arrived when it began.
  [[nodiscard]] bool drained() const noexcept { return drained_; }
  /// Reserves the delivery of a message of at most `bytes`, see fabric::reservations. A peer that sleeps through
  /// several of these is woken: messages are cheaper than the caller's alternative.
  [[nodiscard]] fabric::delivery_guarantee reserve_delivery(int to, std::size_t bytes) noexcept;
  /// The same for a message worth waking a sleeper for: waits until it is awake, but not for long.
  [[nodiscard]] fabric::delivery_guarantee reserve_delivery_awake(int to, std::size_t bytes) noexcept;
  /// Counts a finished operation of `source`: the end of this round acknowledges it, or an earlier reply does.
  void defer_ack(int source) noexcept;
  /// Sends all deferred acknowledgements before the end of the round, after a handler that has taken long.
  void acknowledge() noexcept;
  /// Reports a malformed message to its sender `source`; nothing else happens here. The sender's operations on this
  /// rank that the message may have been part of end with `transfer_failed`.
  void reject_malformed(int source, std::uint16_t kind, std::size_t bytes, malformed_reason why) noexcept;
  /// The deferred acknowledgements of `source`, which the reply that is sent to it now carries.
  [[nodiscard]] std::uint32_t take_pending_acks(int source) noexcept {
    return std::exchange(peer_of(source).pending_acks, 0);
  }
  /// Sets the function that gets immediates of writes for this user, without the user's bits.
  void set_immediate(immediate_user user, immediate_handler run, void* self) noexcept {
    immediates_[static_cast<std::size_t>(user)] = {run, self};
  }
  /// Adds a duty: work for other ranks beside handlers. It is called under the lock in every round while its user is
  /// `on_duty`, and once more before a sleep. It returns the amount of work done, and stays as long as the context.
  void add_duty(unsigned (*run)(void* self) noexcept, void* self) noexcept { duties_.add(run, self); }
  void on_duty(const void* self, bool yes) noexcept {
    RMA_ASSERT(duties_.index_of(self) < duties_.size());
    const std::uint32_t bit = std::uint32_t{1} << duties_.index_of(self);
    on_duty_ = yes ? on_duty_ | bit : on_duty_ & ~bit;
  }
  /// Called by a duty in each round: it wants to be called at this time even if nothing happens until then.
  void call_duty_at(std::int64_t time_ns) noexcept { duty_due_ns_ = std::min(duty_due_ns_, time_ns); }
  /// Adds a function that looks for effects of deaths and departures. It is called under the lock ten times a second
  /// during a wait, when all arrived messages are handled. It stays as long as the context.
  void add_news(void (*run)(void* self) noexcept, void* self) noexcept { news_.add(run, self); }
  /// Sets the function that advances synchronization requests: while there are some, the end of each round calls it,
  /// without the lock. It returns the number of requests that have ended. There is one user.
  void set_steps(unsigned (*run)(void* self) noexcept, void* self) noexcept { steps_ = {run, self}; }
  void has_steps(bool yes) noexcept { stepping_.store(yes, std::memory_order_relaxed); }
  /// Adds a function that is called under the lock when a wait is about to sleep.
  void add_before_sleep(void (*run)(void* self) noexcept, void* self) noexcept { before_sleep_.add(run, self); }
  void remove_before_sleep(const void* self) noexcept { before_sleep_.remove(self); }
  /// Adds a function that names the calls of the user's kind in which this rank is; it is called under the lock.
  void add_describer(std::string (*run)(void* self), void* self) noexcept { describers_.add(run, self); }
  /// A readable list of the calls in which this rank is. It may leave out calls of some of several threads.
  [[nodiscard]] std::string where() noexcept;
  /// The call in which this rank is, if it is not on a window; else null.
  [[nodiscard]] const char* call() const noexcept { return call_.load(std::memory_order_relaxed); }
  void set_call(const char* name) noexcept { call_.store(name, std::memory_order_relaxed); }
  /// Time after which a long wait is reported, see long_wait; 0: never.
  [[nodiscard]] std::int64_t stall_report_ns() const noexcept { return stall_report_ns_; }
  /// The order of posts on the bulk channel.
  [[nodiscard]] bulk_order& bulk() noexcept { return bulk_; }
  void count(counter c, std::uint64_t n = 1) noexcept { counters_[static_cast<std::size_t>(c)] += n; }
  [[nodiscard]] std::uint64_t value(counter c) const noexcept { return counters_[static_cast<std::size_t>(c)]; }
  /// Memory for queued messages: the most that was needed at once.
  [[nodiscard]] std::size_t unsent_bytes() const noexcept { return unsent_.reserved_bytes(); }

  // ---- progress ---------------------------------------------------------------------------------------------
  /// Makes one round: polls, handles messages, acknowledges, sends queued messages. Returns the number of events. For
  /// threads of the program: a yielding progress thread stands aside for a while.
  unsigned progress() noexcept {
    note_program();
    return make_progress();
  }
  /// Makes progress in some of its calls, for calls that wait for no rank but may be the only ones of a program's loop,
  /// while others wait for this rank's handlers. Most calls cost only a count.
  void poll_occasionally() noexcept {
    const std::uint32_t left = calls_to_look_.load(std::memory_order_relaxed);
    calls_to_look_.store(left - 1, std::memory_order_relaxed);
    if (left == 0) [[unlikely]]
      look_if_due();
  }
  /// Sets a function that waiting threads of the program call now and then: without the lock, one thread at a time.
  void set_wait_hook(std::function<void()> run) { wait_hook_ = std::move(run); }
  /// In between the program calls `progress` all the time, so that others may send what is to be handled at once.
  void begin_polling() noexcept {
    program_polls_.fetch_add(1, std::memory_order_relaxed);
    around_.inside(true);
  }
  void end_polling() noexcept {
    program_polls_.fetch_sub(1, std::memory_order_relaxed);
    stop_serving();
  }
  /// Looks for deaths if that has not been done for a while; waits do so themselves.
  void take_news() noexcept { gone_.look_around(around_.now_ns()); }

  /// For callers that hold the lock and have just posted: an adapter may answer before a wait is set up. Polls a few
  /// times, and returns true if `ready()`, which is called under the lock.
  template <class Ready>
  bool ready_soon(Ready&& ready) noexcept {
    note_program();
    for (unsigned i = 0; i < quick_looks_; ++i) {
      if (ready()) return true;
      look_at_adapter();
    }
    return ready();
  }

  /// Waits until everything that this rank has sent cannot be lost: the last action of a runtime. In good order it
  /// waits as long as a living receiver makes no progress, and a line reports that after a while; else 2 s at most.
  void drain(bool in_good_order) noexcept;

  /// The present time plus a duration, for wait_spec::deadline_ns.
  [[nodiscard]] std::int64_t after_ns(std::int64_t time_ns) const noexcept { return around_.now_ns() + time_ns; }
  /// Blocks until the condition of the argument holds; its callables run without the lock. `job_aborted` if the job is.
  status wait(const wait_spec& w) noexcept {
    const bool looks_first = w.woken_by == wakes::memory || w.woken_by == wakes::nobody;
    for (unsigned i = looks_first ? patience_.first_spins : 0; i > 0; --i) {
      if (w.until()) return status::done;
      spin_pause();
    }
    if (!looks_first && w.until.given() && w.until()) return status::done;
    return wait_slow(w);
  }

  /// Calls `post()` under the lock until there is room, and returns its last result. Releases the lock while it waits.
  /// `post` is copied only then, so that the variables that it refers to may stay in registers until a wait.
  template <class Post>
  [[gnu::always_inline]] status until_posted(std::unique_lock<small_lock>& guard, int peer_rank, Post post) noexcept {
    const status s = post();
    return s != status::retry_queue_full ? s : until_room(guard, peer_rank, post);
  }

  // ---- deaths, see gone_ranks -------------------------------------------------------------------------------
  /// True if the rank is dead or has left the job.
  [[nodiscard]] bool gone(int rank) noexcept { return gone_.gone(rank); }
  [[nodiscard]] bool dead(int rank) noexcept { return gone_.dead(rank); }
  [[nodiscard]] bool has_left(int rank) noexcept { return gone_.has_left(rank); }
  /// Number of deaths seen so far.
  [[nodiscard]] std::uint32_t deaths() const noexcept { return gone_.deaths(); }
  /// Called after a revocation: every wait checks whether its condition can still become true.
  void note_revocation() noexcept { gone_.note_revocation(); }
  void report_lost(int rank) noexcept { gone_.report_lost(rank); }
  [[nodiscard]] std::vector<int> dead_ranks() { return gone_.all_dead(); }
  /// The rank that caused the last peer_failed, for messages; -1 if there is none.
  [[nodiscard]] int last_failed() const noexcept { return gone_.last_failed(); }
  void set_last_failed(int rank) noexcept { gone_.set_last_failed(rank); }

  /// A value that the peer has put into the job's store before its last fence.
  /// If the job's server, in the process of rank 0, does not answer, the peer is lost to this rank.
  status look_up(int rank, std::string_view key, std::string& value) noexcept override {
    return gone_.look_up(rank, key, value);
  }
  /// A readable reason why calls that need `rank` fail: "world rank 2 is dead or has left the job".
  [[nodiscard]] std::string why_failed(int rank) { return gone_.why_failed(rank); }

  // ---- the progress thread (progress_thread.cpp) --------------------------------------------------------------
  /// Starts the thread if the settings ask for it, or (auto) if other nodes need this rank's processor. `for_window`: a
  /// window needs it whatever the fabric's capabilities are. Called by one thread at a time, in collective calls.
  void serve_beside(bool for_window = false);
  /// True if it runs. All ranks decide alike.
  [[nodiscard]] bool serves_beside() const noexcept { return serves_beside_; }
  void stop_progress_thread() noexcept;

  void on_completion(std::uint64_t token, status result, std::uint64_t bytes) noexcept override;
  void on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept override;
  void on_immediate(int source, std::uint32_t immediate) noexcept override;
  void on_broken(int rank) noexcept override;

 private:
  template <class Handler>
  struct registered {
    Handler run = nullptr;
    void* self = nullptr;
  };

  template <class Post>
  [[gnu::noinline]] status until_room(std::unique_lock<small_lock>& guard, int peer_rank, Post post) noexcept {
    guard.unlock();
    status s = status::retry_queue_full;
    const auto posted = [&]() noexcept {
      const std::lock_guard relock(lock_);
      s = post();
      return s != status::retry_queue_full;
    };
    const status waited = wait({.until = posted, .peer = peer_rank});
    guard.lock();
    return waited == status::done ? s : waited;
  }
  unsigned make_progress() noexcept;
  /// Notes that the program communicates. Threads may lose counts: only a change of the number matters.
  void note_program() noexcept {
    if (serves_beside_)
      program_rounds_.store(program_rounds_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void look_at_adapter() noexcept;
  bool is_behind_held(int source, std::uint16_t kind, std::span<const std::byte> payload);
  void handle(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept;
  bool may_be_asked() noexcept;
  void run_wait_hook() noexcept;
  void tell_news() noexcept;
  void look_if_due() noexcept;
  status wait_slow(const wait_spec& w) noexcept;
  /// The deaths, departures and revocations for which a wait has checked whether it can continue.
  struct judged_news {
    std::uint32_t seen = ~std::uint32_t{0};
    std::int64_t goodbye_until_ns = 0;
  };
  bool ends_by_news(const wait_spec& w, const wait_question<bool>& over, judged_news& at, status& result) noexcept;
  void serve() noexcept;
  void stand_aside() noexcept;
  [[nodiscard]] bool has_far_ranks() const noexcept;
  void program_leaves() noexcept;
  void count_target_wait(std::int64_t begin_ns) noexcept;
  [[gnu::cold]] void report_silence(int peer_rank, bool of_lock, std::int64_t silent_ns) noexcept;
  bool goodbye_deadline_passed(std::int64_t& until_ns) noexcept;
  bool sleep(const wait_question<bool>& over, std::int64_t until_ns, bool serves) noexcept;
  void wake_others() noexcept;
  void take_steps() noexcept;
  void adapt(std::atomic<std::int64_t>& spin_ns, std::int64_t slept_ns, std::int64_t most_ns) noexcept;
  void stop_serving() noexcept;
  peer& find_peer(int rank) noexcept;
  bool is_expected() noexcept;
  bool anything_new() noexcept;
  std::size_t waiting_messages() noexcept;
  unsigned do_duties() noexcept;
  static void on_malformed_notice(void* self, int source, std::span<const std::byte> payload) noexcept;
  void send_waiting() noexcept;
  void tell_undelivered(std::int64_t waited_s) noexcept;

  const settings& settings_;
  boot::client& boot_;
  /// True if a peer has reserved a delivery that this rank has not handled.
  [[nodiscard]] bool owes_delivery() noexcept {
    fabric::reservations* const bound = node_.as_reservations();
    return bound != nullptr && bound->owes_delivery();
  }

  fabric::network& node_;
  fabric::network* wide_;
  fabric::transfer_costs measured_costs_{};  ///< measured costs of `wide_`
  bool costs_are_measured_ = false;
  platform& around_;
  bool near_;  ///< ranks of the node are reached through `node_`, although `wide_` could reach them
  bool accounts_;
  trace_file* trace_ = nullptr;
  thread_level threads_;
  bool shared_;                         ///< two threads may be in the library at the same time
  pthread_t maker_ = ::pthread_self();  ///< the thread that made the runtime
  small_lock lock_;
  std::array<registered<handler>, static_cast<std::size_t>(message::count_)> handlers_{};
  std::array<registered<immediate_handler>, immediate_users> immediates_{};
  std::unordered_map<int, std::unique_ptr<peer>> peers_;
  int last_rank_ = -1;  ///< the peer of the last lookup
  peer* last_peer_ = nullptr;
  std::vector<int> ack_sources_;  ///< peers with pending_acks != 0
  std::vector<int> waiting_;      ///< peers with queued messages
  std::size_t held_peers_ = 0;    ///< peers whose messages are held
  message_pool unsent_;           ///< queued and held messages
  std::array<std::uint64_t, static_cast<std::size_t>(counter::count_)> counters_{};
  patience patience_;
  unsigned quick_looks_ = 0;                     ///< polls of ready_soon
  std::atomic<std::uint32_t> asleep_ = 0;        ///< threads of this rank that sleep for a condition of their own
  std::atomic<std::int64_t> spin_ns_;            ///< spin time of the program's waits; adapts to their duration
  std::atomic<std::int64_t> spin_of_thread_ns_;  ///< spin time of the progress thread's waits, which are longer
  hook_list<unsigned(void*) noexcept> duties_;
  std::uint32_t on_duty_ = 0;  ///< a bit for each duty
  std::int64_t duty_due_ns_ = std::numeric_limits<std::int64_t>::max();
  hook_list<void(void*) noexcept, 2> news_;
  std::uint32_t news_told_ = 0;
  struct {
    unsigned (*run)(void*) noexcept = nullptr;
    void* self = nullptr;
  } steps_;
  std::atomic<bool> stepping_ = false;
  bool drained_ = false;
  std::function<void()> wait_hook_;
  std::atomic<bool> in_wait_hook_ = false;
  hook_list<void(void*) noexcept, 4> before_sleep_;
  hook_list<std::string(void*), 4> describers_;
  std::atomic<const char*> call_ = nullptr;
  std::int64_t stall_report_ns_;
  gone_ranks gone_;
  std::atomic<std::uint32_t> calls_to_look_ = 0;  ///< calls of poll_occasionally until it reads the clock
  std::uint32_t calls_per_look_ = 1;              ///< this and the next under the progress lock
  std::int64_t looked_for_others_ns_ = 0;
  word32 stopping_{};
  bulk_order bulk_{*this};
  std::unique_ptr<helper_thread> progress_thread_;
  bool serves_beside_ = false;
  bool yields_to_program_ = false;                 ///< the progress thread stands aside while the program waits
  std::atomic<std::uint32_t> program_waits_ = 0;   ///< threads of the program in waits, counted where `shared_`
  std::atomic<std::uint32_t> program_rounds_ = 0;  ///< see note_program
  word32 aside_{};                                 ///< state of stand_aside
  std::atomic<bool> has_warned_ = false;           ///< about a target that let a call wait
  std::atomic<std::uint32_t> program_polls_ = 0;   ///< threads between begin_polling and end_polling
};

}  // namespace rma::detail
