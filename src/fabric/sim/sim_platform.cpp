// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/sim_platform.hpp"

#include <algorithm>
#include <utility>

namespace rma::sim {
namespace {

constexpr time_ps ps_per_ns = 1000;
constexpr std::int64_t work_max_ns = std::int64_t{30} * 24 * 3600 * 1'000'000'000;  // time ends after 106 days
constexpr time_ps clock_ps = 20'000;                                                ///< cost of reading the clock
constexpr time_ps call_ps = 5000;  ///< cost of a public call besides its work, so that time passes in every loop

}  // namespace

sim_platform::sim_platform(sim_client& boot, shm::board& node)
    : boot_(boot), job_(boot.job()), rank_(boot.rank()), board_(node) {}

// Spinning would cost real time and find nothing: other ranks run only while this rank sleeps.
detail::patience sim_platform::waits(std::int64_t) const noexcept {
  detail::patience p;
  p.first_spins = 1;
  p.turns_per_look = 1;
  p.spin_ns = 0;
  p.looks_before_sleep = 0;
  return p;
}

std::int64_t sim_platform::now_ns() noexcept { return job_.local_time_ps(rank_) / ps_per_ns; }

std::int64_t sim_platform::read_clock_ns() noexcept {
  job_.charge(rank_, clock_ps, activity::post);
  job_.pass_charged_time(rank_);
  return now_ns();
}

void sim_platform::compute(std::int64_t work_ns) noexcept {
  if (work_ns <= 0) return;
  job_.got_on(rank_);
  job_.charge(rank_, std::min(work_ns, work_max_ns) * ps_per_ns, activity::compute);
  job_.pass_charged_time(rank_);
}

void sim_platform::show(shm::whereabouts where) noexcept {
  board_.slot(board_.me()).inside.store(static_cast<std::uint32_t>(where), std::memory_order_relaxed);
}

void sim_platform::inside(bool yes) noexcept {
  show(yes ? shm::whereabouts::spinning : shm::whereabouts::outside);
  if (!yes) job_.got_on(rank_);
}

void sim_platform::yield() noexcept {
  job_.charge(rank_, job_.options().machine.poll_time_ps, activity::poll);
  job_.yield(rank_);
}

std::uint32_t sim_platform::arm(bool /*serves*/) noexcept {
  show(shm::whereabouts::asleep);
  board_.slot(board_.me()).doorbell.store(1);
  job_.arm(rank_);
  return 1;
}

void sim_platform::sleep(std::uint32_t, std::int64_t timeout_ns) noexcept {
  job_.park(rank_, job_.local_time_ps(rank_) + timeout_ns * ps_per_ns);
  show(shm::whereabouts::spinning);
}

void sim_platform::retract() noexcept { show(shm::whereabouts::spinning); }

void sim_platform::ring(int world_rank) noexcept {
  const auto index = board_.index_of(world_rank);
  if (index < board_.size()) board_.ring_doorbell(index);
}

void sim_platform::look_for_deaths(std::vector<int>& died) noexcept {
  (void)boot_.poll_events(died);
  for (const int rank : died) {  // look_at marks the dead on the board
    if (const auto index = board_.index_of(rank); index < board_.size()) (void)board_.look_at(index);
  }
}

bool sim_platform::has_left(int world_rank) noexcept {
  return world_rank >= 0 && world_rank < job_.size() && boot_.has_left(world_rank);  // a lock word may be damaged
}

std::unique_ptr<detail::helper_thread> sim_platform::start(std::function<void()> run) {
  struct second_fiber final : detail::helper_thread {
    second_fiber(world& where, std::size_t which) : job(where), number(which) {}
    void join() noexcept override { job.join(number); }
    world& job;
    std::size_t number;
  };
  return std::make_unique<second_fiber>(job_, job_.spawn(rank_, std::move(run)));
}

std::uintptr_t sim_platform::thread() noexcept { return job_.running_strand(); }

// All fibers share one thread, which must not sleep for one of them.
void sim_platform::take(detail::small_lock& lock) noexcept {
  while (!lock.try_lock()) yield();
}

bool sim_platform::keeps_accounts() const noexcept { return !job_.options().inlined; }

void sim_platform::charge(detail::cost_kind what, std::uint64_t bytes) noexcept {
  const parameters& machine = job_.options().machine;
  switch (what) {
    case detail::cost_kind::copy: return job_.charge_copy(rank_, bytes, machine.copy_latency_ps, activity::copy);
    case detail::cost_kind::poll: return job_.charge(rank_, machine.poll_time_ps, activity::poll);
    case detail::cost_kind::send:  // inline data are part of the post
      if (bytes > machine.inline_payload_bytes) job_.charge_copy(rank_, bytes, 0, activity::copy);
      return;
    case detail::cost_kind::handler: return job_.charge_copy(rank_, bytes, machine.handler_time_ps, activity::handler);
  }
}

void sim_platform::pass_charged_time() noexcept { job_.pass_charged_time(rank_); }

void sim_platform::enter(std::string_view call, int target) noexcept { job_.enter_call(call, target); }

void sim_platform::exit() noexcept {
  job_.enter_call({}, -1);
  job_.charge(rank_, call_ps + job_.options().machine.library_overhead_ps, activity::post);
  job_.pass_charged_time(rank_);
}

}  // namespace rma::sim
