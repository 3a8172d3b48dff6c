// SPDX-License-Identifier: Apache-2.0
#include "channel/context.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

constexpr unsigned events_per_round = 64;
constexpr unsigned quick_looks = 64;  // some microseconds
constexpr unsigned quick_looks_for_adapter = 4;
constexpr unsigned looks_for_adapter = 2;  // with few cores, yielding for longer than a reply takes only wastes them

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
      stall_report_ns_(static_cast<std::int64_t>(s.number(knob::stall_report_s)) * 1'000'000'000),
      gone_(boot, node, wide, around) {
  set_handler(message::malformed_notice, &context::on_malformed_notice, this);
  if (wide_ == nullptr) return;
  const int events = wide_->as_liveness().event_fd();
  if (events < 0) return;
  around_.watch(events);
  quick_looks_ = patience_.spin_ns != 0 ? quick_looks : quick_looks_for_adapter;
  patience_.looks_before_sleep = std::min(patience_.looks_before_sleep, looks_for_adapter);
}

context::~context() { stop_progress_thread(); }

void context::tell_news() noexcept {
  news_told_ = gone_.news();
  for (const auto& each : news_) each.run(each.self);
  wake_others();
}

// An unreachable rank counts as dead, unless it has left regularly.
void context::on_broken(int rank) noexcept {
  RMA_ASSERT(rank >= 0 && rank < size());
  if (!has_left(rank)) report_lost(rank);
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

unsigned context::make_progress() noexcept {
  std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard) return 0;  // another thread makes progress
  unsigned found = node_.poll(*this, events_per_round);
  if (wide_ != nullptr) found += wide_->poll(*this, events_per_round);
  drained_ = found < events_per_round;
  if (on_duty_ != 0) found += do_duties();
  if (!ack_sources_.empty()) acknowledge();
  if (!waiting_.empty()) send_waiting();
  if (drained_ && gone_.news() != news_told_) [[unlikely]]
    tell_news();
  if (found != 0 && shared_) wake_others();
  if (accounts_) [[unlikely]] {
    guard.unlock();
    around_.charge(cost_kind::poll, found);
    around_.pass_charged_time();
  }
  if (stepping_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (guard.owns_lock()) guard.unlock();
    take_steps();
  }
  return found;
}

// Another thread may sleep until one of them ends.
void context::take_steps() noexcept {
  if (steps_.run(steps_.self) != 0) wake_others();
}

// Reading the clock costs more than most of these calls, and a round of progress between nodes more than twenty of
// them. If calls are rare, each reads the clock.
void context::look_if_due() noexcept {
  constexpr std::int64_t stretch_ns = 20'000;
  constexpr std::uint32_t calls_max = 16;
  {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return calls_to_look_.store(calls_max, std::memory_order_relaxed);  // another thread makes progress
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

// One thread may have handled an event for which another one sleeps, whose descriptors then report nothing any
// more.
void context::wake_others() noexcept {
  if (!shared_) return;
  full_fence();
  if (asleep_.load(std::memory_order_relaxed) != 0) around_.ring(rank());
}

void context::look_at_adapter() noexcept {
  if (wide_->poll(*this, events_per_round) != 0 && shared_) wake_others();
  if (!ack_sources_.empty()) acknowledge();
  if (!waiting_.empty()) send_waiting();
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

// A duty may end itself, or begin another one, which runs in the next round.
unsigned context::do_duties() noexcept {
  unsigned done = 0;
  for (std::uint32_t left = on_duty_; left != 0; left &= left - 1) {
    const auto& each = duties_[static_cast<std::size_t>(std::countr_zero(left))];
    done += each.run(each.self);
  }
  return done;
}

}  // namespace rma::detail
