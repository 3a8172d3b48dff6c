// SPDX-License-Identifier: Apache-2.0
/// \file
/// The waits of a rank's program and of its progress thread: they drive the fabrics, spin, yield or sleep, and detect
/// deaths.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "channel/context.hpp"

namespace rma::detail {
namespace {

constexpr std::int64_t spin_stretch = 100;  // a wait on a network may spin so many times longer than one on memory
constexpr std::int64_t spin_stretch_of_thread = 16;  // the program computes meanwhile, perhaps on the same core
constexpr std::int64_t farewell_ns = 500'000'000;    // limit for the last messages of a rank that has left
constexpr std::int64_t pause_yielded_ns = 20'000;    // longer pauses sleep, or waiting for a lock would cost a core
constexpr std::int64_t doze_least_ns = 20'000;       // shortest sleep of waits without a wake-up
constexpr std::int64_t doze_most_ns = 4'000'000;
constexpr std::int64_t dozes_of_a_wait = 8;
constexpr std::int64_t wait_hook_every_ns = 1'000'000;  // longest interval, also in a wait that sleeps
constexpr unsigned looks_before_nap = 64;               // only in waits for room
constexpr std::int64_t nap_ns = 1'000'000;
constexpr std::int64_t silence_reported_ns = 10'000'000;  // silence of an awaited target, until it is reported

std::int64_t doze_ns(std::int64_t waited_ns, bool hooked) noexcept {
  return std::clamp(waited_ns / dozes_of_a_wait, doze_least_ns, hooked ? wait_hook_every_ns : doze_most_ns);
}

}  // namespace

status context::wait_slow(const wait_spec& w) noexcept {
  const bool serves = w.woken_by == wakes::service;
  const bool rings = w.woken_by != wakes::nobody;
  const auto met_or_late = [&]() noexcept {
    return (w.until.given() && w.until()) || (w.deadline_ns != no_deadline && around_.now_ns() >= w.deadline_ns);
  };
  const bool plain = w.until.given() && w.deadline_ns == no_deadline;
  const wait_question<bool> over = plain ? w.until : wait_question<bool>(met_or_late);
  const bool is_counted = shared_ && !serves;
  if (is_counted) program_waits_.fetch_add(1, std::memory_order_relaxed);
  around_.inside(true);
  const std::int64_t spin_most_ns = (serves ? spin_stretch_of_thread : spin_stretch) * patience_.spin_ns;
  std::atomic<std::int64_t>& spin_ns = serves ? spin_of_thread_ns_ : spin_ns_;
  std::int64_t idle_since_ns = 0, silent_since_ns = 0;
  const int target = w.peer >= 0 ? w.peer : w.replies;
  long_wait own(*this);
  long_wait& watch = w.whole != nullptr ? *w.whole : own;
  const bool hooked = !serves && wait_hook_ != nullptr;
  const bool dozes = !rings || hooked;
  bool busy = true, heard = true;  // since the last reading of the clock; also after a wake, perhaps by time alone
  unsigned idle_rounds = 0;
  unsigned turn = hooked && w.deadline_ns != no_deadline ? patience_.turns_per_look - 1 : 0;  // a pause may be short
  judged_news judged;
  status result = status::done;
  const bool long_pause =
      patience_.spin_ns == 0 && w.deadline_ns != no_deadline && w.deadline_ns - around_.now_ns() > pause_yielded_ns;
  for (;;) {
    const unsigned found = serves ? make_progress() : progress();
    if (over()) break;
    if (gone_.all_news() != judged.seen && ends_by_news(w, over, judged, result)) break;
    if (found != 0) {
      busy = heard = true;
      idle_rounds = 0;
    }
    if (!long_pause && ++turn % patience_.turns_per_look != 0) {
      if (found == 0) patience_.spin_ns != 0 ? spin_pause() : around_.yield();
      continue;
    }
    const std::int64_t now = around_.now_ns();
    gone_.look_around(now);
    if (hooked) run_wait_hook();
    const std::int64_t lasts_ns = serves ? 0 : watch.lasts_ns(now);
    if (std::exchange(heard, false)) silent_since_ns = now;
    if (target >= 0 && now - silent_since_ns > silence_reported_ns) [[unlikely]]
      report_silence(target, w.for_lock, now - silent_since_ns);
    if (std::exchange(busy, false)) idle_since_ns = now;
    if (now - idle_since_ns < std::min(spin_most_ns, spin_ns.load(std::memory_order_relaxed))) {
      spin_pause();
    } else if (patience_.spin_ns == 0 && !long_pause && idle_rounds++ < patience_.looks_before_sleep) {
      around_.yield();
    } else if (sleep(over, dozes ? std::min(w.deadline_ns, now + doze_ns(lasts_ns, hooked)) : w.deadline_ns, serves)) {
      break;
    } else if (rings) {
      busy = true;  // there may be more events
      if (!hooked) adapt(spin_ns, around_.now_ns() - now, spin_most_ns);
    }
  }
  if (target >= 0 && silent_since_ns != 0) count_target_wait(watch.begin_ns());
  // A thread of the program still waits or polls, and handles what arrives.
  if (serves &&
      (program_waits_.load(std::memory_order_relaxed) != 0 || program_polls_.load(std::memory_order_relaxed) != 0))
    return result;
  stop_serving();
  if (is_counted) program_leaves();
  return result;
}

// The function may wait itself: it is not called again inside.
void context::run_wait_hook() noexcept {
  if (in_wait_hook_.exchange(true, std::memory_order_acquire)) return;
  wait_hook_();
  in_wait_hook_.store(false, std::memory_order_release);
}

// Tests after news of deaths or departures if the wait can still be met. True if it ends: either it cannot, or events
// before the news have met it.
bool context::ends_by_news(const wait_spec& w, const wait_question<bool>& over, judged_news& at,
                           status& result) noexcept {
  const std::uint32_t news = gone_.all_news();
  at.seen = news;
  if (gone_.job_is_aborted()) {
    result = status::job_aborted;
  } else if (w.fails_if.given()) {
    result = w.fails_if();
  } else {
    result = w.peer >= 0 && gone(w.peer) ? status::peer_failed : status::done;
  }
  if (result == status::done) return false;
  bool more = true, met = false;
  while (more && !met) {
    more = make_progress() != 0;
    met = over();
  }
  if (!met && (result != status::peer_failed || goodbye_deadline_passed(at.goodbye_until_ns))) return true;
  result = status::done;
  if (!met) at.seen = ~news;  // it is tested again at the next turn
  return met;
}

// A rank that has left has sent all its messages before; over a network the last ones may arrive later than that news.
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

// Waiting for an adapter takes longer than for memory, by a time that depends on the adapter. A wait that slept for
// less than it could have spun spins longer the next time; one that slept for long has spun in vain. The limit is
// longer than two ranks take to wake each other up (0.8 ms on a busy virtual machine): otherwise each would take that
// for a long wait, and sleep again.
void context::adapt(std::atomic<std::int64_t>& spin_ns, std::int64_t slept_ns, std::int64_t most_ns) noexcept {
  if (wide_ == nullptr || patience_.spin_ns == 0) return;
  const std::int64_t spun_ns = spin_ns.load(std::memory_order_relaxed);
  const bool longer = slept_ns < most_ns;
  spin_ns.store(std::clamp(longer ? 2 * spun_ns : spun_ns / 2, patience_.spin_ns, most_ns), std::memory_order_relaxed);
}

// A rank that has reserved a delivery while this rank was inside gets its message handled before this rank leaves: the
// last check of the rings comes after the others can see that it has left. This may take long: the sender may have been
// preempted between the reservation and the message, and will wait for the reply. Nor does this rank leave while a
// reply waits for room, since the receiver waits for that, and makes room. Reservations of ranks known to be dead are
// void. While another thread polls, the rank does not leave.
void context::stop_serving() noexcept {
  around_.inside(false);
  full_fence();
  for (unsigned looks = 1; is_expected(); ++looks) {
    (void)make_progress();
    gone_.look_around(around_.now_ns());
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

// True if ranks of this node expect this rank to handle a reserved message, or to reply.
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
           const auto& messages = peer_of(rank).waiting;  // these may be many, if a network has no room
           return is_near(rank) && std::any_of(messages.begin(), messages.end(), is_answer);
         });
}

