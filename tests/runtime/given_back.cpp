// SPDX-License-Identifier: Apache-2.0
// Goal: a window or a team that nobody holds any more leaves nothing behind, wherever its members are; and one more
// window costs the same however many there are.
//
// Method: windows of each kind and teams of each origin are made, used and dropped, again and again. The amount that a
// rank has in use of its segment, and of its heap, at the end of the last rounds is what it was at the end of the first
// ones, to the byte for the segment. `live N`: the processor time of the last windows of N that live together, against
// that of the same number at an eighth of the way.
//
// Break: let reclaimer::release keep the parts; send no news between nodes; let a team's end drop nothing; erase no
// record. For `live`: let segment_map::propose go through all that is taken.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "rma/rma.hpp"
#include "runtime/team_core.hpp"

namespace {

constexpr int rounds_before = 16;
constexpr std::size_t heap_allowed_bytes = 24 << 10;  ///< tables that have found their size late

struct usage {
  std::size_t segment_bytes = 0;
  std::size_t heap_bytes = 0;
};

class churn {
 public:
  explicit churn(rma::Runtime& rt) : rt_(rt), memory_(512) {}

  /// Makes and drops so many.
  void run(std::string_view what, int rounds, const std::function<void()>& make_and_drop) {
    for (int i = 0; i < rounds_before; ++i) make_and_drop();
    const usage before = at_rest();
    for (int i = rounds_before; i < rounds; ++i) make_and_drop();
    const usage after = at_rest();
    if (after.segment_bytes == before.segment_bytes && after.heap_bytes <= before.heap_bytes + heap_allowed_bytes)
      return;
    fmt::print("rank {}: {} of '{}' take {} -> {} bytes of the segment, {} -> {} of the heap\n", rt_.rank(), rounds,
               what, before.segment_bytes, after.segment_bytes, before.heap_bytes, after.heap_bytes);
    good_ = false;
  }

  template <class Make>
  void windows(std::string_view what, int rounds, Make&& make) {
    const int right = (rt_.rank() + 1) % rt_.size();
    run(what, rounds, [&] {
      auto win = make();
      {
        auto epoch = win.lock(rma::shared, right);
        win.accumulate(1L, right, 3, rma::sum);
      }
      win.fence();
      win.put(1L, right, 0);
      win.fence(rma::no_succeed);
    });
  }

  void all(int rounds) {
    const rma::Team world = rt_.world();
    const std::span<long> mine(memory_);
    windows("allocate", rounds, [&] { return rma::Window<long>::allocate(world, 512); });
    windows("create", rounds, [&] { return rma::Window<long>::create(world, mine); });
    if (world.one_node())
      windows("allocate_shared", rounds, [&] { return rma::Window<long>::allocate_shared(world, 512); });
    run("create_dynamic", rounds, [&] {
      auto win = rma::Window<long>::create_dynamic(world);
      (void)win.attach(mine);
      win.detach(mine);
    });
    run("split", rounds, [&] { world.split(rt_.rank() % 2).barrier(); });
    run("split by all", rounds, [&] { world.split(0, -rt_.rank()).barrier(); });
    run("shrink", rounds, [&] { world.shrink().barrier(); });
    run("node", rounds, [&] { world.node().barrier(); });
    run("team_of", rounds, [&] { rt_.team_of("rma://world").barrier(); });
    run("a window of a team", rounds, [&] { (void)rma::Window<long>::allocate(world.split(rt_.rank() % 2), 512); });
  }
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  /// When all has come back that was dropped so far. News of it goes up and down a tree: each exchange of all with all
  /// brings it one step further.
  usage at_rest() {
    auto& core = *rt_.world().core().rt;
    core.dropped->announce();
    const std::vector<int> ones(static_cast<std::size_t>(rt_.size()), 1);
    for (int distance = 1; distance < 2 * rt_.size(); distance *= 2) {
      (void)rt_.world().alltoall(std::span(ones));
      (void)rt_.world().alltoall(std::span(ones));
    }
    core.reap_dropped();
    return {core.segment_in_use(), ::mallinfo2().uordblks};
  }

  rma::Runtime& rt_;
  std::vector<long> memory_;
  bool good_ = true;
};

/// True if one more of so many windows costs no more than one of few does.
bool live_windows_cost_alike(rma::Runtime& rt, int count) {
  std::vector<rma::Window<long>> live;
  const auto cost_of_next = [&](int next) {
    const std::clock_t begin = std::clock();
    for (int i = 0; i < next; ++i) live.push_back(rma::Window<long>::allocate(rt.world(), 8));
    return std::clock() - begin;
  };
  const int few = count / 8;
  (void)cost_of_next(few / 2);
  const std::clock_t early = cost_of_next(few / 2);
  (void)cost_of_next(count - few - few / 2);
  const std::clock_t late = cost_of_next(few / 2);
  if (late < 3 * early) return true;
  fmt::print("{} windows cost {} ticks, the same number behind {} others {}\n", few / 2, early, count - few / 2, late);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const std::vector<std::string_view> args(argv + 1, argv + argc);
  bool good = true;
  if (!args.empty() && args[0] == "live") {
    const int count = std::atoi(args[1].data());
    good = live_windows_cost_alike(rt, count);
    if (good) fmt::print("given back: {} live\n", count);
  } else {
    const int rounds = args.empty() ? 300 : std::atoi(args[0].data());
    churn test(rt);
    test.all(rounds);
    good = rt.world().allreduce(test.good() ? 1 : 0, rma::min) != 0;
    if (good && rt.rank() == 0) fmt::print("given back: {} of each\n", rounds);
  }
  return good ? 0 : 1;
}
