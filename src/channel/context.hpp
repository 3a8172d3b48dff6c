// SPDX-License-Identifier: Apache-2.0
/// \file
/// The progress context of a runtime: one lock, one place that polls the fabric, runs handlers and waits.
///
/// Every wait of the library is `wait_until`: spin a little, then drive the fabric, then sleep for all
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
  collect = fabric::first_kind,  ///< a piece of a small collective
  notify,                        ///< raise a counter of a window
  operation,                     ///< put, get, accumulate, ... run by the target's handler
  reply,                         ///< data that come back
  acknowledge,                   ///< so many operations are done
  share,                         ///< do your half of a large copy
  refusal,                       ///< it could not be done
  lock,                          ///< between a rank that wants a lock and the lock manager of its target
  malformed_notice,              ///< a message made no sense
  fence,                         ///< how far a rank is with a fence
  range,                         ///< a lock of bytes of a window
  barrier,                       ///< a rank has come to a round of a barrier
  barrier_word,                  ///< whether it may say so by writing a word
  revoke,                        ///< nobody is to wait on a team or window any more
  dropped,                       ///< members have dropped a window or a team, or all have
  eager,                         ///< point-to-point: an envelope with its data
  announce,                      ///< an envelope whose data wait for a receive
  rendezvous,                    ///< what the two sides of one say to each other
  request,                       ///< a receive says where the data of an announced message go
  ask,                           ///< the same, of a message that has not been announced
  stream,                        ///< data that were asked for
  credit,                        ///< memory for what is not expected has been given back
  bulk,                          ///< a transfer over the fabric's bulk channel
  batch,                         ///< several operations for the target's handler, and the end of their epoch
  collective_failed,             ///< by a mistake of a member that the others cannot see
  count_
};

/// Why a message is refused.
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
  barrier_words,  ///< rounds of barriers that were written into a word, not told by a message
  deaths,
  eager_messages,        ///< point-to-point: with the data
  announced_messages,    ///< without
  unexpected_messages,   ///< that came before their receives
  rendezvous_messages,   ///< by which the two sides of one find each other and end, announcements included
  rendezvous_transfers,  ///< reads and writes for them
  ring_messages,         ///< eager ones that were written into a ring
  layout_requests,       ///< writes, reads and sends of lists that operations with layouts were made of
  layout_bytes,          ///< of descriptions of layouts in messages
  layouts_asked,         ///< descriptions that were asked for, since they were not in the cache any more
  layout_plans,          ///< decisions how two layouts are cut into lists, which had not been made before
  target_wait_ns,        ///< time that calls waited for an operation's target, if they did not find its answer at once
  count_
};

struct sent_operations;

class context final : public fabric::sink, public fabric::directory {
 public:
  using handler = void (*)(void* self, int source, std::span<const std::byte> payload) noexcept;
  using immediate_handler = void (*)(void* self, int source, std::uint32_t value) noexcept;

  /// Per-peer state, made when the peer is first used.
  struct peer {
    fabric::network* network = nullptr;     ///< that leads there
    std::uint64_t operations_sent = 0;      ///< handler operations, counted by message
    word64 operations_done{};               ///< of these, acknowledged
    std::uint32_t pending_acks = 0;         ///< its operations that are done here and not acknowledged
    sent_operations* sent = nullptr;        ///< the engine's, of those that are not acknowledged; null until the first
    word32 malformed_notices{};             ///< messages of ours that made no sense to it
    std::uint32_t missed_reservations = 0;  ///< messages that were not promised because it slept
    message_pool::queue waiting;            ///< messages that found no room
    [[nodiscard]] std::size_t waiting_count() const noexcept { return waiting.size(); }
  };

