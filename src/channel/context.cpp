// SPDX-License-Identifier: Apache-2.0
#include "channel/context.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

constexpr unsigned events_per_round = 64;
constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t look_around_every_ns = 100'000'000;  // deaths are news within 2 s
constexpr std::int64_t spin_stretch = 100;  // a wait on a network may spin so many times longer than one on memory
constexpr std::int64_t spin_stretch_of_thread = 16;  // the program computes meanwhile, maybe on the same core
constexpr unsigned quick_looks = 64;                 // some microseconds
constexpr unsigned quick_looks_for_adapter = 4;
constexpr unsigned looks_for_adapter = 2;  // where cores are short, yields longer than an answer takes only cost them
constexpr std::int64_t farewell_ns = 500'000'000;  // what a rank that has left takes to say goodbye, at most
constexpr std::int64_t pause_yielded_ns = 20'000;  // a longer pause is slept, or waiting for a lock would cost a core
constexpr std::int64_t doze_least_ns = 20'000;     // of who waits for what nobody rings for
constexpr std::int64_t doze_most_ns = 4'000'000;
constexpr std::int64_t dozes_of_a_wait = 8;
constexpr std::int64_t wait_hook_every_ns = 1'000'000;  // at least, also in a wait that sleeps
constexpr unsigned looks_before_nap = 64;               // of who only waits for room
constexpr std::int64_t nap_ns = 1'000'000;
constexpr std::int64_t wake_most_ns = 100'000;  // usually a quarter
constexpr std::uint32_t missed_per_wake = 8;    // a wake costs as much as some system calls that copy

std::int64_t doze_ns(std::int64_t waited_ns, bool hooked) noexcept {
  return std::clamp(waited_ns / dozes_of_a_wait, doze_least_ns, hooked ? wait_hook_every_ns : doze_most_ns);
}

thread_level level_of(const settings& s) noexcept {
  for (const thread_level each : {thread_level::single, thread_level::funneled, thread_level::multiple}) {
    if (s.is(knob::threads, name_of(each))) return each;
  }
  return thread_level::serialized;
}

}  // namespace

context::context(const settings& s, boot::client& boot, fabric::network& node, platform& around, fabric::network* wide)
    : settings_(s),
      boot_(boot),
      node_(node),
      wide_(wide),
      around_(around),
      near_(s.on(knob::intranode)),
      accounts_(around.keeps_accounts()),
      threads_(level_of(s)),
      shared_(threads_ == thread_level::multiple),
      patience_(around.waits(static_cast<std::int64_t>(s.number(knob::spin_us)) * 1000)),
      spin_ns_(patience_.spin_ns),
      spin_of_thread_ns_(patience_.spin_ns),
      stall_report_ns_(static_cast<std::int64_t>(s.number(knob::stall_report_s)) * 1'000'000'000) {
  set_handler(message::malformed_notice, &context::on_malformed_notice, this);
  if (wide_ == nullptr) return;
  const int events = wide_->as_liveness().event_fd();
  if (events < 0) return;
  around_.watch(events);
  quick_looks_ = patience_.spin_ns != 0 ? quick_looks : quick_looks_for_adapter;
  patience_.looks_before_sleep = std::min(patience_.looks_before_sleep, looks_for_adapter);
}

context::~context() { stop_progress_thread(); }

void context::send(int to, message kind, std::span<const std::byte> header,
                   std::span<const std::byte> payload) noexcept {
  peer& p = peer_of(to);
  count(counter::messages_sent);
  if (accounts_) [[unlikely]]
    around_.charge(cost_kind::send, header.size() + payload.size());
  if (p.waiting_count() == 0) {
    if (p.network->send(to, static_cast<std::uint16_t>(kind), header, payload) == status::done) return;
    waiting_.push_back(to);
  }
  count(counter::sends_queued);
  p.waiting.push_back(unsent_.take(static_cast<std::uint16_t>(kind), header, payload));
}

