// SPDX-License-Identifier: Apache-2.0
// Goal: after a revocation every wait on the team or window ends with `revoked`, on every living member, whatever it is
// a wait for and also if it begins later; what needs no wait goes on; the survivors shrink, and go on.
//
// Method: simulated ranks on one node and on several. Each kind of wait that cannot end otherwise, with each lock and
// fence design; rank 0 revokes the team or the window. Then rings of ranks that wait for signals of living neighbors,
// of which one dies at a time drawn from a seed.
//
// Break: in spread, go to one side by a distance of 1 alone (deaths); let wait_slow not count revocations (all); leave
// out one of the checks of `revocation()` (its own case).
#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

using namespace std::chrono_literals;
using window = rma::Window<long>;
using rma::status;

void expect(status found, status wanted, const std::string& what) {
  if (found == wanted) return;
  throw std::runtime_error(what + ": " + std::string(name_of(found)) + ", not " + std::string(name_of(wanted)));
}

void must_be_revoked(const std::string& what, const std::function<void()>& call) {
  try {
    call();
  } catch (const rma::Error& e) {
    expect(e.code(), status::revoked, what + " (" + e.what() + ")");
    if (std::string(e.what()).find("member has revoked") == std::string::npos)
      throw std::runtime_error(what + ": " + e.what());
    return;
  }
  throw std::runtime_error(what + " returned");
}

/// Called by all but rank 0, which never takes part.
using team_wait = std::function<void(rma::Team&)>;
using window_wait = std::function<void(window&)>;

const std::map<std::string, team_wait>& team_waits() {
  static const std::map<std::string, team_wait> all{
      {"barrier", [](rma::Team& t) { t.barrier(); }},
      {"broadcast",
       [](rma::Team& t) {
         std::array<long, 3> data{};
         t.broadcast(std::span(data), 0);
       }},
      {"allreduce", [](rma::Team& t) { (void)t.allreduce(1L, rma::sum); }},
      {"allgather", [](rma::Team& t) { (void)t.allgather(1L); }},
      {"alltoall",
       [](rma::Team& t) {
         const std::vector<long> mine(static_cast<std::size_t>(t.size()));
         (void)t.alltoall(std::span(mine));
       }},
      {"split", [](rma::Team& t) { (void)t.split(t.rank()); }},
      {"allocate", [](rma::Team& t) { (void)window::allocate(t, 1); }},
  };
  return all;
}

const std::map<std::string, window_wait>& window_waits() {
  static const std::array<int, 1> first{0};
  static const std::map<std::string, window_wait> all{
      {"fence", [](window& w) { w.fence(); }},
      {"ifence", [](window& w) { w.ifence().wait(); }},
      {"start", [](window& w) { w.start(first); }},
      {"post, wait",
       [](window& w) {
         w.post(first);
         w.wait();
       }},
      {"wait_signal", [](window& w) { w.wait_signal(0); }},
      {"wait_signal of a living rank", [](window& w) { w.wait_signal(0, 1, 0); }},
      {"wait_any_signal",
       [](window& w) {
         const std::array<unsigned, 2> signals{0, 1};
         (void)w.wait_any_signal(signals);
       }},
      {"wait_until", [](window& w) { w.wait_until(0, [](long value) { return value == 7; }); }},
      {"lock",
       [](window& w) {
         auto epoch = w.lock(rma::exclusive, 0);
         (void)w.fetch_and_op(1L, 0, 1, rma::sum);
       }},
      {"ilock", [](window& w) { w.ilock(rma::exclusive, 0).wait(); }},
  };
  return all;
}

/// Rank 0 holds what the others want, and revokes when they wait.
void revoke_among(rma::Runtime& rt, const window_wait& wait, const std::string& what, bool whole_team) {
  rma::Team team = rt.world().split(0);
  auto win = window::allocate(team, 4, {.name = what, .signals = 2});
  if (rt.rank() == 0) {
    {
      const int last = rt.size() - 1;
      auto epoch = win.lock(rma::exclusive, 0);
      auto other = win.lock(rma::shared, last);
      (void)win.fetch_and_op(1L, 0, 2, rma::sum);
      (void)win.fetch_and_op(1L, last, 2, rma::sum);
      team.barrier();
      rt.compute(5ms);
      if (whole_team) {
        team.revoke();
      } else {
        win.revoke();
      }
      win.put(3L, last, 3);
      other.flush();
      rt.compute(5ms);
    }
  } else {
    team.barrier();
    must_be_revoked(what, [&] { wait(win); });
  }
  const status fenced = win.try_fence();
  const bool left_epoch = what == "lock" && rt.rank() != 0;  // by an exception, if its lock was deferred
  if (!left_epoch || fenced != status::window_failed) {
    expect(fenced, status::revoked, "a fence afterwards");
    expect(win.wait_signal_nothrow(0), status::revoked, "a wait for a signal afterwards");
  }
  win.free();
  if (!whole_team) return;
  must_be_revoked("a barrier afterwards", [&] { team.barrier(); });
  rma::Team rest = team.shrink();
  if (rest.size() != team.size()) throw std::runtime_error("shrink has lost somebody");
  rest.barrier();
  auto next = window::allocate(rest, 4);
  next.fence();
  next.put(1L, 0, 0);
  next.fence();
}