  /// `node` reaches the ranks of this node, `wide` (may be null) every rank, this one included.
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
  /// The thread level lets one thread call.
  [[nodiscard]] bool is_single_threaded() const noexcept {
    return threads_ == thread_level::single || threads_ == thread_level::funneled;
  }
  /// The fabric that reaches the ranks whose memory is used directly.
  [[nodiscard]] fabric::network& node() const noexcept { return node_; }
  /// The fabric between nodes; null if there is none.
  [[nodiscard]] fabric::network* wide() const noexcept { return wide_; }
  /// The one that leads to this rank.
  [[nodiscard]] fabric::network& network_of(int rank) const noexcept {
    return wide_ == nullptr || (near_ && node_.as_facts().reaches(rank)) ? node_ : *wide_;
  }
  /// Transfers to that rank are expected to take so long: measured (RMA_TUNING), or as its network says of itself.
  [[nodiscard]] const fabric::transfer_costs& costs_of(int rank) const noexcept {
    const fabric::network& network = network_of(rank);
    return costs_are_measured_ && &network == wide_ ? measured_costs_ : network.caps().costs;
  }
  void use_costs(const fabric::transfer_costs& measured) noexcept {
    measured_costs_ = measured;
    costs_are_measured_ = true;
  }
  /// Those of the fabric between nodes; null if they were not measured.
  [[nodiscard]] const fabric::transfer_costs* measured_costs() const noexcept {
    return costs_are_measured_ ? &measured_costs_ : nullptr;
  }
  [[nodiscard]] platform& around() const noexcept { return around_; }
  [[nodiscard]] bool keeps_accounts() const noexcept { return accounts_; }
  /// Calls on something else than a window are events of this trace; null: nothing is traced.
  void trace_to(trace_file* file) noexcept { trace_ = file; }
  [[nodiscard]] trace_file* trace() const noexcept { return trace_; }
  /// A wait for memory looks at its condition at least so often before it sleeps.
  [[nodiscard]] unsigned looks_before_sleep() const noexcept {
    return std::max(patience_.first_spins, patience_.looks_before_sleep);
  }
  /// Waits spin before they sleep.
  [[nodiscard]] bool waits_spin() const noexcept { return patience_.spin_ns != 0; }
  [[nodiscard]] small_lock& lock() noexcept { return lock_; }
  /// Two threads of this rank may be inside at the same time.
  [[nodiscard]] bool several_threads() const noexcept { return shared_; }
  /// For assertions: the progress lock is held, or only one thread can be inside.
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
  /// Runs the handler of a message that came within another one.
  void run_handler(int source, message kind, std::span<const std::byte> payload) noexcept {
    const registered<handler>& of = handlers_[static_cast<std::size_t>(kind)];
    if (of.run != nullptr) of.run(of.self, source, payload);
  }
  /// Sends or queues. Never fails; nothing is sent to the dead.
  void send(int to, message kind, std::span<const std::byte> header, std::span<const std::byte> payload) noexcept;
  /// Sends it at once, or says that there is no room now, and nothing happened.
  [[nodiscard]] bool try_send(int to, message kind, std::span<const std::byte> header,
                              std::span<const std::byte> payload) noexcept;
  template <class Header>
  void send_record(int to, message kind, const Header& header, std::span<const std::byte> payload = {}) noexcept {
    send(to, kind, {reinterpret_cast<const std::byte*>(&header), sizeof header}, payload);
  }
  [[nodiscard]] peer& peer_of(int rank) noexcept { return rank == last_rank_ ? *last_peer_ : find_peer(rank); }
  /// The present round has handled all that had come when it began.
  [[nodiscard]] bool drained() const noexcept { return drained_; }
  /// Promises a message of at most `bytes`, see fabric::reservations. A peer that sleeps through a series of these is
  /// woken: messages are cheaper than what the caller will do instead.
  [[nodiscard]] fabric::delivery_guarantee reserve_delivery(int to, std::size_t bytes) noexcept;
  /// The same for a message worth waking a sleeper for: waits until it is awake, but not for long.
  [[nodiscard]] fabric::delivery_guarantee reserve_delivery_awake(int to, std::size_t bytes) noexcept;
  /// The handler of an operation is done: the origin gets to know at the end of this round, or by an answer before.
  void defer_ack(int source) noexcept;
  /// Tells all origins what is owed to them: before the end of the round, for a handler that has taken long.
  void acknowledge() noexcept;
  /// A message of `source` is not what it should be: its sender is told, nothing else happens. Operations of the sender
  /// towards this rank that it may have been part of end with `transfer_failed`.
  void reject_malformed(int source, std::uint16_t kind, std::size_t bytes, malformed_reason why) noexcept;
  /// The acknowledgements that are owed to `source` go with the answer that is sent to it now.
  [[nodiscard]] std::uint32_t take_pending_acks(int source) noexcept {
    return std::exchange(peer_of(source).pending_acks, 0);
  }
  /// Called when a write has arrived whose immediate is for this user; gets the value without the user's bits.
  void set_immediate(immediate_user user, immediate_handler run, void* self) noexcept {
    immediates_[static_cast<std::size_t>(user)] = {run, self};
  }
  /// A duty does what others need beside handlers, while the user is `on_duty`: called under the lock in every
  /// round, and once more before a sleep. Returns how much was done. Stays until the context goes.
  void add_duty(unsigned (*run)(void* self) noexcept, void* self) noexcept { duties_.add(run, self); }
  void on_duty(const void* self, bool yes) noexcept {
    RMA_ASSERT(duties_.index_of(self) < duties_.size());
    const std::uint32_t bit = std::uint32_t{1} << duties_.index_of(self);
    on_duty_ = yes ? on_duty_ | bit : on_duty_ & ~bit;
  }
  /// A duty wants to be called at this time, though nothing happens until then. Said again in each round.
  void call_duty_at(std::int64_t time_ns) noexcept { duty_due_ns_ = std::min(duty_due_ns_, time_ns); }
  /// Called under the lock when somebody may have died or left: ten times a second while a wait lasts, when all that
  /// has come is handled. Stays until the context goes.
  void add_news(void (*run)(void* self) noexcept, void* self) noexcept { news_.add(run, self); }
  /// Synchronizations that go on behind requests: while there are some, `run` is called at the end of each round,
  /// without the lock; says how many came to their end. One user.
  void set_steps(unsigned (*run)(void* self) noexcept, void* self) noexcept { steps_ = {run, self}; }
  void has_steps(bool yes) noexcept { stepping_.store(yes, std::memory_order_relaxed); }
  /// Called under the lock when a wait is about to sleep.
  void add_before_sleep(void (*run)(void* self) noexcept, void* self) noexcept { before_sleep_.add(run, self); }
  void remove_before_sleep(const void* self) noexcept { before_sleep_.remove(self); }
  /// Says in which calls of the user's kind this rank is; called under the lock. Nothing: in none.
  void add_describer(std::string (*run)(void* self), void* self) noexcept { describers_.add(run, self); }
  /// In which calls it is, for people. What several threads do at once is told in part.
  [[nodiscard]] std::string where() noexcept;
  /// The call on something else than a window that this rank is in, or null.
  [[nodiscard]] const char* call() const noexcept { return call_.load(std::memory_order_relaxed); }
  void set_call(const char* name) noexcept { call_.store(name, std::memory_order_relaxed); }
  /// See long_wait; 0: never.
  [[nodiscard]] std::int64_t stall_report_ns() const noexcept { return stall_report_ns_; }
  /// Whose turn it is to post on the bulk channel.
  [[nodiscard]] bulk_order& bulk() noexcept { return bulk_; }
  void count(counter c, std::uint64_t n = 1) noexcept { counters_[static_cast<std::size_t>(c)] += n; }
  [[nodiscard]] std::uint64_t value(counter c) const noexcept { return counters_[static_cast<std::size_t>(c)]; }
  /// Memory for messages that find no room: as much as has been needed at once.
  [[nodiscard]] std::size_t unsent_bytes() const noexcept { return unsent_.reserved_bytes(); }

