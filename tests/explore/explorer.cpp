// SPDX-License-Identifier: Apache-2.0
#include "explorer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fabric/sim/handle.hpp"
#include "fabric/sim/run.hpp"

namespace rma::explore {
namespace {

/// A rank that spins for so many steps waits for somebody who has to run for that.
constexpr std::uint64_t patience = 2000;

explorer* active = nullptr;  // of this test program, which has one thread

}  // namespace

/// One run.
class explorer {
 public:
  explorer(const scenario& what, const std::vector<std::uint64_t>& schedule) : what_(what), schedule_(schedule) {}

  void run(const std::function<void(player&)>& play) {
    sim::world_options o;
    o.ranks = what_.ranks;
    o.costless = true;
    o.machine.copy_bandwidth_gbs = 1e9;
    o.settings = what_.settings;
    o.settings.emplace("RMA_SEGMENT_BYTES", "2M");  // less to map and unmap
    sim::world w(o);
    world_ = &w;
    active = this;
    w.run([&](int rank) {
      Runtime rt(sim::config_of(sim::make_handle(w, rank)));
      player me(*this, rt);
      play(me);
      return 0;
    });
    active = nullptr;
    for (int r = 0; r < w.size() && failure.empty(); ++r) {
      if (w.record(r).what == sim::fate::threw) failure = fmt::format("rank {}: {}", r, w.record(r).error);
    }
    if (failure.empty() && !w.deadlock().empty()) failure = w.deadlock();
    world_ = nullptr;
  }
  void point() noexcept {
    if (!begun_ || world_ == nullptr || world_->running() < 0) return;
    ++same_rank_;
    const bool preempt = next_ < schedule_.size() && schedule_[next_] == steps;
    ++steps;
    if (preempt) ++next_;
    if (!preempt && same_rank_ < patience) return;
    same_rank_ = 0;
    world_->yield(world_->running());
    same_rank_ = 0;
  }
  void begin() noexcept { begun_ = true; }
  void fail(std::string why) {
    if (failure.empty()) failure = std::move(why);
  }

  std::uint64_t steps = 0;
  std::string failure;

 private:
  const scenario& what_;
  const std::vector<std::uint64_t>& schedule_;
  std::size_t next_ = 0;
  std::uint64_t same_rank_ = 0;
  bool begun_ = false;
  sim::world* world_ = nullptr;
};

void player::begin() {
  rt.world().barrier();
  by_.begin();
}

void player::check(bool holds, const char* what) {
  if (!holds) by_.fail(fmt::format("rank {}: {}", rt.rank(), what));
}

namespace {

/// Runs the schedule, and then those that go on from it with one preemption more.
class search {
 public:
  search(const scenario& what, const std::function<void(player&)>& play) : what_(what), play_(play) {}
  verdict result;

  bool from(std::vector<std::uint64_t>& schedule) {
    explorer one(what_, schedule);
    one.run(play_);
    ++result.runs;
    result.steps_max = std::max(result.steps_max, one.steps);
    if (!one.failure.empty()) {
      result.failure = fmt::format("{}; schedule: preempted before steps {}", one.failure, text(schedule));
      return false;
    }
    if (schedule.size() >= what_.preemptions) return true;
    const std::uint64_t steps = one.steps;
    for (std::uint64_t at = schedule.empty() ? 0 : schedule.back() + 1; at < steps; ++at) {
      if (result.runs >= what_.runs_max) return true;
      schedule.push_back(at);
      const bool well = from(schedule);
      schedule.pop_back();
      if (!well) return false;
    }
    return true;
  }

 private:
  static std::string text(const std::vector<std::uint64_t>& schedule) {
    std::string all;
    for (const std::uint64_t at : schedule) all += fmt::format("{} ", at);
    return all.empty() ? "(none)" : all;
  }
  const scenario& what_;
  const std::function<void(player&)>& play_;
};

}  // namespace

verdict explore(const scenario& what, const std::function<void(player&)>& play) {
  search all(what, play);
  std::vector<std::uint64_t> schedule;
  (void)all.from(schedule);
  return all.result;
}

}  // namespace rma::explore

namespace rma::detail {

void explore_point() noexcept {
  if (rma::explore::active != nullptr) rma::explore::active->point();
}

}  // namespace rma::detail
