// SPDX-License-Identifier: Apache-2.0
// Passive target epochs by RDMA, between two ranks that reach each other by nothing else: a lock and its unlock are two
// atomics of the adapter and no message, and a target that computes costs the origin no time.
//
// Break: make the lock ask the target's handler; the first check sees messages, the second the computation.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <rma/rma.hpp>
#include <string_view>
#include <vector>

namespace {

using window = rma::Window<std::uint64_t>;
using namespace std::chrono_literals;

constexpr int epochs = 200;
constexpr int rounds = 5;
constexpr double slower_max = 1.2;

std::uint64_t count(const rma::Runtime& rt, std::string_view name) {
  for (const rma::Counter& c : rt.counters()) {
    if (c.name == name) return c.value;
  }
  throw std::runtime_error(fmt::format("there is no counter {}", name));
}

struct counts {
  std::uint64_t atomics, sends, writes, reads, messages;
  explicit counts(const rma::Runtime& rt)
      : atomics(count(rt, "verbs_atomics")),
        sends(count(rt, "verbs_sends")),
        writes(count(rt, "verbs_writes")),
        reads(count(rt, "verbs_reads")),
        messages(count(rt, "messages_received")) {}
};

/// True if each epoch of rank 0 posted two atomics and nothing else. Prints the counts.
bool locks_are_two_atomics(rma::Runtime& rt, window& win) {
  if (rt.rank() == 0) win.lock(rma::exclusive, 1).unlock();  // connects
  rt.world().barrier();
  const counts before(rt);
  if (rt.rank() == 0) {
    for (int i = 0; i < epochs; ++i) win.lock(rma::exclusive, 1).unlock();
  }
  const counts after(rt);
  rt.world().barrier();
  if (rt.rank() != 0) return true;
  fmt::print("{} epochs: {} atomics, {} sends, {} writes, {} reads\n", epochs, after.atomics - before.atomics,
             after.sends - before.sends, after.writes - before.writes, after.reads - before.reads);
  return after.atomics - before.atomics == 2 * epochs && after.sends == before.sends && after.writes == before.writes &&
         after.reads == before.reads;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Microseconds of the median epoch of lock, put, unlock.
double epoch_us(rma::Runtime& rt, window& win, std::chrono::nanoseconds least) {
  std::vector<double> all;
  for (const auto begin = rt.now(); rt.now() - begin < least;) {
    const auto start = rt.now();
    auto held = win.lock(rma::exclusive, 1);
    win.put(all.size(), 1, 0);
    held.unlock();
    all.push_back(static_cast<double>((rt.now() - start).count()) / 1e3);
  }
  return median(std::move(all));
}

bool computing_target_costs_nothing(rma::Runtime& rt, window& win) {
  std::vector<double> idle;
  std::vector<double> computing;
  for (int round = 0; round < rounds; ++round) {
    rt.world().barrier();
    if (rt.rank() == 0) idle.push_back(epoch_us(rt, win, 700ms));
    rt.world().barrier();
    if (rt.rank() == 0) {
      computing.push_back(epoch_us(rt, win, 700ms));
    } else {
      for (const auto begin = rt.now(); rt.now() - begin < 1s;) {}  // no call of the library but for the time
    }
  }
  rt.world().barrier();
  if (rt.rank() != 0) return true;
  const double ratio = median(computing) / median(idle);
  fmt::print("lock, put, unlock: {:.1f} us while the target waits, {:.1f} us while it computes: {:.2f} times\n",
             median(idle), median(computing), ratio);
  return ratio <= slower_max;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rma::Runtime rt(argc, argv);
    if (rt.size() != 2) rt.abort(2, "passive_target needs two ranks");
    auto win = window::allocate(rt.world(), 16);
    const bool few = locks_are_two_atomics(rt, win);
    const bool fast = computing_target_costs_nothing(rt, win);
    win.free();
    if (rt.rank() == 0) fmt::print("passive target: {}\n", few && fast ? "as it should be" : "FAILED");
    return few && fast ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "passive_target: %s\n", e.what());
    return 1;
  }
}