  // ---- progress ---------------------------------------------------------------------------------------------
  /// One round: poll, handle, acknowledge, send what waited. Returns how much happened. For threads of the program: a
  /// progress thread that yields stands aside for a while.
  unsigned progress() noexcept {
    note_program();
    return make_progress();
  }
  /// Progress now and then, for calls that need nobody and may be all that a program makes, in a loop: others may wait
  /// for this rank's handler. Costs a count in most of them.
  void poll_occasionally() noexcept {
    const std::uint32_t left = calls_to_look_.load(std::memory_order_relaxed);
    calls_to_look_.store(left - 1, std::memory_order_relaxed);
    if (left == 0) [[unlikely]]
      look_if_due();
  }
  /// Each thread of the program calls `run` now and then while it waits: without the lock, one thread at a time.
  void set_wait_hook(std::function<void()> run) { wait_hook_ = std::move(run); }
  /// Looks for deaths, every now and then; waits do it by themselves.
  void take_news() noexcept { gone_.look_around(around_.now_ns()); }

  /// For who holds the lock and has just posted: an adapter may answer before a wait is even set up. Looks there a few
  /// times; true if `ready()`, which is called under the lock.
  template <class Ready>
  bool ready_soon(Ready&& ready) noexcept {
    note_program();
    for (unsigned i = 0; i < quick_looks_; ++i) {
      if (ready()) return true;
      look_at_adapter();
    }
    return ready();
  }

