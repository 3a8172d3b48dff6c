// SPDX-License-Identifier: Apache-2.0
// Goal: a synchronization behind a request is advanced by every round of progress, the progress thread's included: a
// rank that computes between the call and its first look at the request finds it complete.
//
// Method: simulated ranks with a progress thread, on one node and on one node each, with each fence design and each
// lock. The synchronization needs steps of this rank after others have answered: the others come late.
//
// Break: let context::progress not call take_steps (fences and locks); let pace_tasks ask for no call of a duty (locks,
// where the fabric's atomics have to be tried again).
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using namespace std::chrono_literals;
using window = rma::Window<long>;

constexpr auto late = 10ms;
constexpr auto long_work = 100ms;

void must_be_over(rma::Request& request, const std::string& what) {
  if (!request.test()) throw std::runtime_error(what + " is not over");
}

void fences(rma::Runtime& rt) {
  auto win = window::allocate(rt.world(), 8);
  win.fence();
  for (int round = 0; round < 4; ++round) {
    const int right = (rt.rank() + 1) % rt.size();
    win.put(long{round}, right, 0);
    if (rt.rank() % 2 == round % 2) rt.compute(late);
    rma::Request request = win.ifence();
    rt.compute(long_work);
    must_be_over(request, "ifence");
    if (win.local()[0] != round) throw std::runtime_error("a put is missing");
    win.fence();
  }
  win.fence(rma::no_succeed);
  win.free();
}

void locks(rma::Runtime& rt) {
  auto win = window::allocate(rt.world(), 8);
  for (const int target : {0, rt.size() - 1}) {
    if (rt.rank() == 0) {
      auto epoch = win.lock(rma::exclusive, target);
      win.put(1L, target, 0);
      rt.world().barrier();
      rt.compute(late);
    } else {
      rt.world().barrier();
      if (rt.rank() == 1) {
        rma::Request request = win.ilock(rma::exclusive, target);
        rt.compute(long_work);
        must_be_over(request, "ilock");
        win.put(2L, target, 1);
        win.unlock(target);
      } else if (rt.rank() == 2) {  // it was asked for before
        rt.compute(3 * late);
        auto epoch = win.lock(rma::exclusive, target);
        if (win.get(target, 1) != 2) throw std::runtime_error("ilock has waited for its rank to look");
      }
    }
    rt.world().barrier();
  }
  win.free();
}

void flushes(rma::Runtime& rt) {
  auto win = window::allocate(rt.world(), 8);
  if (rt.rank() == 0) {
    auto epoch = win.lock_all();
    for (int target = 1; target < rt.size(); ++target) win.put(1L, target, 0);
    rma::Request request = win.iflush_all();
    rt.compute(long_work);
    must_be_over(request, "iflush");
    win.accumulate(1L, 1, 0, rma::sum);
    request = win.iflush(1);
    rt.compute(long_work);
    must_be_over(request, "iflush of a target");
  } else {
    rt.compute(3 * long_work);
  }
  rt.world().barrier();
  win.free();
}

/// Each step of a lock by the network's atomics posts, or takes an answer: none takes as long as an answer does.
void short_steps(rma::Runtime& rt) {
  auto win = window::allocate(rt.world(), 8);
  if (rt.rank() == 0) {
    const int target = rt.size() - 1;
    { auto epoch = win.lock(rma::exclusive, target); }  // whoever meets for the first time waits
    auto longest = 0ns;
    const auto timed = [&](auto&& call) {
      const auto before = rt.now();
      auto result = call();
      longest = std::max<std::chrono::nanoseconds>(longest, rt.now() - before);
      return result;
    };
    const auto before = rt.now();
    rma::Request request = timed([&] { return win.ilock(rma::exclusive, target); });
    while (!timed([&] { return request.test(); })) rt.compute(100ns);
    const auto answer = rt.now() - before;
    win.unlock(target);
    if (3 * longest > answer)
      throw std::runtime_error("a step took " + std::to_string(longest.count()) + " ns of the " +
                               std::to_string(answer.count()) + " ns until the lock was held");
  }
  rt.world().barrier();
  win.free();
}

void run_on(int ranks_per_node, const char* setting, const char* value, void (*program)(rma::Runtime&)) {
  for (const char* threads : {"serialized", "multiple"}) {
    rma::sim::Config job{.ranks = 4, .ranks_per_node = ranks_per_node};
    job.settings = {{"RMA_PROGRESS_THREAD", "1"}, {"RMA_THREADS", threads}, {setting, value}};
    const auto out = rma::sim::run(job, program);
    INFO("ranks per node " << ranks_per_node << ", " << setting << "=" << value << ", threads " << threads << ": "
                           << out.text());
    CHECK(out.ok());
  }
}

}  // namespace

TEST_CASE("a fence is over when its rank looks") {
  for (const char* fence : {"auto", "def", "imm-naive", "imm-opt", "imm-ri"}) {
    run_on(1, "RMA_FENCE", fence, fences);
    run_on(0, "RMA_FENCE", fence, fences);
  }
}

TEST_CASE("a lock is held when its rank looks") {
  for (const char* lock : {"auto", "cpu", "network", "hybrid", "two-sided"}) {
    run_on(1, "RMA_LOCK", lock, locks);
    run_on(0, "RMA_LOCK", lock, locks);
    run_on(2, "RMA_LOCK", lock, locks);
  }
}

TEST_CASE("a flush is over when its rank looks") {
  run_on(1, "RMA_INTRANODE", "on", flushes);
  run_on(2, "RMA_INTRANODE", "off", flushes);
}

TEST_CASE("no step of a lock waits for the network") {
  for (const char* lock : {"network", "hybrid"}) run_on(1, "RMA_LOCK", lock, short_steps);
  run_on(1, "RMA_LOCK", "network:fompi", short_steps);
}