bool context::try_send(int to, message kind, std::span<const std::byte> header,
                       std::span<const std::byte> payload) noexcept {
  peer& p = peer_of(to);
  if (p.waiting_count() != 0) return false;  // these come first
  if (p.network->send(to, static_cast<std::uint16_t>(kind), header, payload) != status::done) return false;
  count(counter::messages_sent);
  if (accounts_) [[unlikely]]
    around_.charge(cost_kind::send, header.size() + payload.size());
  return true;
}

// What the fabric does not take any more for a peer that is gone is dropped.
void context::send_waiting() noexcept {
  std::erase_if(waiting_, [&](int rank) {
    peer& p = peer_of(rank);
    while (!p.waiting.empty()) {
      message_pool::record& first = p.waiting.front();
      if (p.network->send(rank, first.kind(), first.bytes(), {}) != status::done && !gone(rank)) return false;
      p.waiting.pop_front();
      unsent_.give_back(first);
    }
    return true;
  });
}

context::peer& context::find_peer(int rank) noexcept {
  auto& p = peers_[rank];
  if (p == nullptr) {
    p = std::make_unique<peer>();
    p->network = &network_of(rank);
  }
  last_rank_ = rank;
  last_peer_ = p.get();
  return *p;
}

namespace {

fabric::delivery_guarantee reserve_by(const fabric::network& network, int to, std::size_t bytes) noexcept {
  fabric::reservations* const bound = network.as_reservations();
  return bound == nullptr ? fabric::delivery_guarantee::none : bound->reserve_delivery(to, bytes);
}

}  // namespace

fabric::delivery_guarantee context::reserve_delivery(int to, std::size_t bytes) noexcept {
  peer& p = peer_of(to);
  if (p.waiting_count() != 0) return fabric::delivery_guarantee::no_room;  // these come first
  const fabric::delivery_guarantee found = reserve_by(*p.network, to, bytes);
  if (found == fabric::delivery_guarantee::asleep && patience_.spin_ns != 0 &&
      ++p.missed_reservations % missed_per_wake == 0) {
    full_fence();
    around_.ring(to);
  }
  return found;
}

// It spins for a while after it has woken up. Who rings, and then does something long instead of sending, finds it
// asleep again the next time.
fabric::delivery_guarantee context::reserve_delivery_awake(int to, std::size_t bytes) noexcept {
  fabric::delivery_guarantee found = reserve_delivery(to, bytes);
  if (found != fabric::delivery_guarantee::asleep || patience_.spin_ns == 0) return found;
  full_fence();
  around_.ring(to);
  const std::int64_t until_ns = around_.now_ns() + wake_most_ns;
  do {
    spin_pause();
    found = reserve_by(*peer_of(to).network, to, bytes);
  } while (found == fabric::delivery_guarantee::asleep && around_.now_ns() < until_ns);
  return found;
}

void context::defer_ack(int source) noexcept {
  if (peer_of(source).pending_acks++ == 0) ack_sources_.push_back(source);
}

// What finds no room stays owed, and grows.
void context::acknowledge() noexcept {
  std::erase_if(ack_sources_, [&](int rank) {
    peer& p = peer_of(rank);
    if (p.pending_acks == 0) return true;  // paid with an answer
    const auto kind = static_cast<std::uint16_t>(message::acknowledge);
    const auto bytes = std::as_bytes(std::span(&p.pending_acks, 1));
    if (p.waiting_count() != 0 || p.network->send(rank, kind, bytes, {}) != status::done) return gone(rank);
    count(counter::messages_sent);
    p.pending_acks = 0;
    return true;
  });
}

unsigned context::make_progress() noexcept {
  std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard) return 0;  // somebody else is at it
  unsigned found = node_.poll(*this, events_per_round);
  if (wide_ != nullptr) found += wide_->poll(*this, events_per_round);
  drained_ = found < events_per_round;
  if (on_duty_ != 0) found += do_duties();
  if (!ack_sources_.empty()) acknowledge();
  if (!waiting_.empty()) send_waiting();
  if (drained_ && news() != news_told_) [[unlikely]]
    tell_news();
  if (found != 0 && shared_) wake_others();
  if (accounts_) [[unlikely]] {
    guard.unlock();
    around_.charge(cost_kind::poll, found);
    around_.settle();
  }
  if (stepping_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (guard.owns_lock()) guard.unlock();
    take_steps();
  }
  return found;
}

