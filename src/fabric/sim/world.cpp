// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/world.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <utility>

#include "core/assert.hpp"
#include "core/uncaught_mistakes.hpp"
#include "fabric/sim/sim_boot.hpp"
#include "rma/error.hpp"

namespace rma::sim {
namespace {

/// A rank counts as stuck after so many sleeps that end by time alone. The library's longest timed wait, in the end of
/// a runtime, takes 20 sleeps. A rank with short sleeps must also have checked for deaths, which happens every 100 ms,
/// and must have waited longer than the library ever waits for others: 1 s for the location of another member's call
/// (coll/team_state.cpp), 300 ms for the last messages of a rank that left (p2p/departures.cpp).
constexpr unsigned fruitless_max = 25;
constexpr time_ps fruitless_time_ps = 1'250'000'000'000;
constexpr std::size_t lines_max = 64;  ///< in a report

std::size_t at(int rank) noexcept { return static_cast<std::size_t>(rank); }

const world_options& checked(const world_options& o) {
  if (o.ranks < 1) throw Error(status::bad_argument, fmt::format("a simulated job of {} ranks", o.ranks));
  if (o.ranks_per_node < 0) throw Error(status::bad_argument, fmt::format("{} ranks per node", o.ranks_per_node));
  if (o.stack_bytes < 16384)
    throw Error(status::bad_argument, fmt::format("stacks of {} bytes; at least 16384 are needed", o.stack_bytes));
  return o;
}

}  // namespace

world::world(const world_options& options)
    : options_(checked(options)),
      per_node_(options.ranks_per_node == 0 ? options.ranks : std::min(options.ranks_per_node, options.ranks)),
      nodes_((options.ranks + per_node_ - 1) / per_node_),
      strands_of_(at(options.ranks)),
      lost_(at(options.ranks), 0),
      records_(at(options.ranks)),
      turns_(at(options.ranks), 0),
      watches_(at(options.ranks), 0),
      inside_(at(options.ranks), 0),
      memory_busy_until_ps_(at(nodes_), 0),
      thread_(static_cast<std::uint64_t>(::gettid())) {
  if (options.watchdog.count() > 0) watchdog_ = std::make_unique<watchdog>(options.watchdog, options.on_stall);
}

world::~world() { RMA_ASSERT(current_ == nullptr); }

bool world::same_thread() const noexcept { return thread_ == static_cast<std::uint64_t>(::gettid()); }

std::vector<int> world::ranks_of(int node) const {
  std::vector<int> ranks;
  for (int r = node * per_node_; r < std::min((node + 1) * per_node_, size()); ++r) ranks.push_back(r);
  return ranks;
}

sim_boot& world::boot_of(std::size_t turn) {
  while (boots_.size() <= turn) boots_.push_back(std::make_unique<sim_boot>(*this));
  return *boots_[turn];
}

// ---- the run --------------------------------------------------------------------------------------------------------

world::strand& world::add_strand(int rank, bool main, std::function<void()> run) {
  strand& s = strands_.emplace_back();
  s.rank = rank;
  s.main = main;
  s.number = strands_.size() - 1;
  try {
    s.body = std::make_unique<fiber>(options_.stack_bytes, std::move(run));
  } catch (...) {
    strands_.pop_back();
    throw;
  }
  strands_of_[at(rank)].push_back(s.number);
  ++hopeful_;
  return s;
}

void world::run(const std::function<int(int rank)>& main) {
  for (int r = 0; r < size(); ++r) {
    strand& s = add_strand(r, true, [this, r, &main] {
      strand& self = *current_;
      try {
        const int code = main(r);
        end_main(self, fate::finished, code, {});
      } catch (const Error& e) {
        const bool mistake = detail::is_mistake_of_configuration(e.code());
        end_main(self, fate::threw, mistake ? detail::exit_by_mistake : 1, e.what());
      } catch (const std::exception& e) {
        end_main(self, fate::threw, 1, e.what());
      } catch (...) {
        end_main(self, fate::threw, 1, "an exception that is no std::exception");
      }
    });
    resume_at(s, 0);
    ++living_;
  }
  while (living_ > 0 && !aborted_ && step()) ++steps_;
}

// Runs one event or time-out. False if the run is over; the report has the reason.
bool world::step() {
  const time_ps event_ps = events_.next_ps();
  const time_ps timer_ps = timers_.empty() ? never_ps : timers_.front().when_ps;
  if (std::min(event_ps, timer_ps) > options_.limit_ps) {
    report("the time is up");
    return false;
  }
  if (event_ps == never_ps && (hopeful_ == 0 || timer_ps == never_ps)) {
    report("deadlock, nothing can happen any more");
    return false;
  }
  if (event_ps <= timer_ps) return events_.run_one();
  events_.advance(timer_ps);
  pop_timer();
  return true;
}

void world::resume(strand& s) noexcept {
  if (s.ended) return;
  strand* const before = std::exchange(current_, &s);
  s.started = true;
  if (watchdog_ != nullptr) watchdog_->note(s.rank, s.call);
  s.body->resume();
  current_ = before;
  if (watchdog_ != nullptr) watchdog_->note(running(), {});
}

void world::resume_at(strand& s, time_ps when_ps) noexcept {
  events_.at(
      when_ps,
      [](void* self, std::uint64_t number) noexcept {
        auto& w = *static_cast<world*>(self);
        w.resume(w.strands_[number]);
      },
      this, s.number);
}

// A rank that is resumed for its stack records it and suspends itself again.
void world::suspend() noexcept {
  strand& s = *current_;
  s.body->suspend();
  while (asks_for_stacks_) {
    s.stack = stack_here();
    s.body->suspend();
  }
}

// ---- time -----------------------------------------------------------------------------------------------------------

time_ps world::local_time_ps(int rank) const noexcept {
  const strand& s = running() == rank ? *current_ : strands_[strands_of_[at(rank)].front()];
  return std::max(events_.now_ps(), s.busy_until_ps) + s.owes_ps;
}

void world::charge(int rank, time_ps work_ps, activity what) noexcept {
  if (options_.costless) return;
  strand& s = running() == rank ? *current_ : strands_[strands_of_[at(rank)].front()];
  if (rank == options_.today.slow_rank) work_ps *= options_.today.slow_times;
  s.owes_ps += work_ps;
  records_[at(rank)].spent_ps[static_cast<std::size_t>(what)] += work_ps;
}

// The traffic starts now and not at the rank's local time, which may be far ahead: the memory would be idle until then,
// and other ranks would wait for it.
void world::charge_copy(int rank, std::uint64_t bytes, time_ps fixed_ps, activity what) noexcept {
  if (options_.costless) return;
  charge(rank, fixed_ps + (bytes == 0 ? 0 : time_of(bytes, options_.machine.copy_bandwidth_gbs)), what);
  if (bytes == 0) return;
  time_ps& busy_until_ps = memory_busy_until_ps_[at(node_of(rank))];
  busy_until_ps = std::max(busy_until_ps, events_.now_ps()) + time_of(2 * bytes, options_.machine.memory_bandwidth_gbs);
  const time_ps late_ps = busy_until_ps - local_time_ps(rank);
  if (late_ps <= 0) return;
  strand& s = running() == rank ? *current_ : strands_[strands_of_[at(rank)].front()];
  s.owes_ps += late_ps;
  records_[at(rank)].spent_ps[static_cast<std::size_t>(what)] += late_ps;
}

// A switch of fibers costs more than a check: if no event comes before that time, it passes at once.
void world::let_pass(strand& s, time_ps until_ps) noexcept {
  if (events_.next_ps() > until_ps && (timers_.empty() || timers_.front().when_ps > until_ps) &&
      until_ps <= options_.limit_ps) {
    events_.advance(until_ps);
    return;
  }
  s.busy_until_ps = until_ps;
  resume_at(s, until_ps);
  suspend();
}

void world::pass_charged_time([[maybe_unused]] int rank) noexcept {
  RMA_ASSERT(running() == rank);
  strand& s = *current_;
  while (s.owes_ps != 0) let_pass(s, events_.now_ps() + std::exchange(s.owes_ps, 0));
}

void world::yield(int rank) noexcept {
  pass_charged_time(rank);
  let_pass(*current_, events_.now_ps());
}

void world::stay_away(int rank, time_ps for_ps) noexcept {
  pass_charged_time(rank);
  let_pass(*current_, events_.now_ps() + for_ps);
}

void world::arm([[maybe_unused]] int rank) noexcept {
  RMA_ASSERT(running() == rank);
  current_->woken = false;
}

void world::park(int rank, time_ps until_ps) noexcept {
  pass_charged_time(rank);
  strand& s = *current_;
  if (std::exchange(s.woken, false)) return;
  if (until_ps <= events_.now_ps()) return yield(rank);
  s.parked_ps = events_.now_ps();
  s.parked = true;
  s.deadline_ps = until_ps;
  set_timer(s);
  judge(s);
  suspend();
  s.woken = false;
  records_[at(rank)].spent_ps[static_cast<std::size_t>(activity::wait)] += events_.now_ps() - s.parked_ps;
}

void world::wake(int rank) noexcept {
  const time_ps when_ps = current_ == nullptr ? events_.now_ps() : local_time_ps(current_->rank);
  if (when_ps == events_.now_ps()) return wake_now(rank);
  events_.at(
      when_ps,
      [](void* self, std::uint64_t whom) noexcept { static_cast<world*>(self)->wake_now(static_cast<int>(whom)); },
      this, static_cast<std::uint64_t>(rank));
}

void world::wake_now(int rank) noexcept {
  for (const std::size_t number : strands_of_[at(rank)]) {
    strand& s = strands_[number];
    s.woken = true;
    s.fruitless = 0;
    if (!std::exchange(s.parked, false)) continue;
    judge(s);
    resume_at(s, events_.now_ps() + options_.machine.awake_after_ps(events_.now_ps() - s.parked_ps));
  }
}

void world::got_on([[maybe_unused]] int rank) noexcept {
  RMA_ASSERT(running() == rank);
  current_->fruitless = 0;
}

void world::enter_call(std::string_view call, int target) noexcept {
  RMA_ASSERT(current_ != nullptr);
  current_->call = call;
  current_->target = target;
  if (watchdog_ != nullptr) watchdog_->note(current_->rank, call);
}

// ---- time-outs: a fiber has one entry in the heap, which is moved when it turns out to be too early -----------------

void world::set_timer(strand& s) noexcept {
  if (s.deadline_ps >= s.timer_ps) return;
  s.timer_ps = s.deadline_ps;
  timers_.push_back({s.timer_ps, s.number});
  std::push_heap(timers_.begin(), timers_.end(), std::greater<>());
}

void world::pop_timer() noexcept {
  std::pop_heap(timers_.begin(), timers_.end(), std::greater<>());
  const timer t = timers_.back();
  timers_.pop_back();
  strand& s = strands_[t.strand];
  if (t.when_ps != s.timer_ps) return;  // stale: the fiber has an earlier one, or had one
  s.timer_ps = never_ps;
  if (!s.parked || s.ended) return;
  if (s.deadline_ps > t.when_ps) return set_timer(s);
  s.parked = false;
  if (s.fruitless++ == 0) s.fruitless_since_ps = events_.now_ps();
  judge(s);
  resume(s);
}

// Updates the count of fibers that may still make progress.
void world::judge(strand& s) noexcept {
  const bool is_futile = s.fruitless >= fruitless_max && events_.now_ps() - s.fruitless_since_ps >= fruitless_time_ps;
  const bool hopeless = s.ended || (s.parked && (s.deadline_ps == never_ps || is_futile));
  if (hopeless == s.hopeless) return;
  s.hopeless = hopeless;
  hopeful_ += hopeless ? -std::size_t{1} : std::size_t{1};
}

// ---- fibers ---------------------------------------------------------------------------------------------------------

std::size_t world::spawn(int rank, std::function<void()> run) {
  strand& s = add_strand(rank, false, [this, run = std::move(run)] {
    strand& self = *current_;
    run();
    self.ended = true;
    judge(self);
    wake_now(self.rank);
  });
  resume_at(s, local_time_ps(rank));
  return s.number;
}

void world::join(std::size_t helper_thread) noexcept {
  const int rank = strands_[helper_thread].rank;
  while (!strands_[helper_thread].ended) park(rank, never_ps);
}

// ---- deaths and ends ------------------------------------------------------------------------------------------------

bool world::active(int rank) const noexcept { return records_[at(rank)].what == fate::running; }

// Stops all fibers of the rank. Their stacks are not unwound.
void world::stop(int rank) noexcept {
  for (const std::size_t number : strands_of_[at(rank)]) {
    strands_[number].ended = true;
    judge(strands_[number]);
  }
}

void world::end_main(strand& s, fate what, int code, std::string error) noexcept {
  rank_record& r = records_[at(s.rank)];
  r.what = what;
  r.exit_code = code;
  r.error = std::move(error);
  r.ended_ps = what == fate::killed ? events_.now_ps() : local_time_ps(s.rank);
  --living_;
  stop(s.rank);
  if (what == fate::killed || inside_[at(s.rank)] != 0) announce(s.rank);
  tell_watchers();
}

void world::kill(int rank) noexcept {
  if (!active(rank)) return;
  end_main(strands_[strands_of_[at(rank)].front()], fate::killed, 1, {});
  if (running() == rank) suspend();
}

void world::kill_at(int rank, time_ps when_ps) {
  events_.at(
      when_ps, [](void* self, std::uint64_t whom) noexcept { static_cast<world*>(self)->kill(static_cast<int>(whom)); },
      this, static_cast<std::uint64_t>(rank));
}

void world::announce(int rank) noexcept {
  if (std::exchange(lost_[at(rank)], 1) != 0) return;
  deaths_.push_back(rank);
  tell_watchers();
}

void world::abort(int code, std::string_view message) noexcept {
  if (!aborted_) {
    aborted_ = true;
    abort_code_ = code;
    abort_message_ = message;
  }
  if (current_ != nullptr) suspend();
}

void world::exit_rank(int code) noexcept {
  RMA_ASSERT(current_ != nullptr);
  end_main(*current_, fate::finished, code, {});
  suspend();
  std::abort();  // it is never resumed
}

void world::watch_ends(int rank, bool yes) { watches_[at(rank)] = yes ? 1 : 0; }

void world::tell_watchers() noexcept {
  for (int r = 0; r < size(); ++r) {
    if (watches_[at(r)] != 0) wake(r);
  }
}

// ---- reports --------------------------------------------------------------------------------------------------------

std::string world::describe(int rank) const {
  const strand& s = strands_[strands_of_[at(rank)].front()];
  const std::string_view nowhere = s.parked ? "a request or the end of its runtime" : "no call of the library";
  const std::string_view call = s.call.empty() ? nowhere : s.call;
  const std::string target = s.target < 0 ? std::string() : fmt::format(" (target {})", s.target);
  return fmt::format("rank {} {} {}{}", rank, s.parked ? "waits in" : "is in", call, target);
}

// Each rank records its own stack, and is resumed for that.
std::vector<std::string> world::call_sites_of(const std::vector<int>& ranks) {
  (void)stack_here();  // the first call loads a library, for which a rank's stack is too small
  std::vector<call_stack> stacks;
  asks_for_stacks_ = true;
  for (const int rank : ranks) {
    strand& s = strands_[strands_of_[at(rank)].front()];
    if (s.started) resume(s);
    stacks.push_back(std::exchange(s.stack, {}));
  }
  asks_for_stacks_ = false;
  return call_sites(stacks);
}

void world::report(std::string_view why) {
  deadlock_ = fmt::format("{} at {}.{:09} s of virtual time", why, events_.now_ps() / 1'000'000'000'000,
                          events_.now_ps() / 1000 % 1'000'000'000);
  std::vector<int> shown;
  std::size_t more = 0;
  for (int r = 0; r < size(); ++r) {
    if (!active(r)) continue;
    shown.size() < lines_max ? shown.push_back(r) : void(++more);
  }
  const std::vector<std::string> sites = call_sites_of(shown);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    deadlock_ += fmt::format("\n  {}{}{}", describe(shown[i]), sites[i].empty() ? "" : ", called at ", sites[i]);
  }
  if (more != 0) deadlock_ += fmt::format("\n  and {} more ranks", more);
}

}  // namespace rma::sim