  /// Waits until what this rank has sent is on its way for certain: the last thing a runtime does. In good order that
  /// takes as long as a living receiver does not look, and a line says so after a while; else 2 s at most.
  void drain(bool in_good_order) noexcept;

  /// The time that is so far from now, for wait_spec::deadline_ns.
  [[nodiscard]] std::int64_t after_ns(std::int64_t time_ns) const noexcept { return around_.now_ns() + time_ns; }
  /// Blocks until what the request says; its callables run without the lock. `job_aborted` if the job is.
  status wait(const wait_spec& w) noexcept {
    const bool looks_first = w.woken_by == wakes::memory || w.woken_by == wakes::nobody;
    for (unsigned i = looks_first ? patience_.first_spins : 0; i > 0; --i) {
      if (w.until()) return status::done;
      spin_pause();
    }
    if (!looks_first && w.until.given() && w.until()) return status::done;
    return wait_slow(w);
  }

  /// Calls `post()` under the lock, again and again while there is no room; what it said in the end. Gives the lock up
  /// while it waits. `post` is copied then, so that what it refers to may stay in registers until it has to wait.
  template <class Post>
  [[gnu::always_inline]] status until_posted(std::unique_lock<small_lock>& guard, int peer_rank, Post post) noexcept {
    const status s = post();
    return s != status::retry_queue_full ? s : until_room(guard, peer_rank, post);
  }

  // ---- deaths, see gone_ranks -------------------------------------------------------------------------------
  /// Dead, or has left the job.
  [[nodiscard]] bool gone(int rank) noexcept { return gone_.gone(rank); }
  [[nodiscard]] bool dead(int rank) noexcept { return gone_.dead(rank); }
  [[nodiscard]] bool has_left(int rank) noexcept { return gone_.has_left(rank); }
  /// Number of deaths seen so far.
  [[nodiscard]] std::uint32_t deaths() const noexcept { return gone_.deaths(); }
  /// Something was revoked: every wait asks whether it can go on.
  void note_revocation() noexcept { gone_.note_revocation(); }
  void report_lost(int rank) noexcept { gone_.report_lost(rank); }
  [[nodiscard]] std::vector<int> dead_ranks() { return gone_.all_dead(); }
  /// The rank that the last peer_failed of this thread's wait was about, for messages. -1 if none.
  [[nodiscard]] int last_failed() const noexcept { return gone_.last_failed(); }
  void set_last_failed(int rank) noexcept { gone_.set_last_failed(rank); }

  /// A value that a rank has put into the job's store before its last fence.
  /// Without an answer from the process of rank 0, where the job's server is, the peer is lost to this rank.
  status look_up(int rank, std::string_view key, std::string& value) noexcept override {
    return gone_.look_up(rank, key, value);
  }
  /// Why calls that need `rank` fail, for people: "world rank 2 is dead or has left the job".
  [[nodiscard]] std::string why_failed(int rank) { return gone_.why_failed(rank); }