void context::tell_news() noexcept {
  news_told_ = news();
  for (const auto& each : news_) each.run(each.self);
  wake_others();
}

// Another thread may sleep for the end of one of them.
void context::take_steps() noexcept {
  if (steps_.run(steps_.self) != 0) wake_others();
}

// The clock costs more than most of these calls, and a round of progress between nodes more than twenty of them. Where
// calls are rare the clock is asked in each.
void context::look_if_due() noexcept {
  constexpr std::int64_t stretch_ns = 20'000;
  constexpr std::uint32_t calls_max = 16;
  {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return calls_to_look_.store(calls_max, std::memory_order_relaxed);  // somebody is at it
    const std::int64_t now_ns = around_.now_ns();
    const std::int64_t passed_ns = now_ns - looked_for_others_ns_;
    if (passed_ns < stretch_ns) {
      calls_per_look_ = std::min(2 * calls_per_look_, calls_max);
    } else {
      looked_for_others_ns_ = now_ns;
      if (passed_ns > 2 * stretch_ns) calls_per_look_ = std::max(calls_per_look_ / 2, std::uint32_t{1});
    }
    calls_to_look_.store(calls_per_look_ - 1, std::memory_order_relaxed);
    if (passed_ns < stretch_ns) return;
  }
  (void)progress();
}

// What one thread has taken in may be what another one sleeps for, whose descriptors then have nothing to tell any
// more.
void context::wake_others() noexcept {
  if (!shared_) return;
  full_fence();
  if (asleep_.load(std::memory_order_relaxed) != 0) around_.ring(rank());
}

// The function may wait here itself: it is not called again inside.
void context::run_wait_hook() noexcept {
  if (in_wait_hook_.exchange(true, std::memory_order_acquire)) return;
  wait_hook_();
  in_wait_hook_.store(false, std::memory_order_release);
}

void context::look_at_adapter() noexcept {
  if (wide_->poll(*this, events_per_round) != 0 && shared_) wake_others();
  if (!ack_sources_.empty()) acknowledge();
  if (!waiting_.empty()) send_waiting();
}

