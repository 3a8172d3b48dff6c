// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/node_platform.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/cores.hpp"
#include "core/futex.hpp"
#include "core/membarrier.hpp"
#include "core/process_state.hpp"
#include "core/threads.hpp"

namespace rma::shm {

namespace {

/// The length of another process's text, which may contain any bytes.
std::size_t text_length(const waiting_place& waiter) noexcept {
  const auto end = std::find_if(std::begin(waiter.text), std::end(waiter.text), [](char c) { return c < ' '; });
  return static_cast<std::size_t>(end - std::begin(waiter.text));
}

}  // namespace

node_platform::node_platform(board& node, node_load load) : board_(node), reported_(node.size(), false), load_(load) {
  if (load.ranks > load.cores || !node.fenced_by_others()) return;
  fences_ = true;
  node.slot(node.me()).fences.store(1);
}

void node_platform::begin() {
  if (load_.ranks > load_.cores) detail::take_turn(load_.turn);
}

// If there are more ranks than processors, spinning keeps other ranks from running.
detail::patience node_platform::waits(std::int64_t spin_ns) const noexcept {
  const bool short_of_cores = load_.ranks > load_.cores;
  detail::patience p;
  p.first_spins = short_of_cores ? 1 : 256;
  p.cores = short_of_cores ? static_cast<unsigned>(load_.cores) : 0;
  p.spin_ns = short_of_cores ? 0 : spin_ns;
  return p;
}

std::string node_platform::why_waits(std::int64_t spin_ns) const {
  return fmt::format("{}: ranks {}, processors {}",
                     waits(spin_ns).spin_ns != 0 ? fmt::format("spin for {} us, then sleep", spin_ns / 1000)
                                                 : "let others run, then sleep",
                     load_.ranks, load_.cores);
}

std::unique_ptr<detail::helper_thread> node_platform::start(std::function<void()> run) {
  struct thread final : detail::helper_thread {
    explicit thread(std::function<void()> f) : running(detail::start_thread("the progress thread", std::move(f))) {}
    void join() noexcept override { running.join(); }
    std::thread running;
  };
  return std::make_unique<thread>(std::move(run));
}

std::int64_t node_platform::now_ns() noexcept { return detail::clock_ns(); }

void node_platform::inside(bool yes) noexcept {
  board_.slot(board_.me())
      .inside.store(static_cast<std::uint32_t>(yes ? whereabouts::spinning : whereabouts::outside),
                    std::memory_order_relaxed);
}

void node_platform::yield() noexcept { ::sched_yield(); }

// Ranks with processors of their own seldom sleep: they execute the fence on behalf of senders, which then need none
// for each message. If ranks sleep for each message, a fence in the sender is cheaper.
//
// Each arming has a number, so that a thread that is about to sleep sees a ring after its own arming even if another
// thread has armed the doorbell again.
std::uint32_t node_platform::arm(bool serves) noexcept {
  rank_slot& mine = board_.slot(board_.me());
  mine.inside.store(static_cast<std::uint32_t>(whereabouts::asleep), std::memory_order_relaxed);
  const std::uint32_t rings = rings_.load();
  const auto how = static_cast<std::uint32_t>(polled_.empty() ? doorbell::futex : doorbell::bell);
  const std::uint32_t fresh =
      (arms_.fetch_add(1, std::memory_order_relaxed) << doorbell_bits) | (serves ? doorbell_serves : 0) | how;
  auto found = static_cast<std::uint32_t>(doorbell::idle);
  // The exchange is a full fence: stores of others before their load of the doorbell are visible from here on.
  bool first = mine.doorbell.compare_exchange(found, fresh);
  // A doorbell armed only for serving must be armed again for this thread, or ring_waiters would skip it. A thread that
  // sleeps on the word already is woken by its address; one that is about to sleep tests its condition again.
  const auto is_too_little = [serves](std::uint32_t word) { return !serves && (word & doorbell_serves) != 0; };
  while (!first && (found == static_cast<std::uint32_t>(doorbell::idle) || is_too_little(found)))
    first = mine.doorbell.compare_exchange(found, fresh);
  if (fences_) {
    detail::fence_for_others();
  } else if (!first) {
    detail::full_fence();
  }
  return !polled_.empty() ? rings : first ? fresh : found;
}

void node_platform::sleep(std::uint32_t armed, std::int64_t timeout_ns) noexcept {
  if (polled_.empty()) {
    detail::futex_wait(board_.slot(board_.me()).doorbell, armed, timeout_ns);
  } else {
    sleep_on_descriptors(armed, timeout_ns);
  }
  inside(true);
}

void node_platform::watch(int descriptor) {
  if (polled_.empty()) polled_.push_back({board_.bell(), POLLIN, 0});
  polled_.push_back({descriptor, POLLIN, 0});
}

// One thread polls the descriptors, the others sleep until it returns: then every thread tests its condition again, and
// one of them polls next.
void node_platform::sleep_on_descriptors(std::uint32_t rings, std::int64_t timeout_ns) noexcept {
  if (polling_.exchange(true)) {
    followers_.fetch_add(1);
    detail::futex_wait(rings_, rings, timeout_ns);
    followers_.fetch_sub(1);
    return;
  }
  if (rings_.load() == rings) poll_descriptors(timeout_ns);  // else another thread has taken the ring
  polling_.store(false);
  rings_.fetch_add(1);
  if (followers_.load() != 0) detail::futex_wake_all(rings_);
}

void node_platform::poll_descriptors(std::int64_t timeout_ns) noexcept {
  std::array<pollfd, 4> all{};
  const std::size_t count = std::min(polled_.size(), all.size());
  std::copy_n(polled_.begin(), count, all.begin());
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  if (::ppoll(all.data(), count, &timeout, nullptr) > 0 && (all[0].revents & POLLIN) != 0) board_.take_ring();
}

// The doorbell stays armed: another thread of this rank may sleep on it. This costs at most one needless wake.
void node_platform::retract() noexcept { inside(true); }

void node_platform::say_where(std::string_view call) noexcept {
  waiting_place& mine = board_.slot(board_.me()).waits;
  mine.set.store(0);
  const std::size_t length = call.copy(mine.text, sizeof mine.text - 1);
  mine.text[length] = '\0';
  mine.set.store(call.empty() ? 0 : 1);
}

std::string node_platform::place_of(std::size_t index) const {
  const rank_slot& slot = board_.slot(index);
  const auto state = static_cast<presence>(slot.state.load());
  if (state != presence::alive) return state == presence::left ? "has left the job" : "dead";
  const std::string stopped = detail::why_stopped(static_cast<pid_t>(slot.pid));
  const std::string where = slot.waits.set.load() != 0
                                ? fmt::format("in {}", std::string_view(slot.waits.text, text_length(slot.waits)))
                            : !board_.is_inside(index) ? "in the program, outside the library"
                            : board_.is_served(index)  ? "in the program, outside the library; a progress thread serves"
                            : stopped.empty()          ? "in the library, not for long"
                                                       : "in the library";
  return stopped.empty() ? where : fmt::format("{}, {}", stopped, where);
}

// The report is one write, so that lines of several nodes do not mix.
void node_platform::tell_stall(std::int64_t waited_ns, std::int64_t every_ns) noexcept {
  word64& reported_ns = board_.slot(0).stall_told_ns;
  std::uint64_t last = reported_ns.load();
  const auto now = static_cast<std::uint64_t>(now_ns());
  if (last != 0 && now - last < static_cast<std::uint64_t>(every_ns)) return;
  if (!reported_ns.compare_exchange(last, now)) return;
  std::vector<std::pair<std::string, std::vector<int>>> ranks;  // by place, in the order of their first ranks
  for (std::size_t i = 0; i < board_.size(); ++i) {
    const std::string call = place_of(i);
    auto at = std::find_if(ranks.begin(), ranks.end(), [&](const auto& each) { return each.first == call; });
    if (at == ranks.end()) at = ranks.insert(at, {call, {}});
    at->second.push_back(board_.members()[i]);
  }
  std::string text = fmt::format("rma: rank {} has waited for {} s in one call; the ranks of its node are:\n",
                                 board_.members()[board_.me()], waited_ns / 1'000'000'000);
  for (const auto& [call, those] : ranks) text += fmt::format("rma:   {}: {}\n", detail::names_of_ranks(those), call);
  text += "rma: if that is no mistake, RMA_STALL_REPORT_S is after how many seconds to say so (0: never)\n";
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

void node_platform::ring(int world_rank) noexcept {
  const auto index = board_.index_of(world_rank);
  if (index < board_.size()) board_.ring_doorbell(index);
}

void node_platform::look_for_deaths(std::vector<int>& died) noexcept {
  for (std::size_t i = 0; i < board_.size(); ++i) {
    if (i == board_.me() || reported_[i] || board_.look_at(i) != presence::dead) continue;
    reported_[i] = true;
    died.push_back(board_.members()[i]);
  }
}

bool node_platform::has_left(int world_rank) noexcept {
  const auto index = board_.index_of(world_rank);
  return index < board_.size() && board_.slot(index).state.load() == static_cast<std::uint32_t>(presence::left);
}

}  // namespace rma::shm