// Returns true if the condition held.
bool context::sleep(const wait_question<bool>& over, std::int64_t until_ns, bool serves) noexcept {
  // Counted before the condition is tested: a thread that makes it true afterwards sees the count.
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
  if (over()) {
    around_.retract();
    return true;
  }
  bool news = false;
  std::int64_t due_ns = no_deadline;
  {
    const std::lock_guard guard(lock_);  // its holder is about to finish, and may have missed recent events
    count(counter::sleeps);
    if (!serves) {
      for (const auto& each : before_sleep_) each.run(each.self);
    }
    const std::size_t before = waiting_messages();
    if (before != 0) {
      acknowledge();
      send_waiting();
    }
    duty_due_ns_ = no_deadline;
    drained_ = false;
    const bool served = do_duties() != 0;
    due_ns = std::min(until_ns, duty_due_ns_);
    news = served || node_.as_liveness().pending() || owes_delivery() ||
           (wide_ != nullptr && wide_->as_liveness().pending()) || waiting_messages() != before;
  }
  if (news) {
    around_.retract();
  } else if (over()) {  // by an event that the previous holder of the lock has handled
    around_.retract();
    return true;
  } else {
    const std::int64_t left_ns =
        due_ns == no_deadline ? no_deadline : std::max<std::int64_t>(due_ns - around_.now_ns(), 0);
    around_.sleep(armed, std::min(gone_ranks::look_every_ns, left_ns));
  }
  return false;
}

}  // namespace rma::detail
