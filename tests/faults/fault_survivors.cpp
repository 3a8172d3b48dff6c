// SPDX-License-Identifier: Apache-2.0
// The calls that survivors must be able to make, and the storm of operations in which a rank dies.
#include <algorithm>
#include <random>
#include <span>
#include <string>

#include "fault_stage.hpp"

namespace faults {
namespace {

/// Locks, reads, writes and atomics among the survivors, on library memory and on user memory.
void use_each_other(stage& on) {
  std::vector<std::uint64_t> block(600, 1);
  for (rma::Window<std::uint64_t>* win : {&on.spare, &on.created}) {
    for (const int to : on.survivors()) {
      {
        const auto hold = win->lock(rma::exclusive, to);
        win->put(win->get(to, 20) + 1, to, 20);
      }
      const auto hold = win->lock(rma::shared, to);
      (void)win->fetch_and_op(std::uint64_t{1}, to, 21, rma::sum);
      win->accumulate(std::span<const std::uint64_t>(block), to, 100, rma::sum);
      win->flush(to);
    }
  }
}

/// Totals of use_each_other, once all survivors are through.
void check_totals(stage& on) {
  const auto wanted = static_cast<std::uint64_t>(on.size() - 1);
  for (const std::span<const std::uint64_t> part :
       {std::span<const std::uint64_t>(on.spare.local()), std::span<const std::uint64_t>(on.memory)}) {
    if (part[20] != wanted) on.wrong("updates under the lock: " + std::to_string(part[20]));
    if (part[21] != wanted) on.wrong("fetch_and_op among survivors: " + std::to_string(part[21]));
    if (!std::ranges::all_of(part.subspan(100, 600), [&](std::uint64_t v) { return v == wanted; })) {
      on.wrong("accumulate among survivors");
    }
  }
}

using window = rma::Window<std::uint64_t>;

/// `body` under a lock of `to`. The lock is given back whatever happens; returns the first failure. (A scope left by
/// an exception would mark the window failed.)
template <class Body>
rma::status locked(window& win, rma::lock_kind kind, int to, Body body) {
  const rma::status opened = win.lock_nothrow(kind, to);
  if (!rma::ok(opened)) return opened;
  const rma::status done = body();
  const rma::status closed = win.try_unlock(to);
  return rma::ok(done) ? closed : done;
}

/// One random operation on one of `targets`.
rma::status one_operation(stage& on, std::mt19937_64& random, const std::vector<int>& targets,
                          const std::vector<std::uint64_t>& block) {
  const int to = targets[random() % targets.size()];
  const std::size_t at = 1000 + random() % 2000;
  const std::span<const std::uint64_t> range(block);
  std::uint64_t old = 0;
  switch (random() % 6) {
    case 0:
      return locked(on.window, rma::exclusive, to, [&] {
        const rma::status s = on.window.try_get(old, to, at);
        return rma::ok(s) ? on.window.try_put(old + 1, to, at) : s;
      });
    case 1:
      return locked(on.window, rma::shared, to,
                    [&] { return on.window.try_fetch_and_op(std::uint64_t{1}, old, to, at, rma::sum); });
    case 2:
      return locked(on.window, rma::shared, to,
                    [&] { return on.window.try_accumulate(range.first(600), to, at, rma::sum); });
    case 3:
      return locked(on.created, rma::shared, to,
                    [&] { return on.created.try_compare_and_swap(std::uint64_t{0}, std::uint64_t{1}, old, to, at); });
    case 4: return locked(on.created, rma::exclusive, to, [&] { return on.created.try_put(range, to, at); });
    default: {
      const rma::status opened = on.window.lock_all_nothrow();
      if (!rma::ok(opened)) return opened;
      const rma::status done = on.window.try_accumulate(std::uint64_t{1}, to, at, rma::sum);
      const rma::status flushed = on.window.try_flush(to);
      const rma::status closed = on.window.try_unlock_all();
      return !rma::ok(done) ? done : rma::ok(flushed) ? closed : flushed;
    }
  }
}

}  // namespace

void storm_until_killed(stage& on) {
  std::mt19937_64 random(on.seed * 100 + static_cast<std::uint64_t>(on.rank()));
  std::vector<int> everybody = on.survivors();
  everybody.push_back(on.victim);
  const std::vector<std::uint64_t> block(1000, 1);
  while (true) (void)one_operation(on, random, everybody, block);
}

// The victim dies wherever it happens to be: between two instructions of a lock, with a stripe's lock, in the middle of
// a request. The others must be able to go on among themselves, whichever word it left behind.
void storm_until_death(stage& on) {
  std::mt19937_64 random(on.seed * 100 + static_cast<std::uint64_t>(on.rank()));
  std::vector<int> everybody = on.survivors();
  everybody.push_back(on.victim);
  const std::vector<std::uint64_t> block(1000, 1);
  const std::uint64_t before_kill = on.seed % 3000;
  on.ready(on.killer);
  if (on.rank() == on.killer) on.wait_ready(on.survivors());  // a rank still in the stage's barrier would be told there
  for (std::uint64_t i = 0; on.runtime.failed_ranks().empty(); ++i) {
    if (on.rank() == on.killer && i == before_kill) on.kill_now();
    const rma::status s = one_operation(on, random, everybody, block);
    if (!rma::ok(s) && s != rma::status::peer_failed) on.wrong("storm: " + std::string(rma::name_of(s)));
    on.runtime.progress();
  }
  on.must_be_told("barrier", [&] { on.world.barrier(); });
  const std::vector<int> alive = on.survivors();
  for (int i = 0; i < 2000; ++i) {
    const rma::status s = one_operation(on, random, alive, block);
    if (rma::ok(s)) continue;
    // A word that the dead one held fails once more for whoever finds it; it may not go on for ever.
    if (s != rma::status::peer_failed || i > 1000) on.wrong("after the storm: " + std::string(rma::name_of(s)));
  }
}

void live_on(stage& on) {
  const std::vector<int> dead = on.runtime.failed_ranks();
  if (dead != std::vector<int>{on.victim}) on.wrong("failed_ranks() does not have exactly the victim");
  use_each_other(on);
  if (on.world.try_barrier() != rma::status::peer_failed) on.wrong("barrier with a dead rank");
  if (on.spare.try_fence() != rma::status::peer_failed) on.wrong("fence with a dead rank");
  rma::Team alive = on.world.shrink();
  if (alive.size() != on.size() - 1) on.wrong("members of the shrunk team");
  alive.barrier();
  check_totals(on);
  if (alive.allreduce(1, rma::sum) != alive.size()) on.wrong("allreduce of the shrunk team");
  auto win = rma::Window<int>::allocate(alive, 10, {.name = "second life"});
  const int next = (alive.rank() + 1) % alive.size();
  win.fence();
  win.put(alive.rank() + 1, next, 0);
  win.fence(rma::no_succeed);
  if (win[0] != (alive.rank() + alive.size() - 1) % alive.size() + 1)
    on.wrong("put in a new window of the shrunk team");
  win.free();
  report("survived rank=" + std::to_string(on.rank()));
  alive.barrier();
}

}  // namespace faults