status context::wait_slow(condition ready, judge failed, std::int64_t until_ns, waiting how, long_wait* whole,
                          int peer_rank) noexcept {
  const bool serves = how == waiting::serving;
  const bool is_counted = shared_ && !serves;
  if (is_counted) program_waits_.fetch_add(1, std::memory_order_relaxed);
  around_.inside(true);
  const std::int64_t spin_most_ns = (serves ? spin_stretch_of_thread : spin_stretch) * patience_.spin_ns;
  std::atomic<std::int64_t>& spin_ns = serves ? spin_of_thread_ns_ : spin_ns_;
  std::int64_t idle_since_ns = 0;
  long_wait own(*this);
  long_wait& watch = whole != nullptr ? *whole : own;
  const bool hooked = !serves && wait_hook_ != nullptr;
  const bool dozes = how == waiting::unrung || hooked;
  bool busy = true;  // since the clock was looked at
  unsigned idle_rounds = 0;
  unsigned turn = hooked && until_ns != never_ns ? patience_.turns_per_look - 1 : 0;  // a pause may be short
  std::uint32_t news_seen = ~std::uint32_t{0};
  std::int64_t goodbye_until_ns = 0;
  status result = status::done;
  const bool long_pause =
      patience_.spin_ns == 0 && until_ns != never_ns && until_ns - around_.now_ns() > pause_yielded_ns;
  for (;;) {
    const unsigned found = serves ? make_progress() : progress();
    if (ready()) break;
    const std::uint32_t news = deaths_.load() + departures_.load() + aborted_.load() + revocations_.load();
    if (news != news_seen) {
      news_seen = news;
      result = aborted_.load() != 0 ? status::job_aborted : failed();
      if (result != status::done) {
        bool more = true, met = false;
        while (more && !met) {  // it may have come before the death did
          more = make_progress() != 0;
          met = ready();
        }
        if (!met && (result != status::peer_failed || goodbye_deadline_passed(goodbye_until_ns))) break;
        result = status::done;
        if (met) break;
        news_seen = ~news;  // it is asked again at the next turn
      }
    }
    if (found != 0) {
      busy = true;
      idle_rounds = 0;
    }
    if (!long_pause && ++turn % patience_.turns_per_look != 0) {
      if (found == 0) patience_.spin_ns != 0 ? spin_pause() : around_.yield();
      continue;
    }
    const std::int64_t now = around_.now_ns();
    look_around(now);
    if (hooked) run_wait_hook();
    const std::int64_t lasts_ns = serves ? 0 : watch.lasts_ns(now);
    if (std::exchange(busy, false)) idle_since_ns = now;
    if (now - idle_since_ns < std::min(spin_most_ns, spin_ns.load(std::memory_order_relaxed))) {
      spin_pause();
    } else if (patience_.spin_ns == 0 && !long_pause && idle_rounds++ < patience_.looks_before_sleep) {
      around_.yield();
    } else if (sleep(ready, dozes ? std::min(until_ns, now + doze_ns(lasts_ns, hooked)) : until_ns, serves)) {
      break;
    } else if (how != waiting::unrung) {
      busy = true;  // whoever woke it may have more
      if (!hooked) adapt(spin_ns, around_.now_ns() - now, spin_most_ns);
    }
  }
  if (peer_rank >= 0 && idle_since_ns != 0) note_target_wait(peer_rank, watch.begin_ns(), idle_since_ns);
  if (serves && program_waits_.load(std::memory_order_relaxed) != 0) return result;  // the program is inside still
  stop_serving();
  if (is_counted) program_leaves();
  return result;
}

// Who has left said everything before; over a network it may take longer than the news of it.
bool context::goodbye_deadline_passed(std::int64_t& until_ns) noexcept {
  if (wide_ == nullptr) return true;
  {
    const std::lock_guard guard(lock_);
    bool expected = false;
    for (int rank = 0; rank < boot_.size() && !expected; ++rank) {
      expected = has_left(rank) && wide_->as_liveness().expects_goodbye(rank);
    }
    if (!expected) return true;
  }
  const std::int64_t now_ns = around_.now_ns();
  if (until_ns == 0) until_ns = now_ns + farewell_ns;
  return now_ns >= until_ns;
}

std::string context::where() noexcept {
  const char* const other = call();
  std::string described;
  {
    const std::lock_guard guard(lock_);
    for (const auto& each : describers_) {
      const std::string calls = each.run(each.self);
      if (!calls.empty()) described += (described.empty() ? "" : "; ") + calls;
    }
  }
  if (!described.empty()) return described;
  return other != nullptr ? other : "the library";
}

// A duty may end itself, or begin another, which has its turn in the next round.
unsigned context::do_duties() noexcept {
  unsigned done = 0;
  for (std::uint32_t left = on_duty_; left != 0; left &= left - 1) {
    const auto& each = duties_[static_cast<std::size_t>(std::countr_zero(left))];
    done += each.run(each.self);
  }
  return done;
}

// Waiting for an adapter takes longer than for memory, and how long depends on the adapter. Who slept for less than it
// could have spun spins longer the next time; who slept for long has spun in vain. It may spin for longer than two
// ranks take to wake each other up (0.8 ms on a busy virtual machine): each would take that for a long wait, and sleep
// again.
void context::adapt(std::atomic<std::int64_t>& spin_ns, std::int64_t slept_ns, std::int64_t most_ns) noexcept {
  if (wide_ == nullptr || patience_.spin_ns == 0) return;
  const std::int64_t spun_ns = spin_ns.load(std::memory_order_relaxed);
  const bool longer = slept_ns < most_ns;
  spin_ns.store(std::clamp(longer ? 2 * spun_ns : spun_ns / 2, patience_.spin_ns, most_ns), std::memory_order_relaxed);
}

