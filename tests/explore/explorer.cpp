// SPDX-License-Identifier: Apache-2.0
#include "explorer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "fabric/sim/fault_model.hpp"
#include "fabric/sim/handle.hpp"
#include "fabric/sim/run.hpp"

namespace rma::explore {
namespace {

/// A rank that spins for so many steps waits for somebody who has to run for that.
constexpr std::uint64_t patience = 2000;
/// Between nodes: longer than the first pause of who waits for a lock of the network.
constexpr sim::time_ps away_ps = 1'500'000;
/// At random there are many preemptions, and writers that wait for long let readers in.
constexpr sim::time_ps away_by_lot_ps = 20'000;
/// Nobody sleeps for so long without having been forgotten; by then everybody else has ended.
constexpr sim::time_ps forgotten_ps = 20'000'000'000;
constexpr sim::time_ps ended_ps = 2 * forgotten_ps;

explorer* active = nullptr;  // the one of this test program, which has one thread

/// Work and the network take no time.
sim::parameters costless_machine() {
  sim::parameters m;
  m.link_bandwidth_gbs = m.switch_throughput_gbs = m.dma_speed_gbs = 1e9;
  m.copy_bandwidth_gbs = m.memory_bandwidth_gbs = 1e9;
  m.packet_payload_bytes = std::uint64_t{1} << 20;
  m.dma_engines = 1;
  return m;
}

}  // namespace

/// When the running rank is preempted: before the steps of a list, or as the generator says.
class schedule {
 public:
  explicit schedule(const std::vector<std::uint64_t>& before) : before_(&before) {}
  explicit schedule(std::uint64_t seed) : lots_(seed), one_in_(std::uint64_t{1} << (1 + lots_.below(7))) {}

  bool preempts(std::uint64_t step) noexcept {
    if (before_ == nullptr) return lots_.one_in(one_in_);
    if (next_ == before_->size() || (*before_)[next_] != step) return false;
    ++next_;
    return true;
  }
  [[nodiscard]] bool is_by_lot() const noexcept { return before_ == nullptr; }
  /// 0 ... most
  sim::time_ps lot(sim::time_ps most) noexcept {
    return static_cast<sim::time_ps>(lots_.below(static_cast<std::uint64_t>(most) + 1));
  }
  /// The preemption that came last was the last.
  [[nodiscard]] bool is_over() const noexcept { return before_ != nullptr && next_ == before_->size(); }

 private:
  const std::vector<std::uint64_t>* before_ = nullptr;
  std::size_t next_ = 0;
  sim::rng lots_{0};
  std::uint64_t one_in_ = 0;
};

/// One run.
class explorer {
 public:
  explorer(const scenario& what, schedule when) : what_(what), schedule_(std::move(when)) {}

  void run(const std::function<void(player&)>& play) {
    sim::world_options o;
    o.ranks = what_.ranks;
    o.ranks_per_node = what_.ranks_per_node;
    o.topology = "switch";
    o.costless = true;
    o.inlined = what_.inlined;
    o.machine = costless_machine();
    o.settings = what_.settings;
    o.settings.emplace("RMA_SEGMENT_BYTES", "2M");  // less to map and unmap
    o.settings.emplace("RMA_PROGRESS_THREAD",
                       "0");  // a fiber less for each rank, whose steps would multiply the schedules
    sim::world w(o);
    world_ = &w;
    active = this;
    w.run([&](int rank) {
      Runtime rt(sim::config_of(sim::make_handle(w, rank)));
      player me(*this, rt);
      play(me);
      const bool late = w.events().now_ps() > (ended_.empty() ? 0 : ended_ps) + forgotten_ps;
      if (late) fail(fmt::format("rank {}, or who it waited for, slept and should have been woken", rank));
      return 0;
    });
    active = nullptr;
    for (int r = 0; r < w.size() && failure.empty(); ++r) {
      if (w.record(r).what == sim::fate::threw) failure = fmt::format("rank {}: {}", r, w.record(r).error);
    }
    if (failure.empty() && !w.deadlock().empty()) failure = w.deadlock();
    world_ = nullptr;
  }
  void point(const void* at, bool writes) noexcept {
    if (!begun_ || world_ == nullptr) return;
    const int rank = world_->running();
    if (away_ >= 0 && rank != away_) met_ |= at == nullptr || at_ == nullptr || (at == at_ && (writes || writes_));
    if (rank < 0 || ended_.contains(rank)) return;
    ++same_rank_;
    const bool preempted = schedule_.preempts(steps++);
    if (!preempted && same_rank_ < patience) return;
    if (preempted && schedule_.is_over()) {
      away_ = rank;
      at_ = at;
      writes_ = writes;
    }
    same_rank_ = 0;
    let_others(rank);
    same_rank_ = 0;
    if (away_ != rank) return;
    away_ = -1;
    equal = !met_;
  }
  void begin() noexcept { begun_ = true; }
  void end(int rank) {
    ended_.insert(rank);
    const sim::time_ps now_ps = world_->events().now_ps();
    if (now_ps > forgotten_ps) fail(fmt::format("rank {} slept and should have been woken", rank));
    world_->stay_away(rank, std::max<sim::time_ps>(ended_ps - now_ps, 0));
  }
  void fail(std::string why) {
    if (failure.empty()) failure = std::move(why);
  }