  // ---- the progress thread (progress_thread.cpp) --------------------------------------------------------------
  /// Starts it where the settings want one, or (auto) where other nodes need this rank's processor. `for_window`: a
  /// window needs it whatever the fabric does by itself. Called by one thread at a time, in collective calls.
  void serve_beside(bool for_window = false);
  /// It runs. All ranks decide alike.
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
      const std::lock_guard again(lock_);
      s = post();
      return s != status::retry_queue_full;
    };
    const status waited = wait({.until = posted, .peer = peer_rank});
    guard.lock();
    return waited == status::done ? s : waited;
  }
  unsigned make_progress() noexcept;
  /// The program communicates. Threads may count over each other: it is only looked whether the number changes.
  void note_program() noexcept {
    if (serves_beside_)
      program_rounds_.store(program_rounds_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void look_at_adapter() noexcept;
  void run_wait_hook() noexcept;
  void tell_news() noexcept;
  void look_if_due() noexcept;
  status wait_slow(const wait_spec& w) noexcept;
  /// The news of deaths, departures and revocations of which a wait has been asked whether it goes on.
  struct judged_news {
    std::uint32_t seen = ~std::uint32_t{0};
    std::int64_t goodbye_until_ns = 0;
  };
  bool ends_by_news(const wait_spec& w, const wait_question<bool>& over, judged_news& at, status& result) noexcept;
  void serve() noexcept;
  void stand_aside() noexcept;
  [[nodiscard]] bool has_far_ranks() const noexcept;
  void program_leaves() noexcept;
  void note_target_wait(int peer_rank, std::int64_t begin_ns, std::int64_t silent_since_ns) noexcept;
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
  /// This rank has been promised a message that it has not handled.
  [[nodiscard]] bool owes_delivery() noexcept {
    fabric::reservations* const bound = node_.as_reservations();
    return bound != nullptr && bound->owes_delivery();
  }

  fabric::network& node_;
  fabric::network* wide_;
  fabric::transfer_costs measured_costs_{};  ///< of `wide_`
  bool costs_are_measured_ = false;
  platform& around_;
  bool near_;  ///< ranks of the node are reached through `node_` although `wide_` would reach them, too
  bool accounts_;
  trace_file* trace_ = nullptr;
  thread_level threads_;
  bool shared_;                         ///< two threads may be inside at the same time
  pthread_t maker_ = ::pthread_self();  ///< the thread that made the runtime
  small_lock lock_;
  std::array<registered<handler>, static_cast<std::size_t>(message::count_)> handlers_{};
  std::array<registered<immediate_handler>, immediate_users> immediates_{};
  std::unordered_map<int, std::unique_ptr<peer>> peers_;
  int last_rank_ = -1;  ///< the peer that was asked for last
  peer* last_peer_ = nullptr;
  std::vector<int> ack_sources_;  ///< peers with owed != 0
  std::vector<int> waiting_;      ///< peers with queued messages
  message_pool unsent_;           ///< these messages
  std::array<std::uint64_t, static_cast<std::size_t>(counter::count_)> counters_{};
  patience patience_;
  unsigned quick_looks_ = 0;                     ///< of ready_soon
  std::atomic<std::uint32_t> asleep_ = 0;        ///< threads of this rank that sleep for something of their own
  std::atomic<std::int64_t> spin_ns_;            ///< of the program's waits: adapts to how long they are
  std::atomic<std::int64_t> spin_of_thread_ns_;  ///< the same of the progress thread's, which are longer
  hook_list<unsigned(void*) noexcept> duties_;
  std::uint32_t on_duty_ = 0;  ///< a bit for each of them
  std::int64_t duty_due_ns_ = std::numeric_limits<std::int64_t>::max();
  hook_list<void(void*) noexcept> news_;
  std::uint32_t news_told_ = 0;
  struct {
    unsigned (*run)(void*) noexcept = nullptr;
    void* self = nullptr;
  } steps_;
  std::atomic<bool> stepping_ = false;
  bool drained_ = false;
  std::function<void()> wait_hook_;
  std::atomic<bool> in_wait_hook_ = false;
  hook_list<void(void*) noexcept> before_sleep_;
  hook_list<std::string(void*)> describers_;
  std::atomic<const char*> call_ = nullptr;
  std::int64_t stall_report_ns_;
  gone_ranks gone_;
  std::atomic<std::uint32_t> calls_to_look_ = 0;  ///< of poll_occasionally, until the clock is asked
  std::uint32_t calls_per_look_ = 1;              ///< these two under the progress lock
  std::int64_t looked_for_others_ns_ = 0;
  word32 stopping_{};
  bulk_order bulk_{*this};
  std::unique_ptr<helper_thread> progress_thread_;
  bool serves_beside_ = false;
  bool yields_to_program_ = false;                 ///< the thread stands aside while the program waits in the library
  std::atomic<std::uint32_t> program_waits_ = 0;   ///< threads of the program in waits, counted where `shared_`
  std::atomic<std::uint32_t> program_rounds_ = 0;  ///< see note_program
  word32 aside_{};                                 ///< how the progress thread stands aside, see stand_aside
  std::atomic<bool> has_warned_ = false;           ///< of a target that let a call wait
};

}  // namespace rma::detail