// Whoever promised to send a message while this rank was inside gets it handled before it goes: the last look at the
// rings comes after the others can see that it is gone. However long that takes: the sender may have lost its core
// between the promise and the message, and will wait for the answer. Nor does it go while an answer waits for room, for
// who asked will wait for that, and makes room. The dead promise nothing, once they are known.
void context::stop_serving() noexcept {
  around_.inside(false);
  full_fence();
  for (unsigned looks = 1; is_expected(); ++looks) {
    (void)make_progress();
    look_around(around_.now_ns());
    if (looks % looks_before_nap != 0) {
      around_.yield();
      continue;
    }
    const std::uint32_t armed = around_.arm(true);
    if (!anything_new()) around_.sleep(armed, nap_ns);
    around_.inside(false);
    full_fence();
  }
}

bool context::anything_new() noexcept {
  const std::lock_guard guard(lock_);
  return node_.as_liveness().pending() || owes_delivery();
}

// By ranks of this node: to handle what was promised, or to answer.
bool context::is_expected() noexcept {
  const std::lock_guard guard(lock_);
  if (owes_delivery()) return true;
  if (ack_sources_.empty() && waiting_.empty()) return false;
  const auto is_near = [&](int rank) { return peer_of(rank).network == &node_ && !gone(rank); };
  const auto is_answer = [](const message_pool::record& m) {
    const auto kind = static_cast<message>(m.kind());
    return kind == message::reply || kind == message::refusal;
  };
  return std::any_of(ack_sources_.begin(), ack_sources_.end(), is_near) ||
         std::any_of(waiting_.begin(), waiting_.end(), [&](int rank) {
           const auto& messages = peer_of(rank).waiting;  // many, where a network has no room
           return is_near(rank) && std::any_of(messages.begin(), messages.end(), is_answer);
         });
}

// Everything that waits for room.
std::size_t context::waiting_messages() noexcept {
  std::size_t n = ack_sources_.size();
  for (const int rank : waiting_) n += peer_of(rank).waiting_count();
  return n;
}

// True if `ready` was met.
bool context::sleep(condition ready, std::int64_t until_ns, bool serves) noexcept {
  // Counted before it is asked whether it is ready: who makes it so afterwards sees the count.
  struct mark {
    std::atomic<std::uint32_t>* const of;
    explicit mark(std::atomic<std::uint32_t>* all) noexcept : of(all) {
      if (of != nullptr) of->fetch_add(1);
    }
    mark(const mark&) = delete;
    mark& operator=(const mark&) = delete;
    ~mark() {
      if (of != nullptr) of->fetch_sub(1, std::memory_order_relaxed);
    }
  } const marked(serves ? nullptr : &asleep_);
  const std::uint32_t armed = around_.arm(serves);
  if (ready()) {
    around_.retract();
    return true;
  }
  bool news = false;
  std::int64_t due_ns = never_ns;
  {
    const std::lock_guard guard(lock_);  // whoever has it is about to finish, and may have missed what came meanwhile
    count(counter::sleeps);
    if (!serves) {
      for (const auto& each : before_sleep_) each.run(each.self);
    }
    const std::size_t before = waiting_messages();
    if (before != 0) {
      acknowledge();
      send_waiting();
    }
    duty_due_ns_ = never_ns;
    drained_ = false;
    const bool served = do_duties() != 0;
    due_ns = std::min(until_ns, duty_due_ns_);
    news = served || node_.as_liveness().pending() || owes_delivery() ||
           (wide_ != nullptr && wide_->as_liveness().pending()) || waiting_messages() != before;
  }
  if (news) {
    around_.retract();
  } else if (ready()) {  // by what the thread did that had the lock
    around_.retract();
    return true;
  } else {
    const std::int64_t left_ns = due_ns == never_ns ? never_ns : std::max<std::int64_t>(due_ns - around_.now_ns(), 0);
    around_.sleep(armed, std::min(look_around_every_ns, left_ns));
  }
  return false;
}