void run_job(const rma::sim::Config& job, const std::function<void(rma::Runtime&)>& body) {
  const auto out = rma::sim::run(job, body);
  INFO(job.ranks << " ranks, " << job.ranks_per_node << " per node\n" << out.text());
  REQUIRE(out.ok());
}

}  // namespace

TEST_CASE("waits on a revoked team end", "[revoke][team]") {
  for (const auto& [what, wait] : team_waits())
    for (const int per_node : {1, 2, 5}) {
      INFO(what);
      run_job({.ranks = 5, .ranks_per_node = per_node, .limit = 60s}, [&what = what, &wait = wait](rma::Runtime& rt) {
        rma::Team team = rt.world().split(0);
        if (rt.rank() == 0) {
          rt.compute(3ms);
          team.revoke();
        } else {
          must_be_revoked(what, [&] { wait(team); });
        }
        must_be_revoked("again", [&] { wait(team); });
        rma::Team rest = team.shrink();
        rest.barrier();
        rt.world().barrier();
      });
    }
}

TEST_CASE("waits on a revoked window, or one of a revoked team, end", "[revoke][window]") {
  const bool whole_team = GENERATE(true, false);
  for (const auto& [what, wait] : window_waits())
    for (const int per_node : {1, 2, 4}) {
      INFO(what << ", " << (whole_team ? "team" : "window"));
      run_job({.ranks = 4, .ranks_per_node = per_node, .limit = 60s},
              [&](rma::Runtime& rt) { revoke_among(rt, wait, what, whole_team); });
    }
}

TEST_CASE("waits for locks and fences of every design end", "[revoke][window][designs]") {
  const auto with = [](const char* name, const char* value, const char* what) {
    for (const int per_node : {1, 4}) {
      INFO(name << "=" << value << ": " << what);
      run_job({.ranks = 4, .ranks_per_node = per_node, .settings = {{name, value}}, .limit = 60s},
              [what](rma::Runtime& rt) { revoke_among(rt, window_waits().at(what), what, true); });
    }
  };
  for (const char* const lock : {"two-sided", "network", "cpu", "hybrid"})
    for (const char* const what : {"lock", "ilock"}) with("RMA_LOCK", lock, what);
  for (const char* const what : {"lock", "ilock"}) with("RMA_LOCK", "network:fompi", what);
  for (const char* const fence : {"placed", "def", "imm-naive", "imm-opt", "imm-ri"})
    for (const char* const what : {"fence", "ifence"}) with("RMA_FENCE", fence, what);
}

TEST_CASE("survivors that wait for living ranks are told, and meet", "[revoke][deaths]") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 common(seed);
    rma::sim::Config job{.ranks = 4 + static_cast<int>(common() % 6)};
    job.ranks_per_node = 1 + static_cast<int>(common() % static_cast<unsigned>(job.ranks));
    job.kills.push_back({static_cast<int>(common() % static_cast<unsigned>(job.ranks)),
                         1ms + std::chrono::nanoseconds(common() % 20'000'000)});
    job.limit = 60s;
    INFO("seed " << seed);
    run_job(job, [](rma::Runtime& rt) {
      rma::Team team = rt.world();
      for (bool over = false; !over;) {
        try {
          auto win = window::allocate(team, 1, {.signals = 1});
          const int left = (team.rank() + team.size() - 1) % team.size();
          auto epoch = win.lock_all();
          for (int i = 0; i < 2000; ++i) {
            win.put_signal(std::span<const long>(), (team.rank() + 1) % team.size(), 0, 0);
            win.wait_signal(0, 1, left);
            rt.compute(50us);
          }
          team.barrier();
          over = true;
        } catch (const rma::Error& e) {
          if (e.code() != status::peer_failed && e.code() != status::revoked) throw;
          team.revoke();
          team = team.shrink();
        }
      }
      if (team.size() == rt.size()) throw std::runtime_error("nobody has died");
    });
  }
}