  std::uint64_t steps = 0;
  bool equal = false;  ///< to a schedule with its last preemption later, or without it
  std::string failure;

 private:
  void let_others(int rank) noexcept {
    if (world_->nodes() == 1) return world_->yield(rank);
    const sim::time_ps now_ps = world_->events().now_ps();
    if (schedule_.is_by_lot()) return world_->stay_away(rank, schedule_.lot(away_by_lot_ps));
    back_ps_ = std::max(back_ps_, now_ps) + away_ps;
    world_->stay_away(rank, back_ps_ - now_ps);
  }

  const scenario& what_;
  schedule schedule_;
  std::uint64_t same_rank_ = 0;
  bool begun_ = false;
  std::set<int> ended_;
  sim::time_ps back_ps_ = 0;  ///< when the last of those who are away comes back
  sim::world* world_ = nullptr;
  // The last preemption:
  int away_ = -1;             ///< the rank that was preempted
  const void* at_ = nullptr;  ///< the object that it was about to use
  bool writes_ = false;
  bool met_ = false;  ///< others used it meanwhile
};

void player::begin() {
  rt.world().barrier();
  by_.begin();
}

void player::end() { by_.end(rt.rank()); }

void player::check(bool holds, const char* what) {
  if (!holds) by_.fail(fmt::format("rank {}: {}", rt.rank(), what));
}

namespace {

/// Runs the schedule, and then those that go on from it with one preemption more.
class search {
 public:
  search(const scenario& what, const std::function<void(player&)>& play) : what_(what), play_(play) {}
  verdict result;

  bool from(std::vector<std::uint64_t>& before) {
    explorer one(what_, schedule(before));
    if (!run(one)) {
      result.failure += "; schedule: preempted before steps " + text(before);
      return false;
    }
    if (one.equal) ++result.equal;
    if ((one.equal && !what_.all) || before.size() >= what_.preemptions) return true;
    const std::uint64_t steps = one.steps;
    for (std::uint64_t at = before.empty() ? 0 : before.back() + 1; at < steps; ++at) {
      if (result.runs >= what_.runs_max) return true;
      before.push_back(at);
      const bool well = from(before);
      before.pop_back();
      if (!well) return false;
      if (before.empty() && tells_)
        fmt::print(stderr, "first preemption before step {} of {}: {} schedules so far\n", at, steps, result.runs);
    }
    return true;
  }
  bool at_random(std::uint64_t seed) {
    explorer one(what_, schedule(seed));
    if (run(one)) return true;
    result.failure += fmt::format("; schedule: seed {}", seed);
    return false;
  }

 private:
  bool run(explorer& one) {
    one.run(play_);
    ++result.runs;
    result.steps_max = std::max(result.steps_max, one.steps);
    result.failure = one.failure;
    return one.failure.empty();
  }
  static std::string text(const std::vector<std::uint64_t>& before) {
    std::string all;
    for (const std::uint64_t at : before) all += fmt::format("{} ", at);
    return all.empty() ? "(none)" : all;
  }
  const scenario& what_;
  const std::function<void(player&)>& play_;
  const bool tells_ = std::getenv("EXPLORE_PROGRESS") != nullptr;
};

}  // namespace

verdict explore(const scenario& what, const std::function<void(player&)>& play) {
  search all(what, play);
  std::vector<std::uint64_t> before;
  (void)all.from(before);
  return all.result;
}

verdict explore_at_random(const scenario& what, std::uint64_t seed_first, std::uint64_t runs,
                          const std::function<void(player&)>& play) {
  search some(what, play);
  for (std::uint64_t seed = seed_first; seed < seed_first + runs; ++seed) {
    if (!some.at_random(seed)) break;
  }
  return some.result;
}

}  // namespace rma::explore

namespace rma::detail {

void explore_point(const void* at, bool writes) noexcept {
  if (rma::explore::active != nullptr) rma::explore::active->point(at, writes);
}

}  // namespace rma::detail
