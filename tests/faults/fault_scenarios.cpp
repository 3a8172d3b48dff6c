// SPDX-License-Identifier: Apache-2.0
// Where the victim is when it dies, and where the others are.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "fault_stage.hpp"

namespace faults {
namespace {

// ---- the victim holds a lock; the others wait for it --------------------------------------------------------------

/// After its waiters were told, the lock must be free again, and no update under it be lost.
void lock_again(stage& on, int home) {
  for (int i = 0; i < 10; ++i) {
    const auto hold = on.window.lock(rma::exclusive, home);
    on.window.put(on.window.get(home, 9) + 1, home, 9);
  }
}

void wait_for_lock(stage& on) {
  on.world.barrier();  // the victim holds it
  on.ready(on.victim);
  on.must_be_told("lock", [&] { on.window.lock(rma::exclusive, on.home).unlock(); });
  lock_again(on, on.home);
}

void hold_exclusive(stage& on) {
  const auto hold = on.window.lock(rma::exclusive, on.home);
  on.window.put(std::uint64_t{1}, on.home, 0);
  on.world.barrier();
  on.wait_asleep(on.survivors());
  on.die();
}

void hold_shared(stage& on) {
  const auto hold = on.window.lock(rma::shared, on.home);
  on.world.barrier();
  on.wait_asleep(on.survivors());
  on.die();
}

void hold_all(stage& on) {
  const auto hold = on.window.lock_all();
  on.window.put(std::uint64_t{1}, on.home, 0);
  on.world.barrier();
  on.wait_asleep(on.survivors());
  on.die();
}

void hold_own(stage& on) {
  const auto hold = on.window.lock(rma::exclusive, on.rank());
  on.world.barrier();
  on.wait_asleep(on.survivors());
  on.die();
}

void wait_for_lock_of_victim(stage& on) {
  on.world.barrier();
  on.ready(on.victim);
  on.must_be_told("lock", [&] { on.window.lock(rma::exclusive, on.victim).unlock(); });
}

void hold_created(stage& on) {
  const auto hold = on.created.lock(rma::exclusive, on.home);
  on.created.put(std::uint64_t{1}, on.home, 0);
  on.world.barrier();
  on.wait_asleep(on.survivors());
  on.die();
}

void wait_for_lock_of_created(stage& on) {
  on.world.barrier();
  on.ready(on.victim);
  on.must_be_told("lock", [&] { on.created.lock(rma::exclusive, on.home).unlock(); });
}

// ---- collectives: the victim is inside, or the others are -----------------------------------------------------------

void inside_fence(stage& on) {
  on.window.fence();
  on.window.put(std::uint64_t{1}, on.home, 1);
  on.ready(on.killer);
  on.window.fence();
}

/// The victim has already come to this fence, so it may still succeed; the next one cannot.
void fence_with_dead(stage& on) {
  on.window.fence();
  if (on.rank() == on.killer) on.kill_asleep();
  on.must_be_told("fence", [&] {
    on.window.fence();
    on.window.fence();
  });
}

void inside_barrier(stage& on) {
  on.ready(on.killer);
  on.world.barrier();
}

void barrier_with_dead(stage& on) {
  if (on.rank() == on.killer) on.kill_asleep();
  on.must_be_told("barrier", [&] {
    on.world.barrier();
    on.world.barrier();
  });
}

/// The others sleep in a call; the victim is elsewhere.
void die_outside(stage& on) {
  on.wait_asleep(on.survivors());
  on.die();
}

void sleep_in_fence(stage& on) {
  on.ready(on.victim);
  on.must_be_told("fence", [&] { on.window.fence(); });
}

void sleep_in_barrier(stage& on) {
  on.ready(on.victim);
  on.must_be_told("barrier", [&] { on.world.barrier(); });
}

void sleep_in_allreduce(stage& on) {
  on.ready(on.victim);
  on.must_be_told("allreduce", [&] { (void)on.world.allreduce(1, rma::sum); });
}

void sleep_in_allocate(stage& on) {
  on.ready(on.victim);
  on.must_be_told("allocate", [&] { (void)rma::Window<int>::allocate(on.world, 100); });
}

/// Collectives of all kinds and sizes, several under way; the same on all ranks.
struct collective_storm {
  std::vector<std::uint64_t> small, large, all, some;
  explicit collective_storm(const stage& on)
      : small(4), large(20000), all(4 * static_cast<std::size_t>(on.size())), some(large.size()) {}
  void turn(stage& on) {
    std::vector<rma::Request> under_way;
    under_way.push_back(on.world.iallreduce(std::span(large), rma::max));
    under_way.push_back(on.world.ialltoall(std::span(all), std::span(all)));
    under_way.push_back(on.world.ibroadcast(std::span(some), on.home));
    on.world.allreduce(std::span(small), rma::max);
    under_way.push_back(on.world.ibarrier());
    rma::wait_all(under_way);
  }
};

void die_in_collectives(stage& on) {
  collective_storm storm(on);
  for (std::uint64_t left = on.seed % 23; left > 0; --left) storm.turn(on);
  rma::Request begun = on.world.iallreduce(std::span(storm.large), rma::max);
  for (std::uint64_t left = on.seed / 23 % 9; left > 0; --left) (void)begun.test();  // in a later round
  on.die();
}

// A rank that has been told may use its buffers again: failed operations do not write there any more.
void collectives_with_dead(stage& on) {
  collective_storm storm(on);
  on.must_be_told("(team of", [&] {  // behind whichever call it is
    for (;;) storm.turn(on);
  });
  constexpr std::uint64_t mark = 0x5a5a5a5a5a5a5a5a;
  for (auto* const each : {&storm.small, &storm.large, &storm.all, &storm.some})
    std::fill(each->begin(), each->end(), mark);
  rma::Team rest = on.world.shrink();
  for (int i = 0; i < 50; ++i) {
    std::vector<std::uint64_t> sums(3000, 1);
    rest.iallreduce(std::span(sums), rma::sum).wait();
    if (sums.back() != static_cast<std::uint64_t>(rest.size())) on.wrong("allreduce after shrink");
  }
  for (const auto& [name, each] : {std::pair("small", &storm.small), std::pair("large", &storm.large),
                                   std::pair("all", &storm.all), std::pair("some", &storm.some)}) {
    const auto at = std::ranges::find_if(*each, [](std::uint64_t v) { return v != mark; });
    if (at != each->end())
      on.wrong("a buffer of a failed collective was written later: " + std::string(name) + " at " +
               std::to_string(at - each->begin()) + ", " +
               std::to_string(std::ranges::count_if(*each, [](std::uint64_t v) { return v != mark; })) + " elements");
  }
}

// ---- the others wait for something that only the victim can do
// --------------------------------------------------------

void sleep_for_signal(stage& on) {
  on.ready(on.victim);
  on.must_be_told("wait_signal", [&] { on.window.wait_signal(2, 1, on.victim); });
}

void sleep_for_any_signal(stage& on) {
  on.ready(on.victim);
  on.must_be_told("wait_signal", [&] { on.window.wait_signal(2); });
}

void sleep_for_word(stage& on) {
  on.ready(on.victim);
  on.must_be_told("wait_until", [&] {
    (void)on.window.wait_until(
        7, [](std::uint64_t value) { return value != 0; }, on.victim);
  });
}

void sleep_for_word_of_any(stage& on) {
  on.ready(on.victim);
  on.must_be_told("wait_until", [&] { (void)on.window.wait_until(7, [](std::uint64_t value) { return value != 0; }); });
}

void sleep_in_start(stage& on) {
  const int group[] = {on.victim};
  on.ready(on.victim);
  on.must_be_told("start", [&] { on.window.start(group); });
}

void sleep_in_wait(stage& on) {
  const int group[] = {on.victim};
  on.window.post(group);
  on.ready(on.victim);
  on.must_be_told("wait", [&] { on.window.wait(); });
}

void die_while_started(stage& on) {
  const std::vector<int> group = on.survivors();
  on.window.start(group);
  for (const int r : group) on.window.put(std::uint64_t{5}, r, 0);
  on.wait_asleep(group);
  on.die();
}

/// The epochs that the victim has spoilt leave nothing behind that keeps the others from their next ones.
void sleep_in_start_of_all(stage& on) {
  std::vector<int> living = on.survivors();
  std::erase(living, on.rank());
  std::vector<int> all = living;
  all.push_back(on.victim);
  on.window.post(all);
  on.ready(on.victim);
  on.must_be_told("start", [&] { on.window.start(all); });
  on.window.start(living);  // with the posts that the other one has found
  on.window.complete();
  on.must_be_told("wait", [&] { on.window.wait(); });
  on.window.post(living);
  on.window.start(living);
  for (const int r : living) on.window.put(std::uint64_t{6}, r, static_cast<std::size_t>(on.rank()));
  on.window.complete();
  on.window.wait();
  for (const int r : living) {
    if (on.window[static_cast<std::size_t>(r)] != 6) on.wrong("put after a failed epoch");
  }
}

// ---- operations
// -------------------------------------------------------------------------------------------------------

/// Memory of the victim's own: it is gone with the victim, so that operations on it must fail.
void read_created(stage& on) {
  if (on.created.lock_all_nothrow() != rma::status::done) on.wrong("lock_all of the created window");
  on.ready(on.killer);
  if (on.rank() == on.killer) {  // a rank still in the stage's barrier would be told there
    on.wait_ready(on.survivors());
    on.kill_now();
  }
  std::vector<std::uint64_t> to(1000);
  on.must_be_told("(window 'created')", [&] {  // by get, or by the flush of a get that was under way
    while (true) {
      (void)on.created.get(on.victim, 3);
      on.created.get(std::span(to), on.victim, 0);
      on.created.flush(on.victim);
    }
  });
  (void)on.created.try_unlock_all();
}

void serve_until_killed(stage& on) {
  while (true) on.runtime.progress();
}

// ---- ends that nobody sent
// --------------------------------------------------------------------------------------------

void exit_early(stage& on) {
  on.wait_asleep(on.survivors());
  report("killed rank=" + std::to_string(on.rank()) + " at=" + std::to_string(monotonic_ns()));
  ::_exit(0);
}

void exit_normally_but_early(stage& on) {
  on.wait_asleep(on.survivors());
  report("killed rank=" + std::to_string(on.rank()) + " at=" + std::to_string(monotonic_ns()));
  std::exit(3);
}

/// Not a std::exception, so that main does not catch it.
struct uncaught {};

void throw_out_of_main(stage& on) {
  on.wait_asleep(on.survivors());
  report("killed rank=" + std::to_string(on.rank()) + " at=" + std::to_string(monotonic_ns()));
  throw uncaught{};
}

void abort_job(stage& on) {
  on.wait_asleep(on.survivors());
  on.runtime.abort(7, "the reactor is too hot");
}

void sleep_until_aborted(stage& on) {
  on.ready(on.victim);
  on.world.barrier();
  on.wrong("a barrier that cannot end has ended");
}

/// More than is sent at once: what the survivors still have to answer goes to nobody.
void die_in_transfers(stage& on) {
  std::vector<std::uint64_t> from(4096), to(4096);
  if (on.window.lock_all_nothrow() != rma::status::done) on.wrong("lock_all");
  on.wait_ready(on.survivors());
  for (int i = 0; i < 16; ++i) {
    for (const int r : on.survivors()) {
      on.window.put(std::span<const std::uint64_t>(from), r, 0);
      on.window.get(std::span(to), r, 0);
      on.window.accumulate(std::uint64_t{1}, r, 5, rma::sum);
    }
  }
  on.die();
}

// A rank that only makes progress and never waits hears of it, too.
void die_unwaited(stage& on) {
  on.wait_ready(on.survivors());
  on.die();
}

void make_progress(stage& on) {
  on.ready(on.victim);
  on.must_be_told("progress", [&] {
    while (on.runtime.failed_ranks().empty()) on.runtime.progress();
    const int dead = on.runtime.failed_ranks().front();
    throw rma::Error(rma::status::peer_failed, "progress: world rank " + std::to_string(dead) + " is dead", dead);
  });
}

constexpr scenario table[] = {
    {"lock_exclusive", hold_exclusive, wait_for_lock},
    {"lock_shared", hold_shared, wait_for_lock},
    {"lock_all", hold_all, wait_for_lock},
    {"lock_own", hold_own, wait_for_lock_of_victim},
    {"lock_created", hold_created, wait_for_lock_of_created},
    {"inside_fence", inside_fence, fence_with_dead},
    {"outside_fence", die_outside, sleep_in_fence},
    {"inside_barrier", inside_barrier, barrier_with_dead},
    {"outside_barrier", die_outside, sleep_in_barrier},
    {"allreduce", die_outside, sleep_in_allreduce},
    {"collectives", die_in_collectives, collectives_with_dead},
    {"allocate", die_outside, sleep_in_allocate},
    {"signal", die_outside, sleep_for_signal},
    {"any_signal", die_outside, sleep_for_any_signal},
    {"word", die_outside, sleep_for_word},
    {"any_word", die_outside, sleep_for_word_of_any},
    {"start", die_outside, sleep_in_start},
    {"wait", die_while_started, sleep_in_wait},
    {"start_of_all", die_outside, sleep_in_start_of_all},
    {"read_created", serve_until_killed, read_created},
    {"storm", storm_until_killed, storm_until_death},
    {"messages", messages_until_killed, messages_until_death},
    {"message_steps", messages_until_step, messages_until_death},
    {"transfers", die_in_transfers, sleep_in_barrier},
    {"progress", die_unwaited, make_progress},
    {"exit_early", exit_early, sleep_in_barrier},
    {"exit_with_status", exit_normally_but_early, sleep_in_barrier},
    {"throw", throw_out_of_main, sleep_in_barrier},
    {"abort", abort_job, sleep_until_aborted},
};

}  // namespace

const scenario* find_scenario(std::string_view name) {
  for (const scenario& s : table) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

std::string scenario_names() {
  std::string all;
  for (const scenario& s : table) all += std::string(s.name) + "\n";
  return all;
}

}  // namespace faults