void context::look_around(std::int64_t now_ns) noexcept {
  if (now_ns - looked_ns_.load(std::memory_order_relaxed) < look_around_every_ns) return;
  const std::unique_lock guard(news_lock_, std::try_to_lock);
  if (!guard) return;
  looked_ns_.store(now_ns, std::memory_order_relaxed);
  std::vector<int> died;
  around_.look_for_deaths(died);
  for (const int rank : died) boot_.report_death(rank);
  const status job = boot_.poll_events(died);
  for (const int rank : died) mark_dead(rank);
  std::vector<int> left;
  boot_.take_departures(left);
  left_.insert(left_.end(), left.begin(), left.end());
  far_left_.store(static_cast<std::uint32_t>(left_.size()));
  if (job == status::fabric_lost && boot_.rank_0_serves()) {
    mark_other_nodes_dead();
  } else if (!ok(job)) {
    aborted_.store(1);
  }
  departures_.fetch_add(1);  // departures are looked up, not reported: ask `failed` again
}

bool context::dead(int rank) noexcept {
  if (deaths_.load() == 0) return false;
  const std::lock_guard guard(news_lock_);
  return std::find(dead_.begin(), dead_.end(), rank) != dead_.end();
}

bool context::gone(int rank) noexcept { return has_left(rank) || dead(rank); }

// The ranks of this node see it at once; of others the job's server tells.
bool context::has_left(int rank) noexcept {
  if (around_.has_left(rank)) return true;
  if (far_left_.load() == 0) return false;
  const std::lock_guard guard(news_lock_);
  return std::find(left_.begin(), left_.end(), rank) != left_.end();
}

void context::report_lost(int rank) noexcept {
  set_last_failed(rank);
  const std::lock_guard guard(news_lock_);
  if (std::find(dead_.begin(), dead_.end(), rank) != dead_.end()) return;
  boot_.report_death(rank);
  mark_dead(rank);
}

// What was under way ends first: a lock of the dead rank is free when its death is known, and nothing of what it still
// had to say may arrive afterwards.
void context::mark_dead(int rank) noexcept {
  if (std::find(dead_.begin(), dead_.end(), rank) != dead_.end()) return;
  node_.as_liveness().forget(rank);
  if (wide_ != nullptr) wide_->as_liveness().forget(rank);
  dead_.push_back(rank);
  deaths_.fetch_add(1);
}

// This node is cut off from the job, or the job's first rank is gone: who is elsewhere must be presumed dead. The ranks
// of one node see each other, and go on.
void context::mark_other_nodes_dead() noexcept {
  if (std::exchange(cut_off_, true)) return;
  for (int rank = 0; rank < boot_.size(); ++rank) {
    const bool left = around_.has_left(rank) || std::find(left_.begin(), left_.end(), rank) != left_.end();
    if (!node_.as_facts().reaches(rank) && !left) mark_dead(rank);
  }
}

std::vector<int> context::dead_ranks() {
  const std::lock_guard guard(news_lock_);
  return dead_;
}

void context::on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  count(counter::messages_received);
  if (kind >= handlers_.size() || handlers_[kind].run == nullptr) {
    reject_malformed(source, kind, payload.size(), malformed_reason::unknown_kind);
    return;
  }
  handlers_[kind].run(handlers_[kind].self, source, payload);
  if (accounts_) [[unlikely]]
    around_.charge(cost_kind::handler, payload.size());
}

void context::on_completion(std::uint64_t token, status result, std::uint64_t bytes) noexcept {
  if (token == 0) return;
  fabric::completion& over = fabric::completion_of(token);
  over.run(over, result, bytes);
}

void context::on_immediate(int source, std::uint32_t immediate) noexcept {
  const auto& user = immediates_[static_cast<std::size_t>(user_of_immediate(immediate))];
  if (user.run == nullptr)
    return reject_malformed(source, 0, sizeof immediate, malformed_reason::unknown_kind);  // messages have others
  user.run(user.self, source, value_of_immediate(immediate));
}

// Out of reach is as good as dead; of who has left in good order nothing is expected.
void context::on_broken(int rank) noexcept {
  if (!has_left(rank)) report_lost(rank);
}

}  // namespace rma::detail
